"""Each primitive, for each thing that it can be done to, with the effect that it must have (EX-2, EX-3, FM-8)."""

from typing import Any

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Assign, Call, Catch, Copy, Input, JobActivity, Parallel, Scope, Sequence, UserTask
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.services.recovery.primitive_settings import host_to_leave
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
BOTH = Parallel(name="p", branches=(A, B))
THEN = Sequence(name="s", body=(A, B))
HOLD = UserTask(name="hold", role="clerk")


async def apply(world: World, case: str, *steps: Any, item: str = "", wait: bool = True, **more: Any) -> Decision:
    """Make an exlet of these steps and run it on the case, to its end unless it is to be left running."""
    made = exlet(f"x{len(await world.decisions(case))}", *steps, **more)
    decision = await world.runtime.administration.mend(case, exlet=made.name, steps=made, item=item, who="test")
    if wait:

        async def over() -> bool:
            return (await world.runtime.exceptions.decisions.get(decision.id)).state != "running"

        await world.until(over, "the end of the exlet")
        decision = await world.runtime.exceptions.decisions.get(decision.id)
    return decision


async def states(world: World, case: str) -> dict[str, str]:
    return {str(item.item): item.state for item in await world.domain.items(case)}


async def release(world: World, name: str = "hold") -> None:
    """Let the step of an exlet that waits for a person go on."""

    async def offered() -> Any:
        found = await world.domain.worklist(state="offered")
        return [each for each in found if each.item == name]

    [task] = await world.until(offered)
    await world.domain.complete(task.id, None, who="ann")


# Suspend and continue


async def test_suspend_item_pauses_it_alone(world: World) -> None:
    # EX-2 suspend item
    case = await world.start(flow(BOTH))
    await apply(world, case, mend(Primitive.SUSPEND), item="a")
    assert await states(world, case) == {"a": "suspended", "b": "waiting"}
    assert await world.take() == ["b"]


async def test_suspend_case_pauses_all_its_live_items(world: World) -> None:
    # EX-2 suspend case
    case = await world.start(flow(BOTH))
    await apply(world, case, mend(Primitive.SUSPEND, "case"))
    assert await world.status(case) == "suspended"
    assert await states(world, case) == {"a": "suspended", "b": "suspended"}


async def test_suspend_all_cases_pauses_every_case_of_the_flow_and_no_other(world: World) -> None:
    # EX-2 suspend all cases
    one, two = await world.start(flow(A)), await world.start(flow(A))
    other = await world.start(flow(A, "g"))
    await apply(world, one, mend(Primitive.SUSPEND, "all-cases"))
    assert [await world.status(case) for case in (one, two, other)] == ["suspended", "suspended", "running"]


async def nested(world: World) -> tuple[CaseId, CaseId, CaseId, CaseId]:
    """A case, an exlet of it, a worklet of that, and another case of the flow."""
    await world.domain.deploy(flow(HOLD, "worklet"))
    first, other = await world.start(flow(A)), await world.start(flow(A))
    decision = await apply(world, first, Call(name="w", flow="worklet"), wait=False)
    assert decision.exlet_case is not None

    async def called() -> Any:
        return [each.id for each in await world.domain.cases(flow="worklet")]

    [worklet] = await world.until(called)
    return first, decision.exlet_case, worklet, other


async def test_suspend_ancestors_pauses_the_way_up_to_the_first_case_and_nothing_beside_it(world: World) -> None:
    # EX-3 suspend ancestors
    first, above, worklet, other = await nested(world)
    await apply(world, worklet, mend(Primitive.SUSPEND, "ancestors"))
    assert [await world.status(case) for case in (worklet, above, first, other)] == [*["suspended"] * 3, "running"]


async def test_continue_item_lets_it_go_on(world: World) -> None:
    # EX-2 continue item
    case = await world.start(flow(BOTH))
    await apply(world, case, mend(Primitive.SUSPEND), mend(Primitive.CONTINUE), item="a")
    assert await world.take(items=2) == ["a", "b"]


@pytest.mark.parametrize("target", ["case", "all-cases"])
async def test_continue_case_and_all_cases_let_them_go_on(world: World, target: Any) -> None:
    # EX-2 continue case, continue all cases
    one, two = await world.start(flow(A)), await world.start(flow(A))
    await apply(world, one, mend(Primitive.SUSPEND, target), mend(Primitive.CONTINUE, target))
    assert [await world.status(case) for case in (one, two)] == ["running", "running"]


async def test_continue_ancestors_lets_the_way_up_go_on(world: World) -> None:
    # EX-3 continue ancestors
    first, above, worklet, _ = await nested(world)
    await apply(world, worklet, mend(Primitive.SUSPEND, "ancestors"), mend(Primitive.CONTINUE, "ancestors"))
    assert [await world.status(case) for case in (worklet, above, first)] == ["running"] * 3


async def test_continue_lets_go_only_of_what_the_same_exlet_suspended(world: World) -> None:  # EX-3
    case = await world.start(flow(BOTH))
    await world.domain.suspend(case, who="ann")
    await apply(world, case, mend(Primitive.SUSPEND), item="a")
    await apply(world, case, mend(Primitive.SUSPEND, "case"), mend(Primitive.CONTINUE, "case"), item="a")
    assert await world.status(case) == "suspended", "a person holds it"
    await world.domain.resume(case, who="ann")
    assert await states(world, case) == {"a": "suspended", "b": "waiting"}, "another exlet holds the item"


# Remove


async def test_remove_item_cancels_it_and_nothing_more_runs_on_its_path(world: World) -> None:
    # EX-2 remove item
    path = Sequence(name="s", body=(A, JobActivity(name="c", command="true")))
    case = await world.start(flow(Parallel(name="p", branches=(path, B))))
    await apply(world, case, mend(Primitive.REMOVE), item="a")
    assert await states(world, case) == {"a": "cancelled", "b": "waiting", "c": "skipped"}
    await world.take()
    await world.report(b=Outcome())
    assert await world.status(case) == "completed"


async def test_remove_case_ends_it(world: World) -> None:
    # EX-2 remove case
    case = await world.start(flow(BOTH))
    decision = await apply(world, case, mend(Primitive.REMOVE, "case"))
    assert (await world.status(case), decision.result) == ("cancelled", "removed")


async def test_remove_all_cases_ends_every_case_of_the_flow(world: World) -> None:
    # EX-2 remove all cases
    one, two, other = await world.start(flow(A)), await world.start(flow(A)), await world.start(flow(A, "g"))
    await apply(world, one, mend(Primitive.REMOVE, "all-cases"))
    assert [await world.status(case) for case in (one, two, other)] == ["cancelled", "cancelled", "running"]


async def test_remove_ancestors_ends_the_way_up(world: World) -> None:
    # EX-3 remove ancestors
    first, above, worklet, other = await nested(world)
    await apply(world, worklet, mend(Primitive.REMOVE, "ancestors"))
    assert [await world.status(case) for case in (worklet, above, first, other)] == [*["cancelled"] * 3, "running"]


# Restart, complete, fail


async def test_restart_item_runs_it_again_with_its_data_as_at_its_start(world: World) -> None:
    # EX-2 restart item
    job = JobActivity(name="a", command="true", env={"N": "${{ inputs.n }}"})
    case = await world.start(flow(job, inputs={"n": Input()}), n=1)
    await world.take()
    await apply(world, case, mend(Primitive.WRITE, "case", values={"n": 2}), mend(Primitive.RESTART), item="a")
    await world.pilot.sync()
    assert world.pilot.held == [], "the first run was cancelled"
    await world.take()
    assert [(each.job, each.spec.env) for each in world.pilot.held] == [(f"{case}/2", {"N": "1"})]


async def test_restart_item_can_change_some_of_its_data(world: World) -> None:
    # EX-2 restart item
    case = await world.start(flow(JobActivity(name="a", command="true", env={"N": "1", "M": "1"})))
    await apply(world, case, mend(Primitive.RESTART, with_={"N": "2"}), item="a")
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "2", "M": "1"}


async def test_force_complete_counts_as_completed_and_the_next_item_runs(world: World) -> None:
    # EX-2 force-complete item, FM-8
    case = await world.start(flow(THEN, outputs={"a": "${{ jobs.a.outputs }}"}))
    await apply(world, case, mend(Primitive.COMPLETE, outputs={"x": 1}), item="a")
    assert await world.take() == ["b"]
    await world.report(b=Outcome())
    view = await world.case(case)
    assert view.outputs == {"a": {"x": 1}}
    assert {count.name: (count.done, count.cancelled) for count in view.counts} == {"a": (1, 0), "b": (1, 0)}
    forced = await world.domain.item(case, "a")
    assert (forced.state, forced.outputs, forced.reason) == ("completed", {"x": 1}, f"force-completed by {case}.x1")


async def test_force_fail_fails_the_case_if_the_flow_does_not_handle_it(world: World) -> None:
    # EX-2 force-fail item, FM-8
    case = await world.start(flow(THEN))
    await apply(world, case, mend(Primitive.FAIL, message="not today"), item="a")
    await world.until_status(case, "failed")
    forced = await world.domain.item(case, "a")
    assert (forced.state, forced.fault.message if forced.fault else "") == ("failed", "not today")
    assert [str(each.item) for each in await world.domain.items(case)] == ["a"], "what comes after it does not run"


async def test_force_fail_that_does_not_throw_counts_as_failed_and_the_next_item_runs(world: World) -> None:
    # EX-2 force-fail item, FM-8
    case = await world.start(flow(THEN))
    await apply(world, case, mend(Primitive.FAIL, message="not today", throw=False), item="a")
    assert await world.take() == ["b"]
    forced = await world.domain.item(case, "a")
    assert (forced.state, forced.fault.message if forced.fault else "") == ("failed", "not today")
    await world.restart()
    await world.report(b=Outcome())
    view = await world.case(case)
    assert view.status == "completed"
    assert [(count.name, count.done, count.failed, count.cancelled) for count in view.counts] == [
        ("a", 0, 1, 0),
        ("b", 1, 0, 0),
    ]


async def test_force_fail_reaches_the_handlers_of_the_flow(world: World) -> None:
    # EX-2 force-fail item
    handled = Scope(name="s", body=A, catches=(Catch(body=B, fault="late"),))
    case = await world.start(flow(handled))
    await apply(world, case, mend(Primitive.FAIL, fault="late"), item="a")
    assert await world.take() == ["b"]


# Write


async def test_write_puts_values_into_the_case(world: World) -> None:
    # EX-4 data is mapped back
    then = JobActivity(name="b", command="true", env={"N": "${{ n }}"})
    first = Assign(name="v", copies=(Copy("n", 1),))
    case = await world.start(flow(Sequence(name="s", body=(first, A, then))))
    await apply(world, case, mend(Primitive.WRITE, "case", values={"n": 5}))
    await world.take()
    await world.report(a=Outcome())
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "5"}


async def test_write_puts_values_into_an_item_that_has_not_gone_out(world: World) -> None:  # EX-4
    case = await world.start(flow(Sequence(name="s", body=(UserTask(name="a", role="r", data={"n": 1}),))))
    await apply(world, case, mend(Primitive.WRITE, values={"n": 2}), mend(Primitive.RESTART, with_={"n": 3}), item="a")

    async def offered() -> Any:
        return await world.domain.worklist(case=case, state="offered")

    [task] = await world.until(offered)
    assert task.data == {"n": 3}


# Compensate


async def test_compensate_runs_worklets_at_once_and_the_next_step_waits_for_all(world: World) -> None:
    # EX-2 compensate, EX-3, EX-4
    for name in ("small", "large"):
        body = JobActivity(name=name, command="true", env={"N": "${{ inputs.n }}"})
        made = flow(body, name, inputs={"n": Input()}, outputs={"seats": f"${{{{ jobs.{name}.outputs }}}}"})
        await world.domain.deploy(made)
    given = {"n": "${{ case.data.n }}"}
    calls = tuple(Call(name=name, flow=name, inputs=given) for name in ("small", "large"))
    back = mend(Primitive.WRITE, "case", values={"n": "${{ jobs.small.outputs.seats + jobs.large.outputs.seats }}"})
    steps = (
        mend(Primitive.SUSPEND, "case"),
        Parallel(name="both", branches=calls),
        back,
        mend(Primitive.CONTINUE, "case"),
    )
    then = JobActivity(name="b", command="true", env={"N": "${{ inputs.n }}"})
    case = await world.start(flow(Sequence(name="s", body=(HOLD, then)), inputs={"n": Input()}), n=7)
    decision = await apply(world, case, *steps, wait=False)
    assert await world.take(items=2) == ["large", "small"]
    assert {each.spec.env["N"] for each in world.pilot.held} == {"7"}
    await world.report(small=Outcome(outputs=10))
    assert await world.status(case) == "suspended"
    await world.report(large=Outcome(outputs=30))
    await world.until_status(case, "running")
    assert (await world.runtime.exceptions.decisions.get(decision.id)).state == "done"
    await release(world)
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "40"}


# Jobs


async def failing(world: World, *steps: Any, job: JobActivity = A, fault: Outcome = FAILED, **more: Any) -> CaseId:
    """A case whose job fails once, with these steps for its abort."""
    repair = exlet("repair", *steps, **more)
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation == 1", "repair"), exlets=[repair]))
    case = await world.start(flow(job))
    await world.take()
    await world.report(a=fault)
    return case


async def test_resubmit_changes_what_the_exlet_says_and_keeps_the_id_that_the_flow_knows(world: World) -> None:
    # FM-8 re-submit
    more = mend(
        Primitive.RESUBMIT,
        resources={"memory_bytes": "${{ job.memory_bytes + 100 }}", "site": ""},
        env={"AGAIN": "1"},
        avoid_hosts=["bad-host"],
    )
    case = await failing(world, more)
    await world.take()
    [again] = world.pilot.held
    assert again.job == f"{case}/1~2"
    assert (again.spec.resources.memory_bytes, again.spec.env) == (100, {"AGAIN": "1"})
    assert again.spec.resources.avoid_hosts == ("bad-host",)
    await world.report(a=Outcome(outputs="well"))
    assert await world.status(case) == "completed"
    assert (await world.decision(case)).result == "recovered"
    [count] = (await world.case(case)).counts
    assert (count.done, count.failed, count.mended) == (1, 0, 1)


async def test_only_the_repair_after_which_the_job_ended_well_has_recovered_it(world: World) -> None:
    again = exlet("again", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("job.generation < 4", "again"), exlets=[again]))
    case = await world.start(flow(JobActivity(name="a", command="x")))

    async def results() -> list[str]:
        decided = await world.domain.decisions(DecisionQuery(case=case))
        return [each.result for each in sorted(decided, key=lambda each: each.at)]

    await world.take()
    await world.report(a=FAILED)
    await world.take()
    assert await results() == ["tried-again"], "nobody knows yet what it comes to"
    await world.report(a=FAILED)
    await world.take()
    assert await results() == ["failed", "tried-again"], "the first try failed as well"
    await world.report(a=Outcome())
    assert await world.status(case) == "completed"
    assert await results() == ["failed", "recovered"]


@pytest.mark.parametrize("way", ["same", "parameters", "replica", "target"])
async def test_restage_brings_the_files_again_in_one_of_four_ways(world: World, way: str) -> None:
    # FM-8 re-stage a b c d
    fault = Fault(name="missingInput", category=Category.DATA, message="x did not arrive", file="x", stage="stage-in")
    settings: dict[str, Any] = {"way": way, **({"parameters": {"tries": 3}} if way == "parameters" else {})}
    await failing(world, mend(Primitive.RESTAGE, **settings), fault=Outcome(fault=fault))
    assert await world.take() == ["a"], "also to another target, where there is but one host"
    if way == "parameters":
        assert world.pilot.held[0].spec.transfer == {"tries": 3}


@pytest.mark.parametrize(("hosts", "avoided", "leaves"), [(1, [], ""), (2, [], "a"), (2, ["b"], ""), (3, ["b"], "a")])
def test_another_target_is_another_host_if_there_is_one(hosts: int, avoided: list[str], leaves: str) -> None:  # FM-8
    facts: dict[str, Any] = {"job": {"host": "a", "avoid_hosts": avoided}, "capacity": {"hosts": hosts}}
    made = Decision(id="d", case=CaseId("c"), flow="f", type=ExceptionType.ABORT, at=1, state="running", context=facts)
    assert host_to_leave(made) == leaves


async def test_retry_later_waits_in_a_level_and_then_submits_again(world: World) -> None:
    # FM-8, AD-4
    case = await failing(world, mend(Primitive.RETRY_LATER, level=1, wait_ms=1_500, env={"N": "2"}))

    async def waiting() -> bool:
        return world.runtime.levels.counts()[1] == 1

    await world.until(waiting)
    assert (await world.decision(case)).state == "running"
    await world.take()
    assert world.pilot.held[0].spec.env == {"N": "2"}
    assert world.runtime.levels.counts()[1] == 0
    await world.report(a=Outcome())
    assert (await world.until_decided(case, "done")).result == "recovered"


@pytest.mark.parametrize("do", [Primitive.REPOLL, Primitive.REREGISTER])
async def test_repoll_and_reregister_ask_again_for_what_is_under_way(world: World, do: Primitive) -> None:
    # FM-8 re-poll, re-register
    way = Submission.POLL if do is Primitive.REPOLL else Submission.NOTIFY
    case = await world.start(flow(JobActivity(name="a", command="true", submission=way)))
    await world.take()
    await apply(world, case, mend(do), item="a")
    await world.report(a=Outcome())
    await world.until_status(case, "completed")


async def test_what_is_no_job_is_started_again_instead_of_submitted(world: World) -> None:  # FM-8
    repair = exlet("repair", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("history.case.of_task < 1", "repair"), exlets=[repair]))
    case = await world.start(flow(UserTask(name="a", role="clerk")))
    [task] = await world.domain.worklist(case=case)
    await world.domain.reject(task.id, who="ann")

    async def offered() -> Any:
        return await world.domain.worklist(case=case, state="offered")

    [again] = await world.until(offered)
    assert again.id != task.id
    assert (await world.decision(case)).result == "restarted"


# The rest


async def test_notify_tells_the_administrator_with_what_the_exlet_says(world: World) -> None:
    # EX-9
    case = await failing(
        world, mend(Primitive.NOTIFY, message="${{ item.name }} failed: ${{ fault.message }}", data=[1])
    )
    await world.until_status(case, "failed")
    told = [each.message for each in await world.domain.notices()]
    assert any("a failed: it ended with exit code 3 ([1])" in message for message in told)


async def test_a_primitive_that_makes_no_sense_fails_the_exlet_and_the_failure_is_passed_on(world: World) -> None:
    # EX-2
    case = await failing(world, mend(Primitive.RESUBMIT, resources={"memory_bytes": "${{ 'mu' + 'ch' }}"}))
    await world.until_status(case, "failed")
    decision = await world.decision(case)
    assert (decision.state, decision.result) == ("failed", "passed-on")
    assert "memory_bytes is 'much'" in decision.note


async def test_an_item_that_is_gone_leaves_a_primitive_nothing_to_do(world: World) -> None:
    # EX-2
    case = await world.start(flow(BOTH))
    await apply(world, case, mend(Primitive.REMOVE, item="b"))
    decision = await apply(world, case, mend(Primitive.RESTART, item="b"))
    assert decision.state == "done"
    assert await world.take() == ["a"]


async def test_another_item_of_the_case_can_be_named(world: World) -> None:
    # EX-2
    case = await world.start(flow(BOTH))
    await apply(world, case, mend(Primitive.COMPLETE, item="b"), item="a")
    assert (await states(world, case))["b"] == "completed"
    assert await world.take() == ["a"]
