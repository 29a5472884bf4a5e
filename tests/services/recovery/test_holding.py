"""What is held while an exlet runs, what goes on beside it, and what happens when the exlet itself fails."""

from typing import Any

from msgspec.structs import replace

from mendflow.core.model.flow import Call, Input, JobActivity, Parallel, Sequence, Throw, UserTask
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.repair_views import RepairRequest
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet
from mendflow.services.recovery.repair_runner import DEPTH_MAX
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set, tree

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
HOLD = UserTask(name="hold", role="clerk")


async def release(world: World) -> None:
    async def offered() -> Any:
        return await world.domain.worklist(state="offered")

    [task] = await world.until(offered)
    await world.domain.complete(task.id, None, who="ann")


async def offered(world: World) -> None:
    async def there() -> Any:
        return await world.domain.worklist(state="offered")

    await world.until(there, "a task")


async def test_an_item_suspended_before_it_goes_out_does_not_go_out_until_it_is_continued(world: World) -> None:
    # EX-2: the order of effects
    steps = (mend(Primitive.SUSPEND), HOLD, mend(Primitive.CONTINUE))
    rules = rule_set("f", ExceptionType.ITEM_PRE, ("true", "wait"), exlets=[exlet("wait", *steps)])
    await world.put(rules)
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await offered(world)
    assert await world.take() == ["b"]
    await world.pilot.sync(want=4)
    assert [each.spec.item for each in world.pilot.held] == ["b"]
    await release(world)
    assert await world.take(items=2) == ["a", "b"]
    assert (await world.until_decided(case, "done")).released is False


async def test_a_worklet_runs_beside_an_item_that_no_primitive_suspended(world: World) -> None:
    # EX-2: compensate may run at the same time as the parent
    rules = rule_set("f", ExceptionType.ITEM_PRE, ("true", "beside"), exlets=[exlet("beside", HOLD)])
    await world.put(rules)
    case = await world.start(flow(A))
    await offered(world)
    assert await world.take() == ["a"], "the item goes out while the exlet waits for a person"
    await world.report(a=Outcome())
    assert await world.status(case) == "completed"
    await release(world)
    assert (await world.until_decided(case, "done")).released


async def test_a_suspended_item_stays_suspended_after_its_exlet_has_ended(world: World) -> None:
    # EX-2 suspend
    await world.put(
        rule_set("f", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[exlet("stop", mend(Primitive.SUSPEND))])
    )
    case = await world.start(flow(A))
    await world.until_decided(case, "done")
    await world.pilot.sync(want=4)
    assert world.pilot.held == []
    await world.domain.resume(case, "a", who="ann")
    assert await world.take() == ["a"]


async def test_a_case_suspended_before_it_begins_begins_when_it_is_continued(world: World) -> None:
    # EX-1 EX-2
    stop = exlet("stop", mend(Primitive.SUSPEND, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_PRE, ("true", "stop"), exlets=[stop]))
    case = await world.start(flow(A))
    await world.until_decided(case, "done")
    assert await world.domain.items(case) == []
    await world.domain.resume(case, who="ann")
    assert await world.take() == ["a"]


async def test_the_end_of_a_case_can_be_held_and_continued(world: World) -> None:
    # EX-1 CasePostConstraint, EX-2
    steps = (mend(Primitive.SUSPEND, "case"), HOLD, mend(Primitive.CONTINUE, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("true", "wait"), exlets=[exlet("wait", *steps)]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=Outcome())
    await offered(world)
    assert await world.status(case) == "running"
    await release(world)
    await world.until_status(case, "completed")


async def test_a_case_can_be_removed_at_its_end(world: World) -> None:
    # EX-1 CasePostConstraint, EX-2 remove case
    gone = exlet("gone", mend(Primitive.REMOVE, "case"))
    await world.put(rule_set("f", ExceptionType.CASE_POST, ("true", "gone"), exlets=[gone]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "cancelled")


async def test_a_held_failure_is_passed_on_when_nothing_came_of_the_exlet(world: World) -> None:
    # EX-1 ItemAbort
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "look"), exlets=[exlet("look", HOLD)]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await offered(world)
    assert await world.status(case) == "running", "the flow hears nothing while the exlet waits"
    await release(world)
    await world.until_status(case, "failed")
    assert (await world.decision(case)).result == "passed-on"


async def test_when_an_exlet_fails_what_was_held_goes_on_and_the_administrator_is_told(world: World) -> None:
    bad = exlet("bad", Throw(name="no", fault="no", message="this exlet is wrong"))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(A))
    assert await world.take() == ["a"]
    decision = await world.decision(case)
    assert (decision.state, decision.result) == ("failed", "failed")
    assert "this exlet is wrong" in decision.note
    assert any("this exlet is wrong" in notice.message for notice in await world.domain.notices())


async def test_a_failed_exlet_passes_the_failure_on_to_the_flow(world: World) -> None:
    bad = exlet("bad", Throw(name="no", fault="no"))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "bad"), exlets=[bad]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    fault = (await world.case(case)).fault
    assert fault is not None
    assert fault.name == "exit"


async def test_an_exlet_that_is_nowhere_holds_nothing(memory: World) -> None:
    rules = rule_set("f", ExceptionType.SELECTION, ("true", "nowhere"))
    await memory.put(rules)
    case = await memory.start(flow(Call(name="a")))
    await memory.until_status(case, "failed")
    fault = (await memory.case(case)).fault
    assert fault is not None
    assert "nowhere" in fault.message


async def test_a_selection_without_a_rule_waits_for_a_person_who_chooses(world: World) -> None:
    # EX-8
    await world.domain.deploy(flow(B, "help"))
    case = await world.start(flow(Call(name="a")))

    async def waiting() -> list[Decision]:
        return [each for each in world.runtime.exceptions.decisions.open.values() if each.state == "waiting"]

    [decision] = await world.until(waiting)
    assert "no rule chooses a worklet for a" in decision.note
    told = await world.domain.why(case)
    assert any("waits for a worklet" in fact for fact in told.facts)
    await world.restart()
    await world.quiet()
    assert await world.status(case) == "running"
    await world.domain.mend(case, RepairRequest(exlet="help"), who="ann")
    await world.take()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    [over] = await world.decisions(case)
    assert (over.state, over.exlet, over.result) == ("done", "help", "completed")


async def test_a_selection_that_waits_is_taken_up_by_a_new_rule(memory: World) -> None:
    # EX-8
    await memory.domain.deploy(flow(B, "help"))
    case = await memory.start(flow(Call(name="a")))

    async def waiting() -> list[Decision]:
        return [each for each in memory.runtime.exceptions.decisions.open.values() if each.state == "waiting"]

    [decision] = await memory.until(waiting)
    await memory.put(rule_set("f", ExceptionType.SELECTION, ("true", "help")))
    assert await memory.runtime.administration.apply(decision.id, who="ann") is not None
    await memory.take()
    await memory.report(b=Outcome())
    await memory.until_status(case, "completed")


async def test_a_selection_of_what_is_nowhere_or_cannot_begin_has_failed(world: World) -> None:
    # EX-8
    await world.domain.deploy(flow(B, "demanding", inputs={"n": Input(required=True)}))
    for chosen, said in (("nowhere", "no flow"), ("demanding", "n")):
        await world.put(rule_set("f", ExceptionType.SELECTION, ("true", chosen)))
        case = await world.start(flow(Call(name="a")))
        await world.until_status(case, "failed")
        [first] = [each for each in await world.decisions(case) if each.type is ExceptionType.SELECTION]
        assert (first.state, first.result) == ("failed", "failed")
        assert said in first.note
        fault = (await world.case(case)).fault
        assert fault is not None
        assert fault.message == first.note
    assert world.runtime.exceptions.decisions.open == {}


async def test_exlets_are_watched_like_any_other_case_to_a_bounded_depth(memory: World) -> None:
    # EX-4: to any depth, but an exlet whose own failure calls for the same exlet must not go on for ever
    again = exlet("again", JobActivity(name="try", command="false"))
    rules = RuleSet(
        name=DEFAULT_RULES, trees={ExceptionType.ABORT: {"*": tree(("true", "again"))}}, exlets={"again": again}
    )
    await memory.put(rules)
    case = await memory.start(flow(A))
    for _ in range(DEPTH_MAX + 1):
        await memory.take()
        await memory.pilot.exchange({each.spec.item: FAILED for each in memory.pilot.held})
        await memory.quiet()
    await memory.until_status(case, "failed")
    deepest = CaseId(case + ".x1" * DEPTH_MAX)
    assert await memory.status(deepest) == "failed"
    assert "exlets mend exlets" in (await memory.decision(deepest)).note


async def test_a_worklet_of_an_exlet_is_mended_by_rules_of_its_own(world: World) -> None:
    # EX-4
    await world.domain.deploy(flow(B, "worklet"))
    await world.put(
        rule_set("f", ExceptionType.ABORT, ("true", "fix"), exlets=[exlet("fix", Call(name="w", flow="worklet"))])
    )
    once = exlet("once", mend(Primitive.RESUBMIT))
    await world.put(rule_set("worklet", ExceptionType.ABORT, ("true", "once"), exlets=[once], task="b"))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    assert await world.take() == ["b"]
    await world.report(b=FAILED)
    assert await world.take() == ["b"]
    await world.report(b=Outcome())
    assert (await world.until_decided(case, "done")).exlet == "fix"
    assert (await world.decision(f"{case}.x1.1")).result == "recovered"


async def test_a_rule_on_trial_is_recorded_and_does_nothing(world: World) -> None:
    # EX-7
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    trial = tree(Rule(id=3, condition="true", exlet="stop", passive=True))
    await world.put(RuleSet(name="f", trees={ExceptionType.ITEM_PRE: {"a": trial}}, exlets={"stop": stop}))
    case = await world.start(flow(A))
    assert await world.take() == ["a"]
    decision = await world.decision(case)
    assert (decision.state, decision.exlet) == ("passive", "")
    assert [(each.rule, each.exlet) for each in decision.trials] == [(3, "stop")]


async def test_the_house_rules_are_asked_when_the_flows_own_conclude_nothing(world: World) -> None:
    # EX-5
    own, house = exlet("own", mend(Primitive.COMPLETE)), exlet("house", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("fault.exit_code == 4", "own"), exlets=[own]))
    shipped = RuleSet(name=DEFAULT_RULES, trees={ExceptionType.ABORT: {"*": tree(("job.generation == 1", "house"))}})
    await world.put(RuleSet(name=DEFAULT_RULES, trees=shipped.trees, exlets={"house": house}))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.take()
    said = (await world.decision(case)).conclusion
    assert said is not None
    assert (said.rules, said.rule, [step.held for step in said.trail]) == (DEFAULT_RULES, 0, [True])


async def test_an_attempt_that_the_queue_tries_again_is_asked_of_the_flows_own_rules_alone(world: World) -> None:
    # EX-1 ItemAbort: every failed attempt
    house = exlet("house", mend(Primitive.COMPLETE))
    await world.put(
        RuleSet(
            name=DEFAULT_RULES, trees={ExceptionType.ABORT: {"*": tree(("true", "house"))}}, exlets={"house": house}
        )
    )
    case = await world.start(flow(JobActivity(name="a", command="true", retries=1)))
    await world.take()
    await world.report(a=FAILED)
    assert [each.result for each in await world.decisions(case)] == ["retried"]
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "completed")


async def test_every_abort_is_recorded_with_what_it_has_in_common_with_others(world: World) -> None:
    # EX-11
    assert FAILED.fault is not None
    cases = []
    for number in range(3):
        cases.append(await world.start(flow(A)))
        await world.take()
        await world.report(a=Outcome(fault=replace(FAILED.fault, message=f"exit code {number} of 9")))
    found = [(await world.decision(case)) for case in cases]
    assert {each.state for each in found} == {"ignored"}
    assert len({each.signature for each in found}) == 1
    assert found[0].context["fault"]["exit_code"] == 3


async def test_an_exlets_case_is_linked_to_what_it_mends(world: World) -> None:
    # EX-11
    await world.put(
        rule_set("f", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[exlet("stop", mend(Primitive.SUSPEND))])
    )
    case = await world.start(flow(Sequence(name="s", body=(A,))))
    await world.until_decided(case, "done")
    [view] = await world.exlets(case)
    assert (view.id, view.mends, view.mends_item, view.decision) == (f"{case}.x1", case, "a", f"{case}/1/item-pre")


async def test_what_is_not_out_yet_cannot_be_submitted_again_and_the_repair_says_so(world: World) -> None:
    # FM-8
    again = exlet("again", mend(Primitive.RESUBMIT, item="a", env={"MODE": "second"}))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    decided = await world.until_decided(case, "failed")
    assert "no submission to make again" in decided.note
    assert decided.result != "recovered"
    assert await world.take() == ["a"]
