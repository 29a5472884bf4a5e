"""One cause that fails several elements of a loop is one cause, and no condition names one of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.jobs import Outcome
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import World, flow

STATIONS = ["dessau.csv", "halle.csv", "kassel.csv"]
LOOP = ForEach(name="each", items=STATIONS, variable="file", body=JobActivity(name="a", command="true"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None))
    await made.server.open()
    yield made
    await made.server.close()


def failed(station: str, told: str) -> Outcome:
    name = station.partition(".")[0]
    fault = Fault(name="jobFailed", category=Category.JOB, message=told.format(name), exit_code=1)
    return Outcome(fault=fault, log_tail=f"calibrating {name}\n{fault.message}", exit_code=1)


async def fail_each(world: World, told: str) -> None:
    """In three cases, of another element each."""
    for at, station in enumerate(STATIONS):
        case = await world.start(flow(LOOP))
        await world.take(items=3)
        await world.pilot.exchange({f"a[{at}]": failed(station, told)})
        await world.until_status(case, "failed")
        await world.until(lambda: _none_held(world), "all ended")


async def _none_held(world: World) -> bool:
    await world.pilot.sync(want=0, wait_ms=20)
    return not world.pilot.held


async def test_ex_7_a_cause_whose_message_names_the_element_is_one_group(world: World) -> None:
    await fail_each(world, "ERROR no calibration for station {0}: run make-calib {0} (exit code 1)")
    [group] = await world.domain.failures()
    assert group.count == 3
    assert "no calibration for station <value>: run make-calib <value>" in group.message
    offered = [each.condition for each in (await world.domain.failure(group.id)).candidates]
    assert any("no calibration for" in each for each in offered)
    own = ("dessau", "halle", "kassel", "case.data.index", "case.data.file", "job.element")
    assert not [each for each in offered if any(word in each for word in own)]
