"""Caches and neighbours where a pilot speaks to one server and gets jobs of others."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from mendflow.core.model.data import CachedFile, CacheUpdate
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.sync import SyncAnswer
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import NewJob
from tests.services.cluster.world import Hand, Line, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World("a", "b") as world:
        yield world


def digest(name: str) -> str:
    return name.encode().hex().ljust(64, "0")


async def begin(world: World, server: str, case: str = "align", **reads: str) -> None:
    """Jobs of a case, by number, and the file that each of them reads."""
    there = world.servers[server]
    world.homes[CaseId(case)] = server
    there.loaded.add(CaseId(case))
    jobs = []
    for number, (item, name) in enumerate(reads.items()):
        inputs = {name: FileRef(sha256=digest(name), bytes=1_000, name=name)}
        spec = JobSpec(item=ItemId(item), command="true", inputs=inputs)
        jobs.append(NewJob(JobId(f"{case}/{number}"), CaseId(case), spec))
    await there.meta.submit(jobs)
    await there.ledger.settled()
    there.document.waiting = len(jobs)


async def say(pilot: Hand, *names: str, want: int = 0, version: int = 2, folder: str = "") -> SyncAnswer:
    """An exchange in which the pilot tells all of its cache."""
    added = [CachedFile(digest(name), 1_000) for name in names]
    news = CacheUpdate(version=version, base=0, added=added, folder=folder)
    request = msgspec.structs.replace(pilot.request(want=want), cache=news, cache_version=version)
    answer = await pilot.world.servers[pilot.front].exchange.sync(request, "token")
    pilot.hear(answer)
    return answer


async def test_another_servers_job_is_chosen_by_what_the_pilot_has(world: World) -> None:  # PJ-3
    await begin(world, "a", old="x", young="y")
    pilot = Hand(world, "p", "b")
    answer = await say(pilot, "y", want=1)
    assert [each.spec.item for each in answer.jobs] == ["young"]
    assert answer.cache_seen == 2, "what its own front has seen"


async def test_a_server_is_told_of_a_cache_only_what_it_does_not_know(world: World) -> None:
    await begin(world, "a", one="x", two="y", three="z")
    pilot = Hand(world, "p", "b")
    for version in (2, 2, 3, 3):  # every other time it is known before that jobs are wanted
        await say(pilot, "y", want=1, version=version)
    told = [request.cache for _, other, request in world.passed if other == "a" and request.want]
    assert [news is not None for news in told] == [True, False, True]
    shelf = world.servers["a"].meta.queue.caches.of(pilot.name)
    assert shelf is not None and shelf.version == 3


async def test_nothing_of_a_cache_is_passed_on_where_no_jobs_are_asked_for(world: World) -> None:
    await begin(world, "a", one="x")
    pilot = Hand(world, "p", "b")
    await say(pilot, "y", want=1)
    world.passed.clear()
    await say(pilot, "y", version=9)
    assert world.passed and all(request.cache is None for _, _, request in world.passed)


async def test_a_server_that_forgot_is_told_everything_again(world: World) -> None:
    await begin(world, "a", one="x", two="y", three="z")
    pilot, there = Hand(world, "p", "b"), world.servers["a"].meta
    await say(pilot, "z", want=1)
    there.caches.forget(pilot.name)
    await say(pilot, "z", want=1)
    assert there.caches.known_version(pilot.name) == 0, "its front believed that it knew"
    for _ in range(2):
        await say(pilot, "z", want=1)
    assert there.caches.known_version(pilot.name) == 2


async def test_a_job_is_kept_for_an_idle_pilot_that_speaks_to_another_server(world: World) -> None:  # PJ-4
    await begin(world, "a", first="x")
    far, near = Hand(world, "far", "b"), Hand(world, "near", "a")
    await say(far, "y", want=1)
    far.end(JobId("align/0"))
    for _ in range(5):
        await say(far, "y")
        await world.time.pass_by(1_000)
    await begin(world, "a", "next", second="y")
    assert not (await near.sync(want=1)).jobs
    for _ in range(2):
        await say(far, "y", want=1)
    assert list(far.held) == ["next/0"]


async def test_pilots_of_one_host_find_each_other_through_different_servers(world: World) -> None:  # PJ-2 PJ-6
    one, two = Hand(world, "one", "a"), Hand(world, "two", "b")
    await say(one, folder="/one")
    await say(two, folder="/two")
    await world.time.pass_by(3_000)
    answer = await say(one, folder="/one")
    assert answer.neighbours is not None
    assert [(each.pilot, each.folder) for each in answer.neighbours] == [("two", "/two")]


async def test_a_server_that_cannot_be_asked_tells_of_no_neighbours_and_does_no_harm(world: World) -> None:
    world.fate = lambda one, other: Line.LOST
    one, two = Hand(world, "one", "a"), Hand(world, "two", "b")
    await say(one, folder="/one")
    await say(two, folder="/two")
    await world.time.pass_by(3_000)
    assert not (await say(one, folder="/one")).neighbours
