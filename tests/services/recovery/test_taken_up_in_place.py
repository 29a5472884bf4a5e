"""Failures that are tried again where their cases failed: what is told of an application of rules, of counts and of
alerts is what really was tried again, and nothing that the flow went on after."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Activity, Catch, Empty, ForEach, JobActivity, Scope, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import FailureGroup
from mendflow.core.model.rules import RuleSet
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
CAUGHT = Scope(name="s", body=A, catches=(Catch(body=Empty(name="e")),))
TOLERANT = ForEach(name="l", first=1, last=3, body=A, tolerate=2)
OTHER = Outcome(fault=Fault(name="exit", category=Category.JOB, message="it ran out of ideas", exit_code=4))
TRY_AGAIN = exlet("try-again", mend(Primitive.RESUBMIT))
SHIPPED = RuleSet(name="*", exlets={"try-again": TRY_AGAIN})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    never = MonitorSettings(look_ms=24 * 3_600_000)  # by itself: the tests look
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, monitor=never), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


def then_b(first: Activity) -> Sequence:
    return Sequence(name="seq", body=(first, B))


async def group_of(world: World, task: str) -> FailureGroup:
    [found] = [each for each in await world.domain.failures() if task in each.tasks]
    return found


async def failed_by_b(world: World, first: Activity) -> CaseId:
    """A case whose flow went on after what it did first, and failed by `b`."""
    case = await world.start(flow(then_b(first), name="x"))
    ids = await world.take(items=3 if first is TOLERANT else 1)
    await world.pilot.exchange({id: FAILED if place < 2 else Outcome() for place, id in enumerate(ids)})
    await world.quiet()
    await world.take()
    await world.report(b=OTHER)
    await world.until_status(case, "failed")
    return case


@pytest.mark.parametrize("first", [CAUGHT, TOLERANT])
async def test_ex_7_a_case_stays_failed_if_none_of_the_failures_would_be_tried_again(
    world: World, first: Activity
) -> None:
    case = await failed_by_b(world, first)
    await world.put(rule_set("x", ExceptionType.ABORT, ("true", "try-again"), exlets=[TRY_AGAIN]))
    for retry in (False, True):
        applied = await world.domain.apply_rules((await group_of(world, "a")).id, who="me", retry=retry)
        assert (applied.taken_up, applied.cases, applied.refused) == ([], [], {})
        assert await world.status(case) == "failed"


async def test_ex_7_of_the_failures_of_a_cause_those_are_taken_up_that_are_tried_again(world: World) -> None:
    case = await world.start(flow(then_b(TOLERANT), name="x"))
    ids = await world.take(items=3)
    await world.pilot.exchange({ids[0]: FAILED, ids[1]: Outcome(), ids[2]: Outcome()})
    await world.quiet()
    await world.take()
    await world.report(b=FAILED)
    await world.until_status(case, "failed")
    by_task = {each.task: each.id for each in await world.decisions(case)}
    applied = await world.domain.apply_rules((await group_of(world, "b")).id, who="me", retry=True)
    assert (applied.taken_up, applied.left, applied.cases) == ([by_task["b"]], [by_task["a"]], [case])
    assert await world.take() == ["b"]
