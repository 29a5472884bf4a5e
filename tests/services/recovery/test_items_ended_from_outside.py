"""Whatever ends an item from outside, all who list, count or explain it say the same, and say it right (EX-2, FM-8)."""

from typing import Any

import pytest

from mendflow.core.model.flow import Activity, JobActivity, Parallel, Sequence, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.services.cases.item_views import generation_of
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
BOTH = Parallel(name="p", branches=(A, B))
THEN = Sequence(name="s", body=(A, B))
FORCED = mend(Primitive.COMPLETE, outputs={"n": 1})
HELD = (mend(Primitive.SUSPEND, "case"), FORCED, mend(Primitive.CONTINUE, "case"))


async def started(world: World, type: ExceptionType, body: Activity, *steps: Any) -> str:
    await world.put(rule_set("f", type, ("true", "x"), exlets=[exlet("x", *steps)]))
    return await world.start(flow(body))


async def told(world: World, case: str, name: str = "a") -> tuple[str, str, dict[str, int]]:
    """The state of an item in the list, in the answer to why, and in the counts."""
    [item] = [each for each in await world.domain.items(case) if each.item == name]
    why = await world.domain.why(f"{case}:{name}")
    counts = [each for each in (await world.case(case)).counts if each.name == name]
    counted = {
        word: number
        for count in counts  # one, as soon as it has been counted
        for word in ("done", "running", "waiting", "failed", "cancelled", "skipped")
        if (number := getattr(count, word))
    }
    return item.state, why.state, counted


@pytest.mark.parametrize("steps", [(FORCED,), HELD], ids=["at once", "in a suspended case"])
@pytest.mark.parametrize("body", [A, THEN], ids=["the last item", "one of several"])
async def test_a_failed_item_that_is_force_completed_is_completed_for_all(
    world: World, body: Activity, steps: tuple[Any, ...]
) -> None:
    # EX-2 force-complete item
    case = await started(world, ExceptionType.ABORT, body, *steps)
    await world.take()
    await world.report(a=FAILED)
    if body is THEN:
        assert await world.take() == ["b"]
        await world.restart()
        assert await told(world, case) == ("completed", "completed", {"done": 1})
        await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert await told(world, case) == ("completed", "completed", {"done": 1})
    why = await world.domain.why(f"{case}:a")
    assert why.sentence == f"a was force-completed by {case}.x1."
    assert "exit code 3" in " ".join(why.facts), "what its job came to is told beside it"


async def test_a_task_that_is_force_completed_in_a_suspended_case_is_completed_for_all(world: World) -> None:
    # EX-2 force-complete item
    case = await world.start(flow(UserTask(name="a", role="clerk")))
    await world.domain.suspend(case, who="me")
    made = exlet("x", FORCED)
    await world.runtime.administration.mend(case, exlet="x", steps=made, item="a", who="me")
    await world.quiet()
    await world.restart()
    await world.domain.resume(case, who="me")
    await world.until_status(case, "completed")
    assert await told(world, case) == ("completed", "completed", {"done": 1})


async def test_a_command_that_a_suspended_case_kept_is_not_told_if_the_case_is_removed(world: World) -> None:
    case = await world.start(flow(A))
    await world.domain.suspend(case, who="me")
    await world.runtime.administration.mend(case, exlet="x", steps=exlet("x", FORCED), item="a", who="me")
    await world.quiet()
    await world.domain.cancel(case, who="me")
    assert await told(world, case) == ("cancelled", "cancelled", {"cancelled": 1})


@pytest.mark.parametrize("throw", [False, True])
async def test_a_completed_item_that_is_made_to_fail_counts_once(world: World, throw: bool) -> None:
    # EX-2 force-fail item
    fails = mend(Primitive.FAIL, message="not good enough", throw=throw)
    case = await started(world, ExceptionType.ITEM_POST, BOTH, fails)
    await world.take(items=2)
    await world.report(b=Outcome())
    await world.report(a=Outcome())
    await world.until_status(case, "failed" if throw else "completed")
    assert await told(world, case) == ("failed", "failed", {"failed": 1})
    assert (await world.domain.why(f"{case}:a")).sentence == f"a was force-failed by {case}.x1: not good enough"
    assert (await told(world, case, "b"))[2] == {"done": 1}


@pytest.mark.parametrize("throw", [False, True])
async def test_an_item_that_is_made_to_fail_before_it_goes_out_is_listed_and_counted(world: World, throw: bool) -> None:
    # EX-2 force-fail item
    case = await started(world, ExceptionType.ITEM_PRE, A, mend(Primitive.FAIL, message="no", throw=throw))
    await world.until_status(case, "failed" if throw else "completed")
    assert await told(world, case) == ("failed", "failed", {"failed": 1})


@pytest.mark.parametrize("removed", [A, UserTask(name="a", role="clerk")], ids=["job", "task"])
async def test_an_item_that_is_removed_before_it_goes_out_is_cancelled_and_not_forgotten(
    world: World, removed: Activity
) -> None:
    # EX-2 remove item
    body = Parallel(name="p", branches=(removed, B))
    case = await started(world, ExceptionType.ITEM_PRE, body, mend(Primitive.REMOVE))
    assert await world.take() == ["b"]
    cancelled = ("cancelled", "cancelled", {"cancelled": 1})

    async def is_told() -> bool:
        return bool(await world.domain.items(case, name="a")) and await told(world, case) == cancelled

    await world.until(is_told, "the item to be cancelled for all")
    [item] = await world.domain.items(case, name="a")
    assert item.reason == f"removed by {case}.x1"
    await world.restart()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert await told(world, case) == cancelled


async def test_a_failed_item_that_is_removed_is_cancelled_for_all(world: World) -> None:
    # EX-2 remove item
    case = await started(world, ExceptionType.ABORT, BOTH, mend(Primitive.REMOVE))
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert await told(world, case) == ("cancelled", "cancelled", {"cancelled": 1})


async def test_why_and_logs_of_a_restarted_item_are_of_what_runs_now(world: World) -> None:
    # EX-2 restart item
    case = await started(world, ExceptionType.ABORT, A, mend(Primitive.RESTART))
    await world.take()
    first = await world.domain.item(case, "a")
    await world.report(a=FAILED)
    await world.take()
    again = await world.domain.item(case, "a")
    assert first.job is not None and again.job is not None
    assert generation_of(again.job) > generation_of(first.job)
    assert (await world.domain.why(f"{case}:a")).subject == again.job
    await world.report(a=Outcome(log_tail="it went well"))
    await world.until_status(case, "completed")
    last = await world.domain.item(case, "a")
    assert (last.job, last.state, last.log_tail) == (again.job, "completed", "it went well")
    assert (await world.domain.why(f"{case}:a")).state == "completed"
