"""Administration tasks: who asks, in which scenario, what is suggested, and what came of it."""

import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Call, Input, JobActivity
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import (
    AdministrationOutcome,
    AdministrationQuery,
    AdministrationTaskView,
    RejectRequest,
    RepairRequest,
)
from mendflow.services.recovery.administration import RuleRequest
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")
TELL = exlet("tell", mend(Primitive.NOTIFY, message="told"))


async def tasks(world: World, state: str = "") -> list[AdministrationTaskView]:
    return await world.domain.administration_tasks(AdministrationQuery(state=state))


async def closed(world: World, number: int = 1) -> list[AdministrationTaskView]:
    async def enough() -> list[AdministrationTaskView] | None:
        found = await tasks(world, "closed")
        return found if len(found) == number else None

    views: list[AdministrationTaskView] = await world.until(enough)
    return views


def outcome_of(view: AdministrationTaskView) -> AdministrationOutcome:
    assert view.outcome is not None
    return view.outcome


async def test_an_unknown_trigger_is_a_record_with_scenario_and_suggestion_until_it_is_handled(world: World) -> None:
    # EX-9
    case = await world.start(flow(A))
    await world.domain.raise_trigger(case, "flood", who="ann", scenario="the river rose", suggestion="move to the hill")
    [task] = await tasks(world, "open")
    assert (task.kind, task.asked_by, task.scenario, task.suggestion) == (
        *("unexpected-event", "ann", "the river rose"),
        "move to the hill",
    )
    assert (task.case, task.outcome) == (case, None)
    await world.domain.mend(case, RepairRequest(flow=TELL, condition='trigger == "flood"', note="hill"), who="bea")
    [done] = await closed(world)
    outcome = outcome_of(done)
    assert (outcome.by, outcome.exlet, outcome.rules, outcome.result) == ("bea", "tell", "f", "told")
    assert outcome.rule is not None, "a rule was made of it"
    assert (done.scenario, done.asked_by, outcome.note) == ("the river rose", "ann", "hill"), "the record is kept"
    assert await world.domain.administration_task(done.id) == done
    assert await tasks(world, "open") == []


async def test_letting_the_case_go_on_closes_the_task_of_its_trigger(world: World) -> None:  # EX-9
    case = await world.start(flow(A))
    await world.domain.raise_trigger(case, "flood", who="ann")
    [asked] = await tasks(world)
    assert asked.scenario == f"'flood' was raised on {case}, and no rule knows it"
    await world.domain.resume(case, who="bea")
    [done] = await closed(world)
    assert (outcome_of(done).by, outcome_of(done).exlet) == ("bea", "")
    assert outcome_of(done).note == "raised by ann; bea let the case go on"
    assert await world.status(case) == "running"


async def test_a_held_failure_is_a_record_and_another_try_is_its_outcome(world: World) -> None:  # EX-9
    case = await world.start(flow(A, on_unhandled="hold"))
    await world.pilot.sync(want=1)
    await world.pilot.exchange({"a": FAILED})

    async def held() -> list[AdministrationTaskView]:
        return await tasks(world, "open")

    [task] = await world.until(held)
    assert (task.kind, task.asked_by, task.item) == ("failure", "mendflow", "a")
    assert "it ended with exit code 3" in task.scenario and f"mendflow resume {case}" in task.suggestion
    await world.domain.cancel(case, who="bea")
    [done] = await closed(world)
    assert outcome_of(done).result == "nothing was done" and "asked for by bea" in outcome_of(done).note


async def test_an_item_without_a_worklet_is_a_record(world: World) -> None:  # EX-9
    case = await world.start(flow(Call(name="s", flow="")))

    async def waits() -> list[AdministrationTaskView]:
        return await tasks(world, "open")

    [task] = await world.until(waits)
    assert (task.kind, task.case, task.item) == ("no-worklet", case, "s")
    assert "no rule chooses a worklet for s in flow f" in task.scenario


async def test_a_rejected_choice_is_a_record_with_what_took_its_place(world: World) -> None:  # EX-8
    slow = exlet("slow", JobActivity(name="w", command="sleep"))
    await world.put(rule_set("f", ExceptionType.CASE_PRE, ("true", "slow"), exlets=[slow, TELL]))
    case = await world.start(flow(A, inputs={"n": Input()}), n=1)

    async def decided() -> list[str]:
        return [each.id for each in await world.domain.decisions() if each.case == case]

    [wrong] = await world.until(decided)
    await world.domain.reject_choice(RejectRequest(decision=wrong, exlet="tell", note="too slow"), who="ann")
    [done] = await closed(world)
    assert (done.kind, done.id, done.asked_by, done.scenario) == ("rejected-choice", wrong, "ann", "too slow")
    assert outcome_of(done).replaced_by == f"{wrong}!2"


async def ended_choice(world: World) -> str:
    """The decision of a rule that ran an exlet to its end."""
    await world.put(rule_set("f", ExceptionType.CASE_PRE, ("true", "tell"), exlets=[TELL]))
    case = await world.start(flow(A, inputs={"n": Input()}), n=1)

    async def ended() -> list[str]:
        return [each.id for each in await world.domain.decisions() if each.case == case and each.state == "done"]

    [decision] = await world.until(ended)
    return str(decision)


async def test_a_choice_is_rejected_without_knowing_the_right_one_and_an_author_answers(world: World) -> None:  # EX-8
    wrong = await ended_choice(world)
    before = await world.domain.decision(wrong)
    asked = await world.domain.reject_choice(RejectRequest(decision=wrong, note="nobody was told"), who="ann")
    assert (asked.id, asked.state, asked.result) == (wrong, before.state, before.result), "nothing else changes"
    [task] = await tasks(world, "open")
    assert (task.id, task.kind, task.state, task.asked_by, task.scenario, task.outcome) == (
        *(wrong, "rejected-choice", "open", "ann"),
        *("nobody was told", None),
    )
    assert f"mendflow rules reject {wrong} --exlet" in task.suggestion
    assert await tasks(world, "closed") == await tasks(world, "running") == [], "it is listed once"
    assert [each.id for each in await tasks(world)] == [wrong]
    with pytest.raises(Conflict, match="ann has asked for that already"):
        await world.domain.reject_choice(RejectRequest(decision=wrong, note="me too"), who="bob")
    await world.domain.reject_choice(RejectRequest(decision=wrong, note="use mail", exlet="tell"), who="bea")
    [done] = await closed(world)
    assert (done.kind, done.asked_by, done.scenario) == ("rejected-choice", "ann", "nobody was told")
    assert (outcome_of(done).by, outcome_of(done).replaced_by) == ("bea", f"{wrong}!2")
    assert await tasks(world, "open") == []


async def test_a_rule_made_from_the_decision_answers_the_request(world: World) -> None:  # EX-8
    wrong = await ended_choice(world)
    await world.domain.reject_choice(RejectRequest(decision=wrong, note="not for n = 1"), who="ann")
    await world.runtime.administration.add_rule(
        RuleRequest(condition="data.n == 1", exlet="quiet", steps=exlet("quiet"), decision=wrong), who="bea"
    )
    [done] = await closed(world)
    assert (done.kind, outcome_of(done).by) == ("rejected-choice", "bea")
    assert "bea added a rule: data.n == 1" in outcome_of(done).note


async def test_a_request_is_withdrawn_with_the_reason(world: World) -> None:
    wrong = await ended_choice(world)
    with pytest.raises(InvalidRequest, match="say what was wrong"):
        await world.domain.reject_choice(RejectRequest(decision=wrong), who="ann")
    with pytest.raises(Conflict, match="nobody waits for an answer"):
        await world.domain.reject_choice(RejectRequest(decision=wrong, withdraw=True, note="fine"), who="bea")
    await world.domain.reject_choice(RejectRequest(decision=wrong, note="too loud"), who="ann")
    with pytest.raises(InvalidRequest, match="say why the choice stands"):
        await world.domain.reject_choice(RejectRequest(decision=wrong, withdraw=True), who="bea")
    await world.domain.reject_choice(RejectRequest(decision=wrong, withdraw=True, note="it is meant so"), who="bea")
    [done] = await closed(world)
    assert (done.kind, outcome_of(done).by) == ("rejected-choice", "bea")
    assert "it is meant so" in outcome_of(done).note


async def test_bad_requests_are_refused_with_what_to_do(world: World) -> None:
    case = await world.start(flow(A))
    with pytest.raises(InvalidRequest, match="scenario has 5001 characters, and at most 5000"):
        await world.domain.raise_trigger(case, "flood", who="ann", scenario="x" * 5_001)
    with pytest.raises(NotFound, match="mendflow worklist administration --all"):
        await world.domain.administration_task("nothing")
