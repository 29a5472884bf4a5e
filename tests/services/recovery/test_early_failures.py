"""An item that fails before anything is ordered is seen by the rules too: with its fault, and what they conclude."""

from mendflow.core.model.faults import Category
from mendflow.core.model.flow import Catch, JobActivity, Scope, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT, NO_PROJECT, Sight, project_name_flaw
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
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


async def test_se_1_a_case_that_is_over_at_once_fails_in_its_own_project(world: World) -> None:
    fix = exlet("fix", mend(Primitive.RESTART))
    await world.domain.deploy(flow(BAD), project="alpha")
    await world.put(rule_set("f", ExceptionType.ABORT, ('fault.category == "flow"', "fix"), exlets=[fix]))
    case = (await world.domain.start("f", {}, who="me")).id
    decision = await world.until_decided(case, "passive")
    assert decision.project == "alpha"
    assert [trial.exlet for trial in decision.trials] == ["fix"], "the rules of its project are asked"
    assert [group.count for group in await world.domain.failures(sight=Sight(frozenset({"alpha"})))] == [1]
    assert await world.domain.failures(sight=Sight(frozenset({DEFAULT_PROJECT}))) == []


async def test_se_1_what_is_told_of_a_case_that_is_over_is_of_its_project_and_of_an_unknown_one_of_none(
    memory: World,
) -> None:
    await memory.domain.deploy(flow(BAD), project="alpha")
    case = (await memory.domain.start("f", {}, who="me")).id
    await memory.until_status(case, "failed")

    async def project_of(id: str) -> str:
        event = ExceptionEvent(id=f"{id}/1", type=ExceptionType.ABORT, case=CaseId(id), flow="f")
        return await memory.runtime.exceptions.project_of(event)

    assert (await project_of(case), await project_of("unknown-1")) == ("alpha", NO_PROJECT)
    assert project_name_flaw(NO_PROJECT), "no project can be called so"
