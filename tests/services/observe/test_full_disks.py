"""A full disk is told of at once, whoever asks, and forgotten when there is room again."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from mendflow.core.model.alerts import AlertView
from mendflow.core.model.data import StoreRequest
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import Instant
from mendflow.services.base.alerts import AlertFinding
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.watched_files import FORGOTTEN_MS
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import World, flow

CONTENT = b"one"
REQUEST = StoreRequest(contents={hashlib.sha256(CONTENT).hexdigest(): CONTENT})


class FullStore(MemoryStore):
    """A store that takes no alert while its disk is full."""

    full = False

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if self.full:
            raise StoreUnavailable("the disk is full")
        return await super().write(writes)


class LaterClock(SystemClock):
    """The time of day, and so much later."""

    later_ms = 0

    def now(self) -> Instant:
        return super().now() + self.later_ms


@pytest.fixture
def clock() -> LaterClock:
    return LaterClock()


@pytest.fixture
async def world(tmp_path: Path, clock: LaterClock) -> AsyncIterator[World]:
    made = World(FullStore(), tmp_path, ServerSettings(files_roots=None), clock=clock)
    await made.server.open()
    yield made
    await made.server.close()


async def open_alerts(world: World, wanted: int) -> list[AlertView]:
    async def as_many() -> bool:
        return len(await world.domain.alerts()) == wanted

    await world.until(as_many, f"{wanted} alerts")
    return await world.domain.alerts()


@pytest.mark.parametrize("full_store", [False, True])
async def test_a_disk_that_takes_no_files_is_told_of_until_it_does(  # JS-5
    world: World, clock: LaterClock, tmp_path: Path, full_store: bool
) -> None:
    case = await world.start(flow(JobActivity(name="a", command="true")))
    await world.take()
    assert isinstance(world.store, FullStore)
    world.store.full = full_store
    files = tmp_path / "files" / next(iter(REQUEST.contents))[:2]
    files.write_text("where a folder is wanted: nothing can be stored")
    with pytest.raises(StoreUnavailable):
        await world.domain.store_files(REQUEST)
    [alert] = await open_alerts(world, 1)
    assert (alert.kind, alert.severity) == ("disk-full", "critical")
    assert str(tmp_path / "files") in alert.sentence
    assert alert.sentence in (await world.domain.why(case)).facts
    assert alert.sentence in (await world.domain.health()).message
    files.unlink()
    world.store.full = False
    await world.domain.store_files(REQUEST)
    clock.later_ms = FORGOTTEN_MS
    assert (await world.domain.health()).message == ""
    await world.runtime.monitor.look()
    assert await world.domain.alerts() == []


async def test_a_disk_with_room_for_some_files_is_told_of_once(world: World, tmp_path: Path) -> None:  # JS-5
    (tmp_path / "files" / next(iter(REQUEST.contents))[:2]).write_text("where a folder is wanted")
    for number in range(5):
        with pytest.raises(StoreUnavailable):
            await world.domain.store_files(REQUEST)
        small = str(number).encode()
        await world.domain.store_files(StoreRequest(contents={hashlib.sha256(small).hexdigest(): small}))
        await world.runtime.monitor.look()
    assert len(await world.domain.alerts(every=True)) == 1
    assert len(await open_alerts(world, 1)) == 1


async def test_alerts_that_the_store_did_not_take_are_chosen_as_all_others_are(world: World, tmp_path: Path) -> None:
    assert isinstance(world.store, FullStore)
    alerts = world.runtime.monitor.alerts
    warning = AlertFinding(kind="queue-grows", subject="queue", episode="1", sentence="the queue grows")
    critical = AlertFinding(kind="disk-full", subject="disk", episode="1", sentence="the disk is full")
    world.store.full = True
    for finding in (critical, warning):
        with pytest.raises(StoreUnavailable):
            await alerts.raise_(finding)
    assert [each.kind for each in await alerts.list(every=False, limit=5)] == ["queue-grows", "disk-full"]
    assert [each.kind for each in await alerts.list(every=False, limit=1)] == ["queue-grows"]
    assert [each.kind for each in await alerts.list(every=False, limit=5, critical=True)] == ["disk-full"]
    world.store.full = False
    assert await alerts.raise_(critical)
    assert [each.kind for each in await alerts.list(every=False, limit=5, critical=True)] == ["disk-full"]


async def test_a_pilot_on_which_no_job_can_run_is_no_full_disk(world: World) -> None:  # JS-5
    why = "the folder /work cannot be written"
    await world.pilot.sync(paused=why, unfit=why)
    await world.runtime.monitor.look()
    assert await world.domain.alerts() == []
    assert (await world.domain.health()).message == ""


async def test_a_pilot_that_takes_no_job_because_of_its_disk_is_told_of(world: World) -> None:  # JS-5
    await world.pilot.sync(paused="the disk of /work has only 0 MB left")
    case = await world.start(flow(JobActivity(name="a", command="true")))
    [alert] = await open_alerts(world, 1)
    assert alert.kind == "disk-full" and "/work has only 0 MB left" in alert.sentence
    told = await world.domain.why(f"{case}:a")
    assert "takes new jobs now" in told.sentence and "/work has only 0 MB left" in told.sentence
    await world.pilot.sync()
    await world.runtime.monitor.look()
    assert await world.domain.alerts() == []
