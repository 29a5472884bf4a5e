"""Two exlets for one submission of a job, by rules: the job is submitted again once, also when the server is killed
between the two."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, tree

RULES = RuleSet(
    name="f",
    trees={
        ExceptionType.VIOLATION: {"a": tree(("values.loss > 1", "later"))},
        ExceptionType.ABORT: {"a": tree(("true", "again"))},
    },
    exlets={
        "later": exlet("later", mend(Primitive.RETRY_LATER)),
        "again": exlet("again", mend(Primitive.RESUBMIT)),
    },
)


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[World]:
    """Its levels let nothing go before they are drained."""
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, levels_ms=(3_600_000,)))
    await world.server.open()
    yield world
    await world.server.close()


@pytest.mark.parametrize("crash", [False, True])
async def test_an_exlet_that_comes_late_takes_the_successor_that_another_made(patient: World, crash: bool) -> None:
    world = patient
    await world.put(RULES)
    case = await world.start(flow(JobActivity(name="a", command="true")))
    await world.take()
    world.pilot.values = {"loss": 9}

    async def waits() -> bool:
        await world.pilot.sync()
        return bool(world.runtime.levels.entries())

    await world.until(waits, "the exlet of the violation to wait in a level")
    world.pilot.values = {}
    await world.report(a=FAILED)
    await world.take()
    if crash:
        await world.restart()
    world.runtime.levels.drain()

    async def both_over() -> bool:
        return [each.state for each in await world.decisions(case)] == ["done", "done"]

    await world.until(both_over)
    talk = world.runtime.proxy.conversation(JobId(f"{case}/1"))
    assert talk is not None and talk.generation == 2, "the violation and the abort were of the same submission"
    await world.report(a=Outcome(outputs=1))
    await world.until_status(case, "completed")
