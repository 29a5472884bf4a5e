"""What an engine, a rule and a person may rely on, one test for each promise, named after the requirement's row."""

from typing import Any

import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.flow import JobActivity, Sequence, UserTask
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision, ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.repair_views import RepairRequest
from mendflow.services.base.alerts import ProblemFound
from tests.services.recovery.kit import World, exlet, flow, mend, rule_set
from tests.services.recovery.small_engine import SmallEngine

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
ASK = UserTask(name="ask", role="clerk", data={"color": "red"})


async def an_engine(world: World, flow: str = "ship") -> SmallEngine:
    await world.runtime.engines.register("north")
    return SmallEngine("north", world.runtime.engines, flow=flow)


def event(type: ExceptionType, id: str = "e-1", item: str = "sail", **more: Any) -> ExceptionEvent:
    return ExceptionEvent(
        id=id, type=type, case=CaseId("s-1"), flow="ship", item=ItemId(item) if item else None, **more
    )


async def decision_in(world: World, state: str) -> Decision:
    async def found() -> list[Decision]:
        return [each for each in await world.runtime.exceptions.decisions.search([]) if each.state == state]

    [first, *_] = await world.until(found, state)
    assert isinstance(first, Decision)
    return first


# EX-10: engines of other systems


@pytest.mark.parametrize(
    ("facts", "where"),
    [
        ({"wether": "bad"}, "facts.wether"),
        ({"case": {"dta": {}}}, "facts.case"),
        ({"case": {"items": [{"item": "a", "task": "a", "kind": "", "status": "", "colour": 1}]}}, "facts.case"),
        ({"case": {"is_started_here": True}}, "facts.case"),
        ({"fault": {"mesage": "x"}}, "facts.fault.mesage"),
        ({"fault": {"category": "weather"}}, "facts.fault"),
        ({"job": 3}, "facts.job"),
        ({"timed_out": 3}, "facts.timed_out"),
    ],
)
async def test_ex_10_unknown_keys_of_an_event_are_refused_by_name(
    memory: World, facts: dict[str, Any], where: str
) -> None:
    north = await an_engine(memory)
    with pytest.raises(InvalidRequest) as refused:
        await north.service.tell("north", event(ExceptionType.ABORT, facts=facts))
    assert refused.value.fields["field"] == where
    assert await memory.runtime.exceptions.decisions.search([]) == []


async def test_ex_10_the_fault_of_the_facts_is_the_fault(memory: World) -> None:
    north = await an_engine(memory)
    await memory.put(
        rule_set("ship", ExceptionType.ABORT, ("fault.exit_code == 9", "x"), exlets=[exlet("x", A)], task="sail")
    )
    told = event(ExceptionType.ABORT, facts={"fault": {"message": "a storm", "exit_code": 9}})
    assert await north.service.tell("north", told) is True
    found = await decision_in(memory, "running")
    assert found.fault is not None and (found.fault.message, found.fault.exit_code) == ("a storm", 9)


async def test_ex_10_an_item_that_was_never_told_of_is_restarted_by_order(world: World) -> None:
    north = await an_engine(world)
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("ship", ExceptionType.ABORT, ("true", "again"), exlets=[again], task="sail"))
    await north.service.tell("north", event(ExceptionType.ABORT))

    async def ordered() -> Any:
        return await north.service.orders("north")

    [order] = await world.until(ordered)
    assert (order.call, order.item) == ("restart", "sail")
    north.service.done("north", order.id, False)
    over = await decision_in(world, "done")
    assert "has no such item sail under way" in over.note
    assert over.result != "restarted"


async def test_ex_10_a_selection_ends_the_item_with_what_the_worklet_gave(world: World) -> None:
    north = await an_engine(world)
    await world.domain.deploy(flow(A, "help", outputs={"port": "Oslo"}))
    await world.put(rule_set("ship", ExceptionType.SELECTION, ("true", "help"), task="sail"))
    assert await north.service.tell("north", event(ExceptionType.SELECTION)) is True
    await world.take()
    await world.report(a=Outcome())

    async def ordered() -> Any:
        return await north.service.orders("north")

    [order] = await world.until(ordered)
    assert (order.call, order.item, order.with_["outputs"]) == ("complete", "sail", {"port": "Oslo"})
    await world.restart()
    north.service = world.runtime.engines
    await world.quiet()
    [again] = await north.service.orders("north")
    assert again == order
    north.service.done("north", again.id)
    assert (await decision_in(world, "done")).result == "completed"


async def test_ex_9_an_unknown_trigger_of_another_engine_suspends_and_tells(world: World) -> None:
    north = await an_engine(world)
    told = event(ExceptionType.CASE_EXTERNAL, item="", facts={"trigger": "pirates", "case": {"data": {"crew": 3}}})
    assert await north.service.tell("north", told) is True

    async def ordered() -> Any:
        return await north.service.orders("north")

    [order] = await world.until(ordered)
    [notice] = await world.runtime.notices.latest(10)
    assert "'pirates' was raised on north:s-1" in notice.message
    assert order.call == "suspend"
    north.service.done("north", order.id)

    async def explained() -> bool:
        return "'pirates' was raised" in (await world.domain.why("north:s-1")).sentence

    await world.until(explained)
    flee = exlet("flee", mend(Primitive.WRITE, "case", values={"fled": True}))
    await world.domain.mend("north:s-1", RepairRequest(exlet="flee", flow=flee), who="ann")
    calls: list[str] = []

    async def finished() -> bool:
        for each in await north.service.orders("north"):
            calls.append(each.call)
            north.service.done("north", each.id)
        return "release" in calls

    await world.until(finished)
    assert calls == ["write", "continue", "release"]


async def test_ex_11_a_case_of_another_engine_has_a_history_after_its_end(world: World) -> None:
    north = await an_engine(world)
    await north.start("s-1", ["load", "sail"], crew=3)
    view = await world.domain.case("north:s-1")
    assert (view.status, view.inputs) == ("completed", {"crew": 3})
    words = [(entry.what, entry.name) for entry in await world.domain.history("north:s-1")]
    assert words == [
        ("started", "ship"),
        ("beginning", "load"),
        ("beginning", "sail"),
        ("completing", "ship"),
        ("completed", "ship"),
    ]
    await world.restart()
    assert len(await world.domain.history("north:s-1")) == len(words)
    with pytest.raises(Conflict, match="north:s-1 is not running"):
        await world.domain.raise_trigger("north:s-1", "pirates", who="ann")


async def test_ex_10_a_case_of_the_same_name_may_begin_again_after_its_end(world: World) -> None:
    north = await an_engine(world)
    for _ in range(2):
        await north.start("s-1", ["load"])
        await world.restart()
        north.service = world.runtime.engines
    assert (await world.domain.case("north:s-1")).status == "completed"


# EX-1, EX-6: what conditions see, and when they err


async def test_ex_6_rules_at_the_end_of_a_case_see_what_its_items_gave(world: World) -> None:
    look = exlet("look", mend(Primitive.WRITE, "case", values={"seen": "yes"}))
    condition = "case.jobs.a.outputs.n > 3 && case.jobs.a.exit_code == 0"
    await world.put(rule_set("f", ExceptionType.CASE_POST, (condition, "look"), exlets=[look]))
    case = await world.start(flow(Sequence(name="s", body=(A, B))))
    await world.take()
    await world.report(a=Outcome(outputs={"n": 5}, exit_code=0))
    await world.take()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    [decision] = await world.decisions(case)
    assert (decision.type, decision.exlet) == (ExceptionType.CASE_POST, "look")


async def test_ex_6_a_condition_that_errs_is_told_of_and_alerts_when_it_errs_again_and_again(memory: World) -> None:
    found: list[str] = []

    memory.runtime.hub.subscribe(ProblemFound, lambda problem: found.append(problem.finding.sentence))
    await memory.put(rule_set("f", ExceptionType.ITEM_PRE, ("case.data.nowhere > 3", "x"), exlets=[exlet("x", B)]))
    for _ in range(3):
        case = await memory.start(flow(A))
        await memory.take()
        [decision] = await memory.decisions(case)
        assert decision.state == "ignored"
        assert "rule 0 of f erred and counted as not held" in decision.note or "nowhere" in decision.note
        assert decision.errors[0].rule == 0
    assert len(found) == 1 and "has erred 3 times" in found[0]


# EX-2: user tasks


async def offered(world: World) -> Any:
    async def there() -> Any:
        return await world.domain.worklist(state="offered")

    return (await world.until(there, "a task"))[0]


async def test_ex_2_a_suspended_task_cannot_be_completed_and_is_shown_as_suspended(world: World) -> None:
    case = await world.start(flow(ASK))
    task = await offered(world)
    await world.domain.suspend(case, "ask", who="ann")
    with pytest.raises(Conflict, match="is suspended, so it cannot be completed"):
        await world.domain.complete(task.id, None, who="bob")
    assert [item.state for item in await world.domain.items(case)] == ["suspended"]
    assert (await world.domain.item(case, "ask")).state == "suspended"
    await world.domain.resume(case, "ask", who="ann")
    await world.domain.complete(task.id, None, who="bob")
    await world.until_status(case, "completed")


async def test_ex_2_a_write_into_an_item_reaches_a_task_that_is_offered(world: World) -> None:
    case = await world.start(flow(ASK))
    await offered(world)
    paint = exlet("paint", mend(Primitive.WRITE, values={"color": "blue"}))
    await world.domain.mend(case, RepairRequest(exlet="paint", flow=paint, item="ask"), who="ann")

    async def painted() -> bool:
        [task] = await world.domain.worklist(state="offered")
        return bool(task.data == {"color": "blue"})

    await world.until(painted)
    await world.restart()
    assert await painted()


async def test_ex_11_a_decision_whose_id_ends_in_a_slash_is_found(memory: World) -> None:
    north = await an_engine(memory)
    await north.service.tell("north", event(ExceptionType.ABORT, id="e/"))
    for id in ("north:e/", "north:e"):
        assert (await memory.domain.decision(id)).id == "north:e/"
