"""Several exceptions at once: about one item, and about the items of what mends it, three deep."""

from typing import Any

import msgspec

from mendflow.core.model.flow import JobActivity, Sequence, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, tree

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
HOLD = UserTask(name="hold", role="clerk")


async def task_of(world: World) -> Any:
    async def offered() -> Any:
        return await world.domain.worklist(state="offered")

    return (await world.until(offered, "a task"))[0]


def two_rules(*after: Primitive) -> RuleSet:
    """When the job fails somebody looks first; what is said to have happened ends the item at once."""
    look = exlet("look", HOLD, *(mend(each) for each in after))
    end = exlet("end", mend(Primitive.COMPLETE, outputs={"n": 1}))
    return RuleSet(
        name="f",
        trees={
            ExceptionType.ABORT: {"a": tree(("job.generation == 1", "look"))},
            ExceptionType.ITEM_EXTERNAL: {"a": tree(('trigger == "enough"', "end"))},
        },
        exlets={"look": look, "end": end},
    )


async def test_a_job_whose_item_another_exlet_has_ended_is_not_submitted_again(world: World) -> None:
    # EX-1 FM-8: nobody waits for it
    await world.put(two_rules(Primitive.RESUBMIT))
    case = await world.start(flow(Sequence(name="s", body=(A, B))))
    await world.take()
    await world.report(a=FAILED)
    task = await task_of(world)
    await world.domain.raise_trigger(case, "enough", "a", who="ann")
    assert await world.take() == ["b"]
    await world.restart()
    await world.domain.complete(task.id, None, who="ann")

    async def decided() -> bool:
        return {each.state for each in await world.decisions(case)} == {"done"}

    await world.until(decided, "both decisions done")
    await world.quiet()
    await world.pilot.sync(want=4)
    assert [each.spec.item for each in world.pilot.held] == ["b"]
    jobs = [found.id async for found in world.store.scan("job", f"{case}/1")]
    assert jobs == [f"{case}/1"]
    await world.report(b=Outcome())
    await world.until_status(case, "completed")


async def test_an_item_that_is_ended_while_its_failure_is_held_does_not_fail_afterwards(world: World) -> None:
    # EX-1
    await world.put(two_rules())
    case = await world.start(flow(Sequence(name="s", body=(A, B))))
    await world.take()
    await world.report(a=FAILED)
    task = await task_of(world)
    await world.domain.raise_trigger(case, "enough", "a", who="ann")
    assert await world.take() == ["b"]
    await world.domain.complete(task.id, None, who="ann")
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert (await world.domain.item(case, "a")).state == "completed"


async def test_exlets_mend_exlets_three_deep_and_every_case_goes_on(world: World) -> None:
    # EX-4: worklets and exlets nest, each with rules of its own; also over a restart
    names = ("f", "one", "two")
    exlets = [exlet("one", JobActivity(name="o", command="true"), mend(Primitive.COMPLETE))]
    exlets += [exlet("two", JobActivity(name="t", command="true"), mend(Primitive.RESUBMIT))]
    exlets += [exlet("three", mend(Primitive.RESUBMIT))]
    for name, task, found in zip(names, ("a", "o", "t"), exlets, strict=True):
        again = tree(("job.generation == 1", str(found.name)))
        await world.put(RuleSet(name=name, trees={ExceptionType.ABORT: {task: again}}, exlets={str(found.name): found}))
    case = await world.start(flow(A))
    for item in ("a", "o", "t"):
        assert await world.take() == [item]
        await world.report(**{item: FAILED})
    await world.restart()
    assert await world.take() == ["t"]
    await world.report(t=Outcome())
    assert await world.take() == ["o"]
    await world.report(o=Outcome())
    await world.until_status(case, "completed")
    below = [case, f"{case}.x1", f"{case}.x1.x1"]
    assert [(await world.until_decided(each, "done")).exlet for each in below] == ["one", "two", "three"]
    documents = [msgspec.json.decode(each.body) async for each in world.store.scan("case")]
    assert {each["status"] for each in documents} == {"completed"}
