"""What a case has completed is undone, the last first, each once, whatever happens in between (AD-1, AD-5)."""

from typing import Any

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Activity, Input, JobActivity, Parallel, Scope, Sequence, UserTask
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.views import JobQuery
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set


def booked(name: str) -> Activity:
    """A job that registers what undoes it."""
    undo = JobActivity(name=f"undo-{name}", command="true", env={"OF": f"${{{{ jobs.{name}.outputs }}}}"})
    return Scope(name=f"{name}-booked", body=JobActivity(name=name, command="true"), compensation=undo)


async def run(world: World, outputs: dict[str, Any]) -> list[str]:
    """Run what there is, until there is nothing more; which jobs that were, in order."""
    ran: list[str] = []
    while True:
        await world.pilot.ask_for_all()
        if not world.pilot.held:
            return ran
        names = [str(each.spec.item) for each in world.pilot.held]
        ran += names
        await world.pilot.exchange({name: outputs.get(name, Outcome(outputs=f"of {name}")) for name in names})


UNWIND = exlet("unwind", mend(Primitive.UNWIND), mend(Primitive.FAIL, throw=True))
STEPS = Sequence(name="s", body=(booked("hotel"), booked("train"), JobActivity(name="pay", command="true")))


async def test_a_failure_that_cannot_be_mended_undoes_what_was_completed_last_in_first_out(world: World) -> None:
    # AD-1 AD-5
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    case = await world.start(flow(STEPS))
    assert await run(world, {"pay": FAILED}) == ["hotel", "train", "pay", "undo-train", "undo-hotel"]
    await world.until_status(case, "failed")
    decision = await world.decision(case)
    assert (decision.state, decision.result) == ("done", "failed")
    jobs = await world.domain.jobs(JobQuery(name="undo-train"))
    assert [each.spec.env for each in jobs] == [{"OF": "of train"}], "it knows what the job left"


async def test_the_steps_of_an_exlet_that_unwound_a_case_can_be_listed(world: World) -> None:
    # AD-5: what a primitive began was called by no item
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    case = await world.start(flow(STEPS))
    await run(world, {"pay": FAILED})
    await world.until_status(case, "failed")
    (exlet_case,) = await world.exlets(case)
    assert [each.kind for each in await world.domain.items(exlet_case.id)] == ["mend", "mend"]


async def test_what_was_undone_is_not_undone_again_by_the_flows_own_handlers(world: World) -> None:
    # AD-5: the stack is empty afterwards
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    await world.start(flow(Scope(name="whole", body=STEPS)))
    ran = await run(world, {"pay": FAILED})
    assert sorted(ran) == sorted(["hotel", "train", "pay", "undo-train", "undo-hotel"])


async def test_unwinding_twice_undoes_each_once(world: World) -> None:
    # AD-5
    twice = exlet("twice", mend(Primitive.UNWIND), mend(Primitive.UNWIND))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "twice"), exlets=[twice], task="pay"))
    await world.start(flow(STEPS))
    assert await run(world, {"pay": FAILED}) == ["hotel", "train", "pay", "undo-train", "undo-hotel"]


async def test_nothing_to_undo_is_done_at_once(world: World) -> None:
    # AD-5
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    case = await world.start(flow(JobActivity(name="pay", command="true")))
    assert await run(world, {"pay": FAILED}) == ["pay"]
    await world.until_status(case, "failed")


async def test_a_library_knows_what_undoes_tasks_that_the_flow_says_nothing_about(world: World) -> None:
    # AD-1: a library holds the compensations
    undo = JobActivity(name="refund", command="true", env={"SUM": "${{ inputs.sum }}", "TO": "${{ inputs.to }}"})
    await world.domain.deploy(flow(undo, "refund", inputs={"sum": Input(), "to": Input()}))
    library = world.runtime.recovery.library
    await library.register("charge", "refund", who="ann")
    with pytest.raises(NotFound):
        await library.register("charge", "nowhere")
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    charge = JobActivity(name="charge", command="true", env={"to": "ann"})
    await world.start(flow(Sequence(name="s", body=(charge, JobActivity(name="pay", command="true")))))
    ran = await run(world, {"charge": Outcome(outputs={"sum": 12}), "pay": FAILED})
    assert ran == ["charge", "pay", "refund"]
    [refund] = await world.domain.jobs(JobQuery(name="refund"))
    assert refund.spec.env == {"SUM": "12", "TO": "ann"}
    await world.restart()
    assert [each.flow for each in world.runtime.recovery.library.all()] == ["refund"]


async def test_unwinding_goes_on_after_a_restart_where_it_was(world: World) -> None:
    # AD-5
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    case = await world.start(flow(STEPS))
    for name in ("hotel", "train", "pay"):
        assert await world.take() == [name]
        await world.report(**{name: FAILED if name == "pay" else Outcome(outputs=1)})
    assert await world.take() == ["undo-train"]
    await world.restart()
    await world.report(**{"undo-train": Outcome()})
    assert await world.take() == ["undo-hotel"]
    await world.restart()
    await world.report(**{"undo-hotel": Outcome()})
    await world.until_status(case, "failed")
    assert await world.status(CaseId(f"{case}.x1.1")) == "completed"


async def test_a_compensation_that_fails_fails_the_exlet_and_is_told(world: World) -> None:
    # AD-5
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    case = await world.start(flow(STEPS))
    ran = await run(world, {"pay": FAILED, "undo-train": FAILED})
    assert ran == ["hotel", "train", "pay", "undo-train"]
    await world.until_status(case, "failed")
    assert (await world.decision(case)).state == "failed"


async def test_a_persons_work_is_undone_too(world: World) -> None:
    # AD-6
    undo = UserTask(name="take-back", role="clerk")
    approved = Scope(name="approved", body=UserTask(name="approve", role="clerk"), compensation=undo)
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "unwind"), exlets=[UNWIND], task="pay"))
    both = Parallel(name="p", branches=(approved,))
    await world.start(flow(Sequence(name="s", body=(both, JobActivity(name="pay", command="true")))))
    [task] = await world.domain.worklist(state="offered")
    await world.domain.complete(task.id, None, who="ann")
    await run(world, {"pay": FAILED})

    async def offered() -> Any:
        return await world.domain.worklist(state="offered")

    [back] = await world.until(offered)
    assert back.item == "take-back"
