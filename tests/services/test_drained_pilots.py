"""A pilot that is drained gets no new jobs, on any server and after a restart, until that is undone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.services.runtime.server import ServerSettings
from mendflow.services.scheduling.drained_pilots import DRAIN_KIND, PilotDrain
from mendflow.stores.contract import Put, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import World, flow

LOOP = ForEach(name="each", first=1, last=6, body=JobActivity(name="a", command="true"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


async def test_what_it_runs_goes_on_and_nothing_new_comes(world: World) -> None:
    case = await world.start(flow(LOOP))
    await world.take(items=4)
    view = await world.domain.drain_pilot("p-1", who="ann", reason="new disks")
    assert view.drained == "drained by ann: new disks"
    await world.pilot.exchange({"a[0]": Outcome()}, want=4)
    await world.pilot.sync(want=4, wait_ms=20)
    assert len(world.pilot.held) == 3, "it reports, and gets nothing"
    [waiting] = [each for each in (await world.domain.overview()).waiting if each.kind == "job"]
    assert "drained by ann" in (await world.domain.why(waiting.sample)).sentence
    other = HandPilot(world.domain, "p-2")
    await other.sync(want=4, wait_ms=20)
    assert len(other.held) == 2, "another pilot gets them"
    assert (await world.status(case)) == "running"


async def test_it_holds_after_a_restart_and_ends_when_it_is_undone(world: World) -> None:
    await world.pilot.sync()
    await world.domain.drain_pilot("p-1", who="ann")
    await world.restart()
    await world.start(flow(LOOP))
    await world.pilot.sync(want=4, wait_ms=20)
    assert not world.pilot.held
    held = asyncio.ensure_future(world.pilot.sync(want=4, wait_ms=5_000))
    await asyncio.sleep(0.02)
    assert (await world.domain.resume_pilot("p-1", who="ann")).drained == ""
    await held
    assert len(world.pilot.held) == 4, "its held request is answered at once"


async def test_it_holds_however_long_ago_it_was_said(world: World) -> None:
    drain = PilotDrain(pilot=PilotId("p-1"), by="ann", at=world.server.clock.now() - 400 * 86_400_000)
    await world.server.store.write([Put(DRAIN_KIND, drain.pilot, msgspec.json.encode(drain), 0)])
    await world.restart()
    assert world.server.runtime.drains.sentence(drain.pilot) == "drained by ann"


async def test_what_was_not_written_is_not_said_to_hold(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.pilot.sync()
    get = world.server.store.get

    async def get_and_be_late(kind: str, id: str) -> StoredDocument | None:
        found = await get(kind, id)
        if kind == DRAIN_KIND:
            drain = PilotDrain(pilot=PilotId(id), by="ben", at=1)
            version = found.version if found is not None else 0
            await world.server.store.write([Put(DRAIN_KIND, id, msgspec.json.encode(drain), version)])
        return found

    monkeypatch.setattr(world.server.store, "get", get_and_be_late)
    with pytest.raises(Conflict, match="again and again"):
        await world.domain.drain_pilot("p-1", who="ann")


async def test_a_pilot_that_is_not_there_is_not_drained(world: World) -> None:
    with pytest.raises(NotFound, match="no pilot"):
        await world.domain.drain_pilot("nobody", who="ann")
