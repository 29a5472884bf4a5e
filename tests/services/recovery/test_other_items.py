"""Exlets that do something to another item than the one that failed: a failure is settled only by what ends the very
item that failed, or submits it again. All else leaves it to be passed on (EX-2, EX-3)."""

from typing import Any

import pytest

from mendflow.core.model.flow import JobActivity, Parallel, Sequence
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

UP, A, SIDE = (JobActivity(name=name, command="true") for name in ("up", "a", "side"))
ENDS = (Primitive.RESTART, Primitive.COMPLETE, Primitive.FAIL, Primitive.REMOVE)
AGAIN = (Primitive.RESUBMIT, Primitive.RETRY_LATER)


async def failed_beside(world: World, *steps: Any) -> str:
    """A case in which `up` is over and `side` runs when `a` fails, with these steps for that."""
    repair = exlet("repair", *steps)
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation == 1", "repair"), exlets=[repair]))
    case = await world.start(flow(Parallel(name="p", branches=(Sequence(name="s", body=(UP, A)), SIDE))))
    await world.take(items=2)
    await world.report(up=Outcome())
    await world.take(items=2)
    await world.report(a=FAILED)
    return case


@pytest.mark.parametrize("other", ["up", "side"])
@pytest.mark.parametrize("do", [*ENDS, *AGAIN])
async def test_what_an_exlet_does_to_another_item_does_not_settle_the_failure(
    world: World, do: Primitive, other: str
) -> None:
    case = await failed_beside(world, mend(do, item=other))
    decision = await world.until_decided(case, "done")
    assert decision.result == "passed-on"
    await world.until_status(case, "failed")


async def test_an_item_that_is_not_there_any_more_is_left_alone_and_the_decision_says_so(world: World) -> None:
    case = await failed_beside(world, mend(Primitive.RESTART, item="up"))
    decision = await world.until_decided(case, "done")
    assert decision.note == "restart: up is not under way, so nothing was done to it"


@pytest.mark.parametrize("do", [*ENDS, *AGAIN, Primitive.SUSPEND, Primitive.REPOLL])
async def test_an_item_that_the_flow_has_not_fails_the_exlet_and_the_failure_is_passed_on(
    world: World, do: Primitive
) -> None:
    case = await failed_beside(world, mend(do, item="ghost"))
    decision = await world.until_decided(case, "failed")
    assert decision.result == "passed-on"
    assert f"{do.value} could not be done: flow f has no item ghost; it has a, side, up" in decision.note
    await world.until_status(case, "failed")


@pytest.mark.parametrize("do", ENDS)
async def test_what_ends_the_failed_item_settles_its_failure_whatever_else_is_done(world: World, do: Primitive) -> None:
    case = await failed_beside(world, mend(do), mend(Primitive.COMPLETE, item="side"))
    decision = await world.until_decided(case, "done")
    words = {Primitive.RESTART: "restarted", Primitive.COMPLETE: "completed", Primitive.REMOVE: "removed"}
    assert decision.result == words.get(do, "failed")
    if do is Primitive.RESTART:
        assert await world.take() == ["a"]
        await world.report(a=Outcome())
    await world.until_status(case, "failed" if do is Primitive.FAIL else "completed")


async def test_another_try_of_the_failed_item_settles_its_failure_whatever_else_is_done(world: World) -> None:
    case = await failed_beside(world, mend(Primitive.RESUBMIT), mend(Primitive.RESTART, item="side"))
    assert await world.take(items=2) == ["a", "side"]
    await world.report(a=Outcome(), side=Outcome())
    await world.until_status(case, "completed")
    assert (await world.decision(case)).result == "recovered"


@pytest.mark.parametrize("do", [Primitive.RESTART, Primitive.COMPLETE])
async def test_the_failed_item_may_be_named_by_its_task(world: World, do: Primitive) -> None:
    case = await failed_beside(world, mend(do, item="a"))
    decision = await world.until_decided(case, "done")
    assert decision.result in ("restarted", "completed")
    assert await world.status(case) == "running"


@pytest.mark.parametrize("do", ENDS)
async def test_the_failure_of_a_job_that_nobody_waits_for_is_not_held_for_ever(world: World, do: Primitive) -> None:
    # EX-2: its item is long over, so there is nothing to restart or to end
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "repair"), exlets=[exlet("repair", mend(do))]))
    case = await world.start(flow(JobActivity(name="a", command="true", submission=Submission.FORGET)))
    await world.take()
    await world.report(a=FAILED)
    decision = await world.until_decided(case, "done")
    assert decision.job is not None
    assert world.runtime.proxy.phase_of(decision.job) == ""
