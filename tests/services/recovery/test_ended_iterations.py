"""An iteration that its loop ended is listed, counted and explained as cancelled, even if its job came to its end in
the same moment: what it gave is not among the outputs of the loop."""

import msgspec
import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Call, ForEach, JobActivity, UserTask
from mendflow.core.model.jobs import Outcome
from tests.services.recovery.kit import World, flow

LOOP = ForEach(
    name="loop",
    items=[1, 2, 3],
    body=JobActivity(name="a", command="true"),
    min_success=1,
    collect=Expr("jobs.a.outputs"),
)
INNER = flow(JobActivity(name="work", command="true"), "inner")
CALLS = ForEach(name="loop", items=[1, 2, 3], body=Call(name="c", flow="inner"), min_success=1)
TASKS = ForEach(name="loop", items=[1, 2, 3], body=UserTask(name="t", role="clerk"), min_success=1)


@pytest.mark.parametrize("second", ["with the first", "later", "after a restart", "never"])
async def test_an_iteration_that_was_not_needed_any_more_is_cancelled_for_all(world: World, second: str) -> None:
    case = await world.start(flow(LOOP, outputs={"x": "${{ jobs.loop.outputs }}"}))
    await world.take(items=3)
    done = {"a__1]": Outcome(outputs=2)}
    await world.report(**{"a__0]": Outcome(outputs=1)}, **(done if second == "with the first" else {}))
    await world.until_status(case, "completed")
    if second == "after a restart":
        await world.restart()
    if second in ("later", "after a restart"):
        await world.report(**done)
    await world.quiet()
    view = await world.case(case)
    assert view.outputs == {"x": [1, None, None]}
    assert {str(item.item): item.state for item in await world.domain.items(case)} == {
        "a[0]": "completed",
        "a[1]": "cancelled",
        "a[2]": "cancelled",
    }
    [count] = view.counts
    assert (count.done, count.cancelled) == (1, 2)
    why = await world.domain.why(f"{case}:a[1]")
    assert why.state == "cancelled", why.sentence


async def ends(world: World, case: str) -> tuple[dict[str, str], tuple[int, int]]:
    view = await world.case(case)
    [count] = view.counts
    return {str(item.item): item.state for item in await world.domain.items(case)}, (count.done, count.cancelled)


async def test_a_call_that_was_not_needed_any_more_is_cancelled_for_all(world: World) -> None:
    await world.domain.deploy(INNER)
    case = await world.start(flow(CALLS))
    await world.take(items=3)
    await world.report(work=Outcome())
    await world.until_status(case, "completed")
    await world.quiet()
    states, counts = await ends(world, case)
    assert sorted(states.values()) == ["cancelled", "cancelled", "completed"]
    assert counts == (1, 2)


async def test_a_user_task_that_was_not_needed_any_more_is_cancelled_for_all(world: World) -> None:
    case = await world.start(flow(TASKS))

    async def offered() -> list[str]:
        return [task.id for task in await world.domain.worklist(case=case, state="offered")]

    tasks = await world.until(offered)
    await world.domain.complete(tasks[0], None, who="ann")
    await world.until_status(case, "completed")
    await world.quiet()
    states, counts = await ends(world, case)
    assert sorted(states.values()) == ["cancelled", "cancelled", "completed"]
    assert counts == (1, 2)


@pytest.mark.parametrize("by", ["its loop", "a person"])
@pytest.mark.parametrize("restarted", [True, False])
async def test_an_iteration_that_ended_while_it_was_suspended_and_is_not_used_is_cancelled_for_all(
    world: World, by: str, restarted: bool
) -> None:
    case = await world.start(flow(LOOP if by == "its loop" else msgspec.structs.replace(LOOP, min_success=2)))
    await world.take(items=3)
    await world.domain.suspend(case, "a[1]", who="me")
    await world.report(**{"a__1]": Outcome(outputs=2)})
    if by == "a person":
        await world.domain.cancel(case, "a[1]", who="me", reason="it is wrong")
    if restarted:
        await world.restart()
    await world.report(**{"a__0]": Outcome(outputs=1)})
    if by == "a person":
        await world.report(**{"a__2]": Outcome(outputs=3)})
    await world.until_status(case, "completed")
    await world.quiet()
    states, counts = await ends(world, case)
    others = {"a[2]": "cancelled"} if by == "its loop" else {"a[2]": "completed"}
    assert states == {"a[0]": "completed", "a[1]": "cancelled", **others}
    assert counts == ((1, 2) if by == "its loop" else (2, 1))
    assert (await world.domain.item(case, "a[1]")).state == "cancelled"
