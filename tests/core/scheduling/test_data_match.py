"""Which job a pilot gets when jobs read files and pilots have caches, and what is kept back for whom."""

import pytest

from mendflow.core.model.data import CACHE_FILES_MAX, CachedFile, CacheUpdate
from mendflow.core.model.ids import ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import FileRef
from mendflow.core.scheduling import data_explanations
from mendflow.core.scheduling.cache_index import CacheIndex, file_key
from mendflow.core.scheduling.data_match import KEPT_LOOKED, OVERTAKES_MAX, MatchReason
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS, Deferral
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import LOOK_BEHIND_EVERY, JobQueue
from mendflow.core.scheduling.ready_jobs import EXACT_MAX

NOW = 1_700_000_000_000
GB = 1 << 30


def digest(name: str) -> str:
    return name.encode().hex().ljust(64, "0")


def files(*names: str) -> tuple[int, ...]:
    return tuple(file_key(digest(name)) for name in names)


def news(version: int = 1, base: int = 0, gone: tuple[str, ...] = (), **sizes: int) -> CacheUpdate:
    added = [CachedFile(digest(name), size) for name, size in sizes.items()]
    return CacheUpdate(version=version, base=base, added=added, gone=[digest(name) for name in gone])


def has(queue: JobQueue, pilot: str, host: str = "", **sizes: int) -> None:
    queue.caches.hear(PilotId(pilot), news(1, 0, (), **sizes), host)


def add(queue: JobQueue, id: str, *names: str, priority: int = 0, age: int = 0, needs: Resources | None = None) -> None:
    queue.add(JobId(id), needs or Resources(), priority, NOW - age, files=files(*names))


def offer(pilot: str, *, cpus: float = 1, idle_ms: int = 0, site: str = "", ttl_ms: int = 0, host: str = "") -> Offer:
    return Offer(
        cpus=cpus,
        memory_bytes=8 * GB,
        disk_bytes=GB,
        pilot=PilotId(pilot),
        idle_ms=idle_ms,
        site=site,
        host=host,
        ttl_ms=ttl_ms,
    )


def ask(queue: JobQueue, pilot: str, most: int = 1, now: int = NOW, **options: int) -> list[JobId]:
    return queue.take(offer(pilot, cpus=most, **options), most, now)  # type: ignore[arg-type]  # only whole numbers here


def idle(queue: JobQueue, pilot: str, most: int = 1, now: int = NOW) -> None:
    assert queue.take(offer(pilot, cpus=most, idle_ms=60_000), most, now) == []


# What a pilot gets


def test_a_pilot_gets_the_job_with_most_bytes_of_its_input_there() -> None:
    queue = JobQueue()  # PJ-3
    has(queue, "p", a=5, b=700, c=1)
    add(queue, "oldest", age=50)
    add(queue, "many", "a", "c", "x", age=40)
    add(queue, "large", "b", age=10)
    assert ask(queue, "p") == ["large"]
    assert ask(queue, "p") == ["many"], "by bytes, not by the count of files"
    assert ask(queue, "p") == ["oldest"]


def test_priority_goes_before_data_and_data_before_age() -> None:
    queue = JobQueue()  # PJ-3
    has(queue, "p", a=100, b=100)
    add(queue, "urgent", priority=1)
    add(queue, "old", "a", age=9)
    add(queue, "young", "b", age=1)
    assert ask(queue, "p", 3) == ["urgent", "old", "young"]


def test_files_of_the_host_count_and_own_ones_a_little_more() -> None:
    queue = JobQueue()  # PJ-3 PJ-6
    has(queue, "p", "node7", mine=1000)
    has(queue, "q", "node7", theirs=1000, more=2)
    add(queue, "theirs", "theirs", age=9)
    add(queue, "mine", "mine", age=1)
    assert ask(queue, "p") == ["mine"]
    add(queue, "mine", "mine", age=1)
    add(queue, "most", "theirs", "more")
    assert ask(queue, "p", 3) == ["most", "mine", "theirs"], "what is clearly more goes first wherever it lies"


def test_a_cache_that_is_not_shared_is_nobody_elses() -> None:
    queue = JobQueue()
    has(queue, "p", a=1)
    has(queue, "q", b=1000)
    add(queue, "b", "b", age=1)
    add(queue, "a", "a")
    assert ask(queue, "p", 2) == ["a", "b"]


def test_what_does_not_fit_is_not_taken_however_much_of_it_is_there() -> None:
    queue = JobQueue()
    has(queue, "p", a=1000)
    for id, needs in (
        ("large", Resources(cpus=4)),
        ("long", Resources(wall_ms=3_600_000)),
        ("elsewhere", Resources(site="south")),
        ("shy", Resources(avoid_hosts=("node7",))),
    ):
        add(queue, id, "a", needs=needs)
    add(queue, "plain")
    got = queue.take(offer("p", site="north", host="node7", ttl_ms=60_000), 5, NOW)
    assert got == ["plain"]


def test_several_jobs_together_take_no_more_than_there_is() -> None:
    queue = JobQueue()
    has(queue, "p", a=3, b=2, c=1)
    for name in "abc":
        add(queue, name, name, needs=Resources(cpus=2))
    add(queue, "small")
    assert queue.take(offer("p", cpus=5), 4, NOW) == ["a", "b", "small"]


def test_a_pilot_that_is_kept_for_a_large_job_takes_nothing_that_comes_after_it() -> None:
    queue = JobQueue(patience_ms=10)
    has(queue, "p", a=1000)
    add(queue, "large", needs=Resources(cpus=4), age=100)
    add(queue, "reads", "a")
    whole = Capacity(slots=4, cpus=4, memory_bytes=8 * GB, disk_bytes=GB)
    small = Offer(cpus=1, memory_bytes=8 * GB, disk_bytes=GB, pilot=PilotId("p"), whole=whole)
    assert queue.take(small, 1, NOW) == []
    assert queue.reserved_for(PilotId("p")) == "large"


def test_a_job_is_overtaken_because_of_data_only_so_often() -> None:
    queue = JobQueue()  # PJ-3: nothing starves
    has(queue, "p", a=1000)
    add(queue, "old", "x", age=100)
    for number in range(OVERTAKES_MAX + 3):
        add(queue, f"young{number}", "a")
    got = [ask(queue, "p")[0] for _ in range(OVERTAKES_MAX + 1)]
    assert got[:-1] == [f"young{number}" for number in range(OVERTAKES_MAX)]
    assert got[-1] == "old"
    assert queue.chosen[JobId("old")].turn
    assert ask(queue, "p") == [f"young{OVERTAKES_MAX}"], "and then data counts again"


def test_those_that_went_past_are_forgotten_with_the_job() -> None:
    queue = JobQueue()
    has(queue, "p", a=1000)
    add(queue, "old", age=100)
    add(queue, "young", "a")
    ask(queue, "p")
    assert queue.overtaken_count(JobId("old")) == 1
    queue.remove(JobId("old"))
    assert queue.overtaken_count(JobId("old")) == 0


def test_a_job_of_an_odd_size_behind_one_that_does_not_fit_comes_although_data_keeps_the_pilot_busy() -> None:
    queue = JobQueue()
    has(queue, "p", a=1000)
    for number in range(EXACT_MAX):
        add(queue, f"huge{number}", needs=Resources(memory_bytes=(1 << 40) + number), age=500)
    add(queue, "too large", needs=Resources(cpus=1.5, memory_bytes=GB), age=400)
    add(queue, "hidden", needs=Resources(memory_bytes=GB + 1), age=300)
    got: list[str] = []
    for number in range(3 * LOOK_BEHIND_EVERY):
        add(queue, f"young{number}", "a", priority=1)
        got += ask(queue, "p")
    assert "hidden" in got


def test_why_a_job_was_taken_is_told_in_bytes() -> None:
    queue = JobQueue()
    has(queue, "p", "node7", a=700)
    has(queue, "q", "node7", a=700, b=300)
    add(queue, "job", "a", "b", "c")
    ask(queue, "p")
    assert queue.chosen == {"job": MatchReason(1000, 700)}


# What is kept back


def test_a_job_is_kept_back_for_an_idle_pilot_that_has_its_data() -> None:
    queue = JobQueue()  # PJ-4
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other") == []
    assert queue.kept_back(JobId("job"), NOW) == Deferral(PilotId("holder"), 1000, NOW + DATA_WAIT_MS)
    assert ask(queue, "holder") == ["job"]
    assert queue.kept_back(JobId("job"), NOW) is None


def test_if_no_holder_is_idle_anyone_may_take_it() -> None:
    queue = JobQueue()  # PJ-4
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    queue.mark_busy(PilotId("holder"))
    add(queue, "job", "a")
    assert ask(queue, "other") == ["job"]


def test_a_job_is_kept_back_no_longer_than_the_bound() -> None:
    queue = JobQueue()  # PJ-4
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other") == []
    assert ask(queue, "other", now=NOW + DATA_WAIT_MS - 1) == []
    assert not queue.take_freed(NOW + DATA_WAIT_MS - 1)
    assert queue.take_freed(NOW + DATA_WAIT_MS), "those that wait are to be woken"
    assert not queue.take_freed(NOW + DATA_WAIT_MS), "once"
    assert ask(queue, "other", now=NOW + DATA_WAIT_MS) == ["job"]


def test_what_the_holder_asks_for_and_leaves_is_anybodys() -> None:
    queue = JobQueue()  # PJ-4
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    add(queue, "urgent", priority=1)
    queue.take(offer("other", cpus=0), 0, NOW)
    assert ask(queue, "third", 2) == ["urgent"]
    add(queue, "more urgent", priority=1)
    assert ask(queue, "holder") == ["more urgent"]
    assert queue.take_freed(NOW)
    assert ask(queue, "other") == ["job"]


def test_what_the_holder_leaves_is_kept_for_another_idle_one_that_has_it_and_no_longer_than_the_bound() -> None:
    queue = JobQueue()  # PJ-4
    for holder in ("one", "two"):
        has(queue, holder, a=1000)
        idle(queue, holder)
    add(queue, "job", "a")
    assert ask(queue, "other") == []
    kept = queue.kept_back(JobId("job"), NOW)
    assert kept is not None
    add(queue, "urgent", priority=1)
    assert ask(queue, kept.pilot) == ["urgent"]
    assert queue.take_freed(NOW)
    assert ask(queue, "other", now=NOW + 1_000) == []
    again = queue.kept_back(JobId("job"), NOW + 1_000)
    assert again is not None
    assert (again.pilot, again.until) == ("two" if kept.pilot == "one" else "one", kept.until)
    assert ask(queue, "other", now=kept.until) == ["job"]


def test_an_idle_pilot_has_no_more_kept_back_for_it_than_it_would_take() -> None:
    queue = JobQueue()
    has(queue, "holder", a=1000)
    idle(queue, "holder", 2)
    for number in range(4):
        add(queue, f"job{number}", "a")
    assert ask(queue, "other", 4) == ["job2", "job3"]
    assert ask(queue, "holder", 2) == ["job0", "job1"]


@pytest.mark.parametrize(("here", "gets"), [(499, []), (500, ["job"])])
def test_a_pilot_with_half_of_what_the_idle_one_has_may_take_it(here: int, gets: list[str]) -> None:
    queue = JobQueue()  # PJ-4, by bytes: a small file that everybody has does not make them equal
    has(queue, "holder", a=1000)
    has(queue, "other", b=here - 1)
    idle(queue, "holder")
    add(queue, "job", "a", "b")
    assert ask(queue, "other") == gets


def test_a_job_that_the_idle_holder_cannot_run_is_not_kept_back() -> None:
    queue = JobQueue()
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "large", "a", needs=Resources(cpus=2))
    add(queue, "elsewhere", "a", needs=Resources(site="north"))
    assert queue.take(offer("other", cpus=4, site="north"), 4, NOW) == ["large", "elsewhere"]


def test_a_pilot_of_the_same_host_may_take_what_is_kept_for_its_neighbour() -> None:
    queue = JobQueue()
    has(queue, "holder", "node7", a=1000)
    has(queue, "other", "node7", b=1)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other") == ["job"]


def test_whoever_counts_as_idle_does_so_only_for_a_time() -> None:
    queue = JobQueue()
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other", now=NOW + 60_001) == ["job"]


def test_a_holder_that_is_gone_keeps_nothing() -> None:
    queue = JobQueue()
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other") == []
    queue.leave(PilotId("holder"))
    assert queue.take_freed(NOW)
    assert ask(queue, "other") == ["job"]


def test_without_a_bound_nothing_is_kept_back() -> None:
    queue = JobQueue(data_wait_ms=0)
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a")
    assert ask(queue, "other") == ["job"]


def test_other_work_goes_past_what_is_kept_back() -> None:
    queue = JobQueue()
    has(queue, "holder", a=1000)
    idle(queue, "holder")
    add(queue, "job", "a", age=9)
    add(queue, "plain")
    assert ask(queue, "other") == ["plain"]
    assert queue.overtaken_count(JobId("job")) == 0


def test_many_idle_holders_are_found_by_the_file() -> None:
    queue = JobQueue()
    for number in range(40):
        has(queue, f"idle{number}", "", **{f"f{number}": 10})
        idle(queue, f"idle{number}")
    add(queue, "job", "f33")
    assert ask(queue, "other") == []
    assert queue.kept_back(JobId("job"), NOW) == Deferral(PilotId("idle33"), 10, NOW + DATA_WAIT_MS)


def test_a_pilot_is_not_sent_away_because_very_much_is_kept_back() -> None:
    queue = JobQueue()
    for number in range(KEPT_LOOKED + 5):
        has(queue, f"idle{number}", "", **{f"f{number}": 10})
        idle(queue, f"idle{number}")
    for number in range(KEPT_LOOKED + 5):
        add(queue, f"job{number}", f"f{number}")
    assert ask(queue, "other") == [f"job{KEPT_LOOKED}"]


# What is known of caches


def test_changes_count_only_from_where_the_server_is() -> None:
    caches, p = CacheIndex(), PilotId("p")
    assert caches.hear(p, news(3, a=1, b=2), "")
    assert caches.hear(p, news(5, 3, ("a",), c=4), "")
    assert not caches.hear(p, news(9, 8, d=1), ""), "something between is missing"
    shelf = caches.of(p)
    assert shelf is not None
    assert (shelf.version, shelf.bytes(), shelf.bytes_of(files("a", "b", "c", "d"))) == (5, 6, 6)
    assert caches.hear(p, news(9, 0, d=1), ""), "everything is always welcome"
    assert shelf.files == {files("d")[0]: 1}
    assert list(caches.holders(files("b")[0])) == []


def test_holders_come_and_go() -> None:
    caches, [a] = CacheIndex(), files("a")
    for name in ("p", "q", "r"):
        caches.hear(PilotId(name), news(a=1), "node7")
    assert sorted(caches.holders(a)) == ["p", "q", "r"]
    caches.forget(PilotId("q"))
    caches.hear(PilotId("r"), news(2, 1, ("a",)), "")
    assert list(caches.holders(a)) == ["p"]
    p = caches.of(PilotId("p"))
    assert p is not None
    assert [shelf.pilot for shelf in caches.nearby(p)] == ["p"]
    caches.forget(PilotId("p"))
    assert list(caches.holders(a)) == []


def test_a_server_remembers_only_so_many_files_of_a_pilot() -> None:
    caches = CacheIndex()
    added = [CachedFile(f"{number:064x}"[::-1], 1) for number in range(CACHE_FILES_MAX + 10)]
    caches.hear(PilotId("p"), CacheUpdate(version=1, base=0, added=added), "")
    shelf = caches.of(PilotId("p"))
    assert shelf is not None
    assert len(shelf.files) == CACHE_FILES_MAX


def test_what_is_told_on_is_understood_as_what_was_told() -> None:
    caches, other, p = CacheIndex(), CacheIndex(), PilotId("p")
    caches.hear(p, news(7, a=1, b=2), "")
    told = caches.full_update(p, 100)
    assert told is not None
    other.hear(p, told, "")
    here, there = caches.of(p), other.of(p)
    assert here is not None and there is not None
    assert (there.files, there.version) == (here.files, 7)


# Sentences


def spec(**sizes: int) -> JobSpec:
    inputs = {name: FileRef(sha256=digest(name), bytes=size, name=name) for name, size in sizes.items()}
    return JobSpec(item=ItemId("merge"), command="true", inputs=inputs)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (MatchReason(1_234_567_890, 1_234_567_890), "1.2 GB of 1.4 GB of its input are there"),
        (
            MatchReason(1_234_567_890, 234_567_890),
            "1.2 GB of 1.4 GB of its input are there, 1 GB of that with other pilots of the host",
        ),
        (MatchReason(), "it was the first in the queue; nothing of its 1.4 GB of input is there"),
        (
            MatchReason(turn=True),
            "it was its turn after others with more of their input there went first 16 times; "
            "nothing of its 1.4 GB of input is there",
        ),
    ],
)
def test_a_match_says_what_data_had_to_do_with_it(chosen: MatchReason, sentence: str) -> None:
    assert data_explanations.match_sentence(spec(a=1_000_000_001, b=400_000_001), chosen) == sentence


def test_a_wait_says_whom_the_job_is_kept_for_and_until_when() -> None:
    kept = Deferral(PilotId("p-7"), 1_234_567_890, NOW + 2_000)
    assert data_explanations.explain_deferral(spec(a=1_400_000_001), kept, NOW) == (
        "it is kept for pilot p-7, which is idle and has 1.2 GB of 1.4 GB of its input; "
        "from 22:13:22 UTC on, 2 s from now, any pilot may take it"
    )


def test_a_wait_says_where_the_input_is_and_who_went_past() -> None:
    caches = CacheIndex()
    assert data_explanations.facts(spec(), caches, 0) == []
    assert data_explanations.facts(spec(a=5), caches, 0) == ["no pilot has any of its 5 B of input"]
    caches.hear(PilotId("p"), news(a=5), "")
    assert data_explanations.facts(spec(a=5, b=6), caches, 3) == [
        "pilot p has 5 B of 11 B of its input",
        "others with more of their input at hand overtook it 3 times; after 16 it is its turn",
    ]
