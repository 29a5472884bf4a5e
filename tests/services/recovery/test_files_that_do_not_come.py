"""A job whose files cannot be brought is mended by the house as one that was submitted is: once at once, then later,
and not for ever."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category
from mendflow.core.model.flow import JobActivity, Sequence, Stage
from mendflow.core.model.jobs import Outcome
from mendflow.core.scheduling.amounts import clock
from mendflow.formats.shipped import default_rules
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.recovery.kit import World, flow


@pytest.fixture(params=["memory", "sqlite"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    world = World(store, tmp_path, ServerSettings(files_roots=(tmp_path,), levels_ms=(60, 120)), default_rules())
    await world.server.open()
    yield world
    await world.server.close()


def reading(source: str) -> JobActivity:
    return JobActivity(name="a", command="cat x", inputs={"x": source})


def behind(source: str) -> Sequence:
    """The path is known only when a job before it is over, as if that one had made the file."""
    told = JobActivity(name="tell", command=f"echo {source}")
    return Sequence(name="s", body=(told, reading("${{ jobs.tell.outputs.path }}")))


async def first_done(world: World, source: str) -> None:
    assert await world.take() == ["tell"]
    await world.report(tell=Outcome(outputs={"path": source}))


async def test_a_file_that_never_comes_is_waited_for_in_every_level_and_then_given_up(server: World) -> None:
    # EX-8
    case = await server.start(flow(reading("lfn:/nosuch")))
    await server.until_status(case, "failed")
    decisions = await server.decisions(case)
    assert [each.exlet for each in decisions] == ["again", "later", "later", "give-up"]
    jobs = [each.context["job"] for each in decisions]
    assert [(job["generation"], job["level"]) for job in jobs] == [(1, 0), (2, 0), (3, 1), (4, 2)]
    ended = await server.case(case)
    assert [(each.name, each.failed, each.waiting) for each in ended.counts] == [("a", 1, 0)]
    fault = ended.fault
    assert fault is not None and (fault.name, fault.category) == ("stagingFailed", Category.DATA)


async def test_how_often_files_were_brought_outlives_a_restart(tmp_path: Path) -> None:
    # EX-8
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, levels_ms=(600_000, 60)), default_rules())
    await world.server.open()
    case = await world.start(flow(reading("lfn:/nosuch")))
    await world.until_decided(case, "running")
    for _ in range(2):
        await world.until(lambda: _waiting(world), "a job in a level")
        await world.restart()
    world.runtime.levels.drain()
    await world.until_status(case, "failed")
    assert [each.exlet for each in await world.decisions(case)] == ["again", "later", "later", "give-up"]
    await world.server.close()


async def _waiting(world: World) -> bool:
    return world.runtime.levels.waits("")


async def test_a_file_that_comes_while_its_job_waits_is_brought(server: World, tmp_path: Path) -> None:
    case = await server.start(flow(behind(str(tmp_path / "late"))))
    await first_done(server, str(tmp_path / "late"))
    await server.until_decided(case, "done")
    (tmp_path / "late").write_text("here")
    assert await server.take() == ["a"]
    await server.report(a=Outcome())
    await server.until_status(case, "completed")


async def test_a_case_whose_first_job_reads_a_file_that_is_not_there_is_refused(server: World, tmp_path: Path) -> None:
    # FM-6: the path is wrong more often than it is early, and nobody else can make the file
    (tmp_path / "sample.txt").write_text("here")
    source = tmp_path / "sampel.txt"
    with pytest.raises(InvalidRequest) as refused:
        await server.start(flow(reading(str(source))))
    told = f"job a, input x: there is no file {source} (did you mean {tmp_path / 'sample.txt'}?)"
    assert refused.value.message == told
    assert await server.domain.cases() == []


async def test_who_asks_is_told_first_which_file_is_waited_for_and_how_to_stop_that(tmp_path: Path) -> None:
    waits_ms = (60_000, 600_000, 3_600_000)
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, levels_ms=waits_ms), default_rules())
    await world.server.open()
    source = str(tmp_path / "nosuch")
    case = await world.start(flow(behind(source)))
    await first_done(world, source)
    await world.until(lambda: _waiting(world), "a job in a level")
    [entry] = world.runtime.levels.entries()
    decisions = await world.decisions(case)
    told = await world.domain.why(case)
    assert (told.state, told.until) == ("waiting", entry.due_at)
    assert told.sentence == (
        f"case {case} waits for a file of a since {clock(decisions[0].at)}: there is no file {source}."
        f" The next try is at {clock(entry.due_at)}, the last one at {clock(entry.due_at + 4_200_000)}:"
        f" `mendflow rules levels drain 1` tries now, `mendflow cancel {case}` stops waiting."
    )
    assert (await world.domain.why(f"{case}:a")).sentence.startswith("a waits for a file since")
    await world.server.close()


@pytest.mark.parametrize("source", ["lfn:/../etc", "lfn:nosuch", "/etc/passwd", "no\0name"])
async def test_what_is_no_name_or_may_not_be_read_is_not_mended(server: World, source: str) -> None:
    case = await server.start(flow(reading(source)))
    await server.until_status(case, "failed")
    assert [each.state for each in await server.decisions(case)] == ["ignored"]
    assert not await server.exlets(case)
    fault = (await server.case(case)).fault
    assert fault is not None and (fault.name, fault.category) == ("stagingFailed", Category.INPUT)


async def test_a_url_that_a_flow_computes_is_not_stored_and_says_what_to_do(server: World) -> None:  # FM-6
    case = await server.start(flow(Stage(name="s", files={"x": "https://example.org/x.dat"})))
    await server.until_status(case, "failed")
    fault = (await server.case(case)).fault
    assert fault is not None and (fault.name, fault.category) == ("stagingFailed", Category.INPUT)
    assert fault.message.startswith("https://example.org/x.dat: a URL is not stored") and "`to:`" in fault.message
