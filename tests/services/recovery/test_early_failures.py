"""An item that fails before anything is ordered is seen by the rules too: with its fault, and what they conclude."""

from mendflow.core.model.faults import Category
from mendflow.core.model.flow import Catch, JobActivity, Scope, Sequence
from mendflow.core.model.repair import ExceptionType, Primitive
from tests.services.recovery.kit import World, exlet, flow, mend, rule_set

BAD = JobActivity(name="a", command="echo ${{ jobs.nobody.outputs.n }}")


async def test_an_item_whose_inputs_cannot_be_worked_out_is_an_abort_with_its_category(world: World) -> None:
    # FM-12 EX-1 ItemAbort: every failure
    case = await world.start(flow(Sequence(name="s", body=(BAD,))))
    await world.until_status(case, "failed")
    decision = await world.until_decided(case, "ignored")
    assert (decision.type, decision.item, decision.state) == (ExceptionType.ABORT, "a", "ignored")
    assert decision.fault is not None
    assert decision.fault.category is Category.FLOW
    assert decision.context["fault"]["category"] == "flow"
    assert "before anything was ordered" in decision.note
    [group] = await world.domain.failures()
    assert (group.count, group.category, group.unhandled) == (1, "flow", 1)
    assert any(entry.decision == decision.id for entry in await world.domain.history(case))
    assert world.runtime.exceptions.decisions.open == {}


async def test_what_rules_conclude_of_it_is_recorded_and_the_flows_own_handlers_go_on(world: World) -> None:
    # FM-12
    fix = exlet("fix", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ('fault.category == "flow"', "fix"), exlets=[fix]))
    handled = Scope(name="try", body=BAD, catches=(Catch(body=JobActivity(name="b", command="true")),))
    case = await world.start(flow(handled))
    assert await world.take() == ["b"]
    decision = await world.until_decided(case, "passive")
    assert (decision.state, [trial.exlet for trial in decision.trials]) == ("passive", ["fix"])
    assert await world.exlets(case) == []


async def test_an_item_that_an_exlet_makes_fail_is_not_another_failure(world: World) -> None:
    fail = exlet("fail", mend(Primitive.FAIL))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "fail"), exlets=[fail]))
    case = await world.start(flow(JobActivity(name="a", command="true")))
    await world.until_status(case, "failed")
    await world.quiet()
    assert [each.type for each in await world.decisions(case)] == [ExceptionType.ITEM_PRE]
