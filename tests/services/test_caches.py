"""What pilots tell of their caches, who gets which job because of it, and whom they are told of."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import CachedFile, CacheUpdate, Holder, Neighbour
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.sync import Assignment, AttemptReport, AttemptStatus, Capacity, SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.services.api.domain import Domain
from mendflow.services.api.metrics.snapshot import StatsCollector
from mendflow.services.base.contracts import NewJob
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.exchange import IDLE_ASK_MS

CAPACITY = Capacity(slots=1, cpus=1.0, memory_bytes=8 << 30, disk_bytes=8 << 30)


def digest(name: str) -> str:
    return name.encode().hex().ljust(64, "0")


class CachePilot:
    """A pilot in the test's hands that tells of its cache as a real one does: what the server has not seen."""

    def __init__(self, domain: Domain, name: str, host: str = "node7", site: str = "", who: str = "local") -> None:
        self.domain, self.name, self.host, self.site, self.who = domain, PilotId(name), host, site, who
        self.files: dict[str, int] = {}
        self.version = 1
        self.seen = self.serial = self.mark = 0
        self.folder = self.address = ""
        self.neighbours: list[Neighbour] = []
        self.held: list[Assignment] = []

    def has(self, **sizes: int) -> "CachePilot":
        self.files |= sizes
        self.version += 1
        return self

    def shares(self, folder: str = "", address: str = "") -> "CachePilot":
        self.folder, self.address, self.version = folder, address, self.version + 1
        return self

    def request(self, *, want: int = 0, wait_ms: int = 0, leaving: bool = False) -> SyncRequest:
        self.serial += 1
        news = CacheUpdate(
            version=self.version,
            base=0,
            added=[CachedFile(digest(name), size) for name, size in self.files.items()],
            folder=self.folder,
            address=self.address,
            key=f"secret of {self.name}" if self.address else "",
        )
        return SyncRequest(
            pilot=self.name,
            serial=self.serial,
            heard=self.serial - 1,
            host=self.host,
            site=self.site,
            capacity=CAPACITY,
            want=want,
            wait_ms=wait_ms,
            leaving=leaving,
            running=[AttemptStatus(each.job, each.fence, "running", Measurements()) for each in self.held],
            cache=news if self.seen != self.version else None,
            cache_version=self.version,
            neighbours=self.mark,
        )

    async def sync(self, *, want: int = 0, wait_ms: int = 0, leaving: bool = False) -> SyncAnswer:
        return self.hear(
            await self.domain.sync(self.request(want=want, wait_ms=wait_ms, leaving=leaving), who=self.who)
        )

    def hear(self, answer: SyncAnswer) -> SyncAnswer:
        self.seen = answer.cache_seen
        self.held += answer.jobs
        if answer.neighbours is not None:
            self.neighbours, self.mark = answer.neighbours, answer.neighbours_mark
        return answer


async def submit(server: Server, id: str, **sizes: int) -> JobId:
    inputs = {name: FileRef(sha256=digest(name), bytes=size, name=name) for name, size in sizes.items()}
    spec = JobSpec(item=ItemId(id), command="true", inputs=inputs)
    job = NewJob(JobId(f"c/{id}"), CaseId("c"), spec)
    await server.runtime.meta.submit([job])
    return job.id


# Who gets what


async def test_a_pilot_gets_the_job_whose_input_it_has(server: Server, domain: Domain) -> None:
    pilot = CachePilot(domain, "p").has(b=1_000)  # PJ-1 PJ-3
    await submit(server, "older", a=5_000)
    await submit(server, "younger", b=1_000, c=500)
    answer = await pilot.sync(want=1)
    assert [each.spec.item for each in answer.jobs] == ["younger"]
    assert answer.cache_seen == pilot.version
    told = await domain.why("c/younger")
    assert "this pilot was chosen because 1 kB of 1.5 kB of its input are there" in told.facts


async def test_a_job_goes_to_the_idle_pilot_that_has_its_input_whoever_asked_first(
    server: Server, domain: Domain
) -> None:
    other, holder = CachePilot(domain, "a"), CachePilot(domain, "z", host="node8").has(b=1_000)  # PJ-4
    await other.sync()
    waiting = [asyncio.create_task(each.sync(want=1, wait_ms=5_000)) for each in (other, holder)]
    await asyncio.sleep(0.02)
    id = await submit(server, "job", b=1_000)
    answer = await waiting[1]
    assert [each.job for each in answer.jobs] == [id]
    await submit(server, "next", b=1_000)
    assert [each.spec.item for each in (await waiting[0]).jobs] == ["next"], "nobody is idle any more that has it"


async def test_a_job_that_its_holder_does_not_take_goes_to_another_after_the_bound(
    server: Server, domain: Domain
) -> None:
    other, holder = CachePilot(domain, "a"), CachePilot(domain, "z", host="node8").has(b=1_000)  # PJ-4
    await holder.sync(want=1)  # and is silent from now on
    id = await submit(server, "job", b=1_000)
    began = server.clock.now()
    waiting = asyncio.create_task(other.sync(want=1, wait_ms=9_000))
    await asyncio.sleep(0.02)
    kept = server.runtime.meta.queue.kept_back(id, server.clock.now())
    assert kept is not None and kept.pilot == "z"
    assert [each.job for each in (await waiting).jobs] == [id]
    waited_ms = server.clock.now() - began
    assert waited_ms >= min(DATA_WAIT_MS, IDLE_ASK_MS) - 100, "it is kept back while the holder counts as idle"


async def test_what_follows_from_a_result_is_kept_for_the_pilot_that_made_it(server: Server, domain: Domain) -> None:
    maker, other = CachePilot(domain, "maker"), CachePilot(domain, "other", host="node8").has(x=1)  # PJ-4
    await submit(server, "make")
    [made] = (await maker.sync(want=1)).jobs
    [held] = maker.held
    waits = asyncio.create_task(other.sync(want=1, wait_ms=300))
    await asyncio.sleep(0.02)
    maker.held.clear()
    maker.has(events=1_000)

    async def follows(*_: object) -> None:
        """The next step, which others hear of before the maker's exchange goes on."""
        await submit(server, "read", events=1_000)
        await asyncio.sleep(0.05)

    await server.runtime.meta.subscribe(made.job, follows)
    report = AttemptReport(held.job, held.fence, Outcome(outputs=1))
    answer = await domain.sync(msgspec.structs.replace(maker.request(want=1), reports=[report]))
    assert [each.spec.item for each in answer.jobs] == ["read"]
    assert not (await waits).jobs


async def test_a_wait_says_whom_the_job_is_kept_for(server: Server, domain: Domain) -> None:
    other, holder = CachePilot(domain, "a"), CachePilot(domain, "z", host="node8").has(b=1_234_567)
    await holder.sync(want=1)
    id = await submit(server, "job", b=1_234_567, c=1_000_001)
    assert not (await other.sync(want=1)).jobs
    told = await domain.why(id)
    assert told.sentence.startswith(
        "job: it is kept for pilot z, which is idle and has 1.2 MB of 2.2 MB of its input; "
    )
    assert "pilot z has 1.2 MB of 2.2 MB of its input" in told.facts


async def test_jobs_without_inputs_do_not_care_about_caches(server: Server, domain: Domain) -> None:
    pilot, holder = CachePilot(domain, "p"), CachePilot(domain, "q").has(b=1)
    await holder.sync(want=1)
    await submit(server, "plain")
    assert [each.spec.item for each in (await pilot.sync(want=1)).jobs] == ["plain"]
    assert (await domain.why("c/plain")).facts[1:] == []


# What the server knows


async def test_after_a_restart_a_server_asks_at_once_for_everything(
    server: Server, domain: Domain, restart: Callable[[Server], Awaitable[None]]
) -> None:
    pilot = CachePilot(domain, "p").has(b=1_000)
    await pilot.sync()
    await restart(server)
    answer = await asyncio.wait_for(pilot.sync(want=1, wait_ms=9_000), 8)
    assert answer.cache_seen == 0
    assert (await pilot.sync()).cache_seen == pilot.version


async def test_a_pilot_that_has_nothing_more_to_say_is_not_asked_again_and_again(
    server: Server, domain: Domain
) -> None:
    pilot = CachePilot(domain, "p")
    request = msgspec.structs.replace(pilot.request(want=1, wait_ms=9_000), cache=None)
    assert (await asyncio.wait_for(domain.sync(request), 8)).cache_seen == 0
    again = msgspec.structs.replace(pilot.request(want=1, wait_ms=100), cache=None)
    began = server.clock.now()
    await domain.sync(again)
    assert server.clock.now() - began >= 90, "the answer was held"


async def test_people_see_what_is_in_a_cache_and_not_its_key(server: Server, domain: Domain) -> None:
    pilot = CachePilot(domain, "p", site="north").has(a=1_000, b=234).shares("/cache", "10.0.0.7:9400")
    await pilot.sync()
    [view] = await domain.pilots()
    assert (view.cache_files, view.cache_bytes) == (2, 1_234)
    assert b"secret" not in msgspec.json.encode(view)
    assert "its cache has 2 files, 1.2 kB" in (await domain.why("p")).facts
    [site] = (await StatsCollector(server).look()).pilots
    assert (site.cache_files, site.cache_bytes) == (2, 1_234)


async def test_a_pilot_without_a_cache_is_no_holder_any_more(server: Server, domain: Domain) -> None:
    pilot = CachePilot(domain, "p").has(a=1_000)
    await pilot.sync()
    await domain.sync(msgspec.structs.replace(pilot.request(), cache=None, cache_version=0))
    [view] = await domain.pilots()
    assert view.cache_files == 0


async def test_where_inputs_came_from_is_counted(server: Server, domain: Domain) -> None:
    pilot = CachePilot(domain, "p").has(a=1_000)
    await submit(server, "job", a=1_000)
    [job] = (await pilot.sync(want=1)).jobs
    measures = Measurements(
        cached_files=3, cached_bytes=30, shared_files=1, shared_bytes=7, fetched_files=2, fetched_bytes=9
    )
    pilot.held.clear()
    report = AttemptReport(job.job, job.fence, Outcome(outputs=1, measures=measures))
    await domain.sync(msgspec.structs.replace(pilot.request(), reports=[report]))
    [attempt] = (await domain.job("c/job")).history
    assert attempt.because == "1 kB of 1 kB of its input are there", "and stays known when it is over"
    stats = await StatsCollector(server).look()
    assert stats.input_files == {"cache": 2, "neighbour": 1, "elsewhere": 2}
    assert stats.input_bytes == {"cache": 23, "neighbour": 7, "elsewhere": 9}
    assert stats.placed == {"data": 1}


@pytest.mark.parametrize(
    "news",
    [
        CacheUpdate(version=1, base=0, added=[CachedFile("no digest", 1)]),
        CacheUpdate(version=1, base=0, added=[CachedFile(digest("a"), -1)]),
        CacheUpdate(version=1, base=0, gone=["../../etc/passwd"]),
        CacheUpdate(version=-1, base=0),
        CacheUpdate(version=1, base=0, folder="/cache\n"),
        CacheUpdate(version=1, base=0, key="x" * 5_000),
    ],
)
async def test_what_no_cache_holds_is_refused(domain: Domain, news: CacheUpdate) -> None:
    with pytest.raises(InvalidRequest):
        await domain.sync(msgspec.structs.replace(CachePilot(domain, "p").request(), cache=news))


# Neighbours


async def heard(*pilots: CachePilot) -> None:
    for _ in range(2):
        for pilot in pilots:
            await pilot.sync()


def told(pilot: CachePilot) -> list[str]:
    return sorted(each.pilot for each in pilot.neighbours)


async def test_pilots_of_one_host_are_told_of_each_others_folders(domain: Domain, tmp_path: Path) -> None:
    one, two = (CachePilot(domain, name).shares(str(tmp_path / name)) for name in ("one", "two"))  # PJ-2 PJ-6
    far, shy = CachePilot(domain, "far", host="node8").shares("/far"), CachePilot(domain, "shy")
    await heard(one, two, far, shy)
    assert one.neighbours == [Neighbour(PilotId("two"), "node7", str(tmp_path / "two"))]
    assert told(two) == ["one"]
    assert told(far) == told(shy) == []


async def test_neighbours_are_told_once_and_again_when_they_change(domain: Domain) -> None:
    one, two = CachePilot(domain, "one").shares("/one"), CachePilot(domain, "two").shares("/two")
    await heard(one, two)
    assert (await one.sync()).neighbours is None
    two.shares("/elsewhere")
    await two.sync()
    await one.sync()
    assert [each.folder for each in one.neighbours] == ["/elsewhere"]
    await two.sync(leaving=True)
    answer = await one.sync()
    assert (answer.neighbours, answer.neighbours_mark) == ([], 0)


async def test_only_pilots_of_the_same_token_are_neighbours(domain: Domain) -> None:
    one, two = CachePilot(domain, "one", who="ann").shares("/one"), CachePilot(domain, "two", who="ann").shares("/two")
    other = CachePilot(domain, "other", who="bob").shares("/other", "10.0.0.9:1")
    await heard(one, two, other)
    assert (told(one), told(two), told(other)) == (["two"], ["one"], [])


async def test_pilots_of_one_site_are_told_where_to_ask_and_by_which_key(domain: Domain) -> None:
    one = CachePilot(domain, "one", host="a", site="north").shares("/one", "10.0.0.1:1")
    two = CachePilot(domain, "two", host="b", site="north").shares("/two", "10.0.0.2:1")
    far = CachePilot(domain, "far", host="c", site="south").shares("/far", "10.0.0.3:1")
    await heard(one, two, far)
    assert one.neighbours == [Neighbour(PilotId("two"), "b", "", "10.0.0.2:1", "secret of two")]
    assert told(far) == []


@pytest.mark.parametrize(("share", "sees"), [("none", []), ("host", ["mate"]), ("site", ["mate", "two"])])
async def test_a_site_may_forbid_sharing(server: Server, domain: Domain, share: str, sees: list[str]) -> None:
    server.runtime.meta.caches.neighbourhood.sites = {"north": share}  # type: ignore[dict-item]  # one of the three
    one = CachePilot(domain, "one", host="a", site="north").shares("/one", "10.0.0.1:1")
    mate = CachePilot(domain, "mate", host="a", site="north").shares("/mate", "10.0.0.1:2")
    two = CachePilot(domain, "two", host="b", site="north").shares("/two", "10.0.0.2:1")
    await heard(one, mate, two)
    assert told(one) == sees
    assert all(share == "site" or not each.key for each in one.neighbours)


async def test_of_a_large_site_each_pilot_is_told_of_some_others(domain: Domain) -> None:
    pilots = [CachePilot(domain, f"p{n:03}", host=f"h{n}", site="north").shares("", f"10.0.0.{n}:1") for n in range(40)]
    await heard(*pilots)
    assert {len(pilot.neighbours) for pilot in pilots} == {32}
    known = [name for pilot in pilots for name in told(pilot)]
    assert {known.count(pilot.name) for pilot in pilots} == {32}, "and all of them equally often"


async def test_with_a_job_comes_who_on_the_site_has_what_it_reads(server: Server, domain: Domain) -> None:  # PJ-11
    holder, asker, far, silent = (
        CachePilot(domain, "holder", "a", "s").has(raw=1_000).shares("/a", "a:7001"),
        CachePilot(domain, "asker", "b", "s").has(own=1_000).shares("/b", "b:7001"),
        CachePilot(domain, "far", "c", "elsewhere").has(raw=1_000).shares("/c", "c:7001"),
        CachePilot(domain, "silent", "d", "s").has(raw=1_000).shares("/d"),
    )
    for pilot in (holder, far, silent, asker):
        await pilot.sync()
    await submit(server, "reads", raw=1_000, own=1_000)
    answer = await asker.sync(want=1)
    near = Neighbour(PilotId("holder"), "a", "", "a:7001", "secret of holder")
    assert answer.holders == [Holder(digest("raw"), near)]


async def test_a_site_that_forbids_sharing_tells_of_no_holder(server: Server, domain: Domain) -> None:
    pilots = [CachePilot(domain, name, name, "s").shares(f"/{name}", f"{name}:7001") for name in ("p", "q")]
    await pilots[0].has(raw=1_000).sync()
    server.runtime.meta.caches.neighbourhood.sites["s"] = "host"
    await submit(server, "reads", raw=1_000)
    answer = await pilots[1].sync(want=1)
    assert answer.jobs and answer.holders == []


async def test_of_another_tokens_files_no_pilot_is_told(server: Server, domain: Domain) -> None:
    theirs = CachePilot(domain, "theirs", "a", "s", who="them").has(raw=1_000).shares("/a", "a:7001")
    ours = CachePilot(domain, "ours", "b", "s", who="us").shares("/b", "b:7001")
    await theirs.sync()
    await submit(server, "reads", raw=1_000)
    answer = await ours.sync(want=1)
    assert answer.jobs and answer.holders == []
