"""Who gets which job."""

import random

import pytest

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling import ready_jobs
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import RESERVATION_SILENT_MS, JobQueue

GB = 1 << 30
NOW = 1_700_000_000_000


def a(id: str) -> JobId:
    return JobId(id)


def room(
    cpus: float = 100,
    memory: int = 1000,
    disk: int = 1000,
    gpus: int = 0,
    ttl_ms: int = 0,
    site: str = "",
    rounds: int = 1,
) -> Offer:
    return Offer(
        cpus=cpus, memory_bytes=memory * GB, disk_bytes=disk * GB, gpus=gpus, ttl_ms=ttl_ms, site=site, rounds=rounds
    )


def pilot(name: str, *, free: float, whole: float = 8) -> Offer:
    capacity = Capacity(slots=8, cpus=whole, memory_bytes=64 * GB, disk_bytes=GB)
    return Offer(cpus=free, memory_bytes=64 * GB, disk_bytes=GB, pilot=PilotId(name), whole=capacity)


def test_higher_priority_goes_first_then_the_older() -> None:
    queue = JobQueue()
    for id, priority, since in (("young", 0, 30), ("old", 0, 10), ("urgent", 5, 40), ("idle", -1, 1), ("same", 0, 10)):
        queue.add(a(id), Resources(), priority, NOW + since)
    assert queue.take(room(), 10, NOW) == ["urgent", "old", "same", "young", "idle"]
    assert len(queue) == 0


def test_the_order_holds_across_different_needs() -> None:
    queue = JobQueue()
    for number in range(30):
        queue.add(a(str(number)), Resources(cpus=1 + number % 5, memory_bytes=number % 7), 0, NOW + number)
    assert queue.take(room(cpus=1000), 100, NOW) == [str(number) for number in range(30)]


def test_no_more_are_taken_than_asked_for_and_none_twice() -> None:
    queue = JobQueue()
    for number in range(100):
        queue.add(a(str(number)), Resources(), 0, NOW)
    assert queue.take(room(), 0, NOW) == []
    taken = [id for _ in range(12) for id in queue.take(room(), 9, NOW)]
    assert taken == [str(number) for number in range(100)]


@pytest.mark.parametrize(
    ("needs", "fitting", "lacking"),
    [
        (Resources(cpus=4), room(cpus=4), room(cpus=3.9)),
        (Resources(memory_bytes=8 * GB), room(memory=8), room(memory=7)),
        (Resources(disk_bytes=8 * GB), room(disk=8), room(disk=7)),
        (Resources(gpus=1), room(gpus=1), room(gpus=0)),
        (Resources(wall_ms=1000), room(ttl_ms=1000), room(ttl_ms=999)),
        (Resources(wall_ms=1000), room(ttl_ms=0), room(ttl_ms=1)),
        (Resources(site="cern"), room(site="cern"), room(site="fnal")),
        (Resources(site="cern"), room(site="cern"), room(site="")),
    ],
)
def test_a_job_goes_only_where_it_fits(needs: Resources, fitting: Offer, lacking: Offer) -> None:
    queue = JobQueue()
    queue.add(a("x"), needs, 0, NOW)
    assert queue.take(lacking, 1, NOW) == []
    assert queue.take(fitting, 1, NOW) == ["x"]


def test_a_job_without_a_site_goes_anywhere_in_its_turn() -> None:
    queue = JobQueue()
    queue.add(a("anywhere"), Resources(), 0, NOW)
    queue.add(a("here"), Resources(site="cern"), 1, NOW)
    queue.add(a("there"), Resources(site="fnal"), 2, NOW)
    assert queue.take(room(site="cern"), 5, NOW) == ["here", "anywhere"]


def test_what_is_taken_together_fits_together() -> None:
    queue = JobQueue()
    for number in range(10):
        queue.add(a(str(number)), Resources(cpus=1.5, memory_bytes=GB), 0, NOW)
    assert queue.take(room(cpus=4), 10, NOW) == ["0", "1"]
    assert queue.take(room(cpus=100, memory=3), 10, NOW) == ["2", "3", "4"]


def test_tenths_of_a_cpu_add_up_to_one() -> None:
    queue = JobQueue()
    for number in range(10):
        queue.add(a(str(number)), Resources(cpus=0.1), 0, NOW)
    assert len(queue.take(room(cpus=1), 20, NOW)) == 10


def test_jobs_fetched_ahead_share_the_room_in_rounds_but_each_fits_into_it() -> None:
    queue = JobQueue()
    queue.add(a("large"), Resources(cpus=3), 9, NOW)
    for number in range(10):
        queue.add(a(str(number)), Resources(cpus=1), 0, NOW)
    assert queue.take(room(cpus=2, rounds=3), 100, NOW) == ["0", "1", "2", "3", "4", "5"]


def test_a_small_job_may_go_past_a_large_one_that_does_not_fit() -> None:
    queue = JobQueue()
    queue.add(a("large"), Resources(cpus=8), 0, NOW)
    queue.add(a("small"), Resources(cpus=1), 0, NOW + 1)
    assert queue.take(room(cpus=2), 5, NOW) == ["small"]
    assert queue.take(room(cpus=8), 5, NOW) == ["large"]


def test_a_removed_job_is_not_taken() -> None:
    queue = JobQueue()
    for id in "abc":
        queue.add(a(id), Resources(), 0, NOW)
    assert queue.remove(a("a")) and queue.remove(a("b")) and not queue.remove(a("b"))
    assert a("a") not in queue and a("c") in queue and len(queue) == 1
    queue.add(a("a"), Resources(), 0, NOW + 1)
    assert queue.take(room(), 5, NOW) == ["c", "a"]


def test_a_queue_from_which_most_is_removed_shrinks() -> None:
    queue = JobQueue()
    queue.add(a("head"), Resources(), 9, NOW)
    for number in range(1000):
        queue.add(a(str(number)), Resources(), 0, NOW)
    for number in range(999):
        queue.remove(a(str(number)))
    (shape,) = queue._line.shapes()
    assert len(shape.heap) < 200
    assert queue.take(room(), 10, NOW) == ["head", "999"]
    assert queue._line.accounts == {}


def test_a_job_waits_for_its_time_and_keeps_its_place() -> None:
    queue = JobQueue()
    queue.add(a("young"), Resources(), 0, NOW + 50)
    queue.add(a("retried"), Resources(), 0, NOW, NOW + 100)
    assert queue.next_wake() == NOW + 100 and len(queue) == 2
    assert queue.take(room(), 1, NOW + 99) == ["young"]
    assert queue.take(room(), 5, NOW + 99) == []
    assert queue.take(room(), 5, NOW + 100) == ["retried"]
    assert queue.next_wake() is None


def test_a_job_whose_time_has_come_is_seen_to_wait_though_no_pilot_asks() -> None:  # PJ-8
    queue = JobQueue()
    queue.add(a("lost"), Resources(), 0, NOW, NOW + 100)
    queue.wake(NOW + 99)
    assert not queue.waiting(()) and queue.depths_later() == {"": 1}
    queue.wake(NOW + 100)
    assert [each.first for each in queue.waiting(())] == ["lost"] and queue.depths_later() == {}


def test_a_job_removed_while_it_waits_for_its_time_never_comes() -> None:
    queue = JobQueue()
    queue.add(a("x"), Resources(), 0, NOW, NOW + 100)
    assert queue.remove(a("x")) and queue.next_wake() is None
    queue.add(a("x"), Resources(), 0, NOW, NOW + 200)
    assert queue.take(room(), 5, NOW + 150) == []
    assert queue.take(room(), 5, NOW + 200) == ["x"]


def test_how_many_stand_before_a_job() -> None:
    queue = JobQueue()
    for number in range(5):
        queue.add(a(str(number)), Resources(cpus=number), 0, NOW + number)
    assert [queue.jobs_ahead(a(str(number)), 0) for number in range(5)] == [0, 1, 2, 3, 4]
    queue.add(a("later"), Resources(), 0, NOW, NOW + 100)
    assert queue.jobs_ahead(a("later"), 0) == 5


# A large job must not starve


def busy_queue() -> JobQueue:
    """A large job, and small ones behind it without end."""
    queue = JobQueue(patience_ms=1000)
    queue.add(a("large"), Resources(cpus=8), 0, NOW)
    for number in range(100):
        queue.add(a(f"s{number}"), Resources(cpus=1), 0, NOW + 1 + number)
    return queue


def test_a_pilot_is_kept_for_a_large_job_that_waited_too_long() -> None:
    queue = busy_queue()
    assert queue.take(pilot("p", free=1), 1, NOW + 999) == ["s0"], "within the queue's patience small ones pass"
    assert queue.take(pilot("p", free=1), 1, NOW + 1000) == []
    assert queue.reserved_for(PilotId("p")) == "large"
    assert queue.take(pilot("p", free=7), 9, NOW + 2000) == []
    assert queue.take(pilot("p", free=8), 9, NOW + 3000) == ["large"]
    assert queue.reserved_for(PilotId("p")) is None
    assert queue.take(pilot("p", free=2), 9, NOW + 3000) == ["s1", "s2"]


def test_only_one_pilot_is_kept_for_one_job() -> None:
    queue = busy_queue()
    assert queue.take(pilot("p", free=1), 1, NOW + 2000) == []
    assert queue.take(pilot("q", free=1), 1, NOW + 2000) == ["s0"]


def test_a_pilot_that_is_too_small_even_when_empty_is_not_kept() -> None:
    assert busy_queue().take(pilot("p", free=1, whole=4), 1, NOW + 2000) == ["s0"]


def test_more_urgent_jobs_still_go_past() -> None:
    queue = busy_queue()
    queue.take(pilot("p", free=1), 1, NOW + 2000)
    queue.add(a("urgent"), Resources(cpus=1), 1, NOW + 2000)
    assert queue.take(pilot("p", free=2), 5, NOW + 2000) == ["urgent"]


def test_another_pilot_may_take_the_large_job_and_the_kept_one_goes_on() -> None:
    queue = busy_queue()
    queue.take(pilot("p", free=1), 1, NOW + 2000)
    assert queue.take(pilot("q", free=8), 1, NOW + 2000) == ["large"]
    assert queue.take(pilot("p", free=1), 1, NOW + 2000) == ["s0"]


@pytest.mark.parametrize("how", ["forgotten", "silent"])
def test_a_pilot_that_is_gone_is_kept_no_longer(how: str) -> None:
    queue = busy_queue()
    queue.take(pilot("p", free=1), 1, NOW + 2000)
    later = NOW + 2000
    if how == "forgotten":
        queue.forget(PilotId("p"))
    else:
        later += RESERVATION_SILENT_MS
    assert queue.take(pilot("q", free=1), 1, later) == []
    assert queue.reserved_for(PilotId("q")) == "large"


# Needs without number


def test_jobs_of_ever_different_needs_are_all_found_and_fit() -> None:
    dice = random.Random(3)
    queue = JobQueue()
    needs = {
        a(str(n)): Resources(
            cpus=dice.randrange(1, 40), memory_bytes=dice.randrange(1, 10**12), wall_ms=dice.randrange(10**9)
        )
        for n in range(5000)
    }
    for id, each in needs.items():
        queue.add(id, each, 0, NOW)
    ((place,),) = (each.values() for each in queue._line.accounts.values())
    assert len(place.shapes) <= ready_jobs.EXACT_MAX + 540
    small = Offer(cpus=4, memory_bytes=10**11, disk_bytes=0, ttl_ms=10**8)
    fitting = {id for id, r in needs.items() if r.cpus <= 4 and r.memory_bytes <= 10**11 and r.wall_ms <= 10**8}
    found: set[JobId] = set()
    for _ in range(3000):
        found.update(queue.take(small, 1, NOW))
    assert found == fitting
    rest: set[JobId] = set()
    while got := queue.take(Offer(cpus=40, memory_bytes=10**12, disk_bytes=0), 5, NOW):
        rest.update(got)
    assert found | rest == set(needs) and len(queue) == 0


def test_a_fitting_job_behind_heads_that_never_fit_is_found_while_others_keep_coming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ready_jobs, "EXACT_MAX", 1)
    queue = JobQueue()
    queue.add(a("plain"), Resources(), 0, NOW)
    for number in range(50):
        queue.add(a(f"huge{number}"), Resources(memory_bytes=900 * GB + number), 0, NOW)
    queue.add(a("hidden"), Resources(memory_bytes=600 * GB), 0, NOW)
    for serial in range(200):
        got = queue.take(room(cpus=1, memory=800), 1, NOW)
        assert got
        if got == ["hidden"]:
            return
        queue.add(a(f"plain{serial}"), Resources(), 0, NOW)
    pytest.fail("the hidden job was never found")
