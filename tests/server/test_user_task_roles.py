"""A user task is ended by its role, wherever it waits: in the flow itself, or inside an item of it, at any depth."""

from typing import Final

import pytest

from mendflow.core.model.errors import Forbidden, NotFound
from mendflow.core.model.flow import Activity, Call, Flow, ForEach, JobActivity, Parallel, PrimitiveStep, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, RejectRequest, RepairRequest
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.views import UserTaskView
from mendflow.server.runner import HttpServer
from tests.patience import until
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs, job_flow
from tests.server.people import As, KnownPeople

APPROVE: Final = UserTask(name="approve", role="reviewers", title="May it go out?")
ENDING: Final = (Primitive.COMPLETE, Primitive.FAIL, Primitive.REMOVE, Primitive.RESTART, Primitive.RESUBMIT)
REFUSED: Final = "this user task is for the role 'reviewers'"


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


def exlet(*steps: Activity, name: str = "mended") -> Flow:
    body = steps[0] if len(steps) == 1 else Parallel(name="both", branches=steps)
    return Flow(name=FlowName(name), body=body, exlet=True)


def step(do: Primitive, item: str = "") -> PrimitiveStep:
    return PrimitiveStep(name=f"do-{do.value}", do=do, item=item)


async def waiting(people: As, body: Activity) -> tuple[str, UserTaskView]:
    """A case of ann's with this body, and the task that it waits for: in a flow that is called, `asks`, or in one that
    calls that, `outer`."""
    for name, of in (("asks", APPROVE), ("outer", Call(name="inner", flow="asks")), ("top", body)):
        await people("ann").deploy(Flow(name=FlowName(name), body=of))
    case = (await people("ann").start("top")).id
    return case, await open_task(people)


async def open_task(people: As) -> UserTaskView:
    async def found() -> UserTaskView | None:
        return next(iter(await people("root").worklist(state="offered")), None)

    task: UserTaskView = await until(found)
    return task


async def is_offered(people: As, task: UserTaskView) -> bool:
    return [each.id for each in await people("root").worklist(state="offered")] == [task.id]


CALLS: Final[dict[str, tuple[Activity, str]]] = {
    "called": (Call(name="sub", flow="asks"), "sub"),
    "called-by-a-called-one": (Call(name="sub", flow="outer"), "sub"),
    "called-in-a-loop": (ForEach(name="each", items=[1], body=Call(name="sub", flow="outer")), "sub[0]"),
}


@pytest.mark.parametrize("where", CALLS)
async def test_nobody_else_ends_the_call_in_which_a_user_task_waits(people: As, where: str) -> None:  # SE-1
    body, item = CALLS[where]
    case, task = await waiting(people, body)
    for who in ("ann", "olga"):
        with pytest.raises(Forbidden, match=REFUSED):
            await people(who).cancel(case, item)
    for do in ENDING:
        with pytest.raises(Forbidden, match=REFUSED):
            await people("ann").mend(case, RepairRequest(flow=exlet(step(do)), item=item))
    assert await is_offered(people, task)
    assert (await people("rita").complete(task.id)).ended_by == "rita"
    assert (await people("root").wait(case)).status == "completed"


@pytest.mark.parametrize("where", CALLS)
async def test_nor_does_an_exlet_that_names_the_call_itself(people: As, where: str) -> None:  # SE-1
    body, _ = CALLS[where]
    case, task = await waiting(people, body)
    for do in ENDING:
        around = await people("ann").mend(case, RepairRequest(flow=exlet(step(do, "sub"), name=do.value)))
        ended = await people("root").wait(around.exlet_case or "")
        assert ended.status == "failed" and ended.fault is not None
        assert f"{task.case}:approve is a user task for the role 'reviewers'" in ended.fault.message
    assert await is_offered(people, task)


async def test_nor_does_an_exlet_that_is_there(people: As) -> None:  # SE-1
    case, task = await waiting(people, Call(name="sub", flow="asks"))
    await people("ann").put_rules(RuleSet(name="top", exlets={"fc": exlet(step(Primitive.COMPLETE), name="fc")}))
    with pytest.raises(Forbidden, match=REFUSED):
        await people("olga").mend(case, RepairRequest(exlet="fc", item="sub"))
    assert await is_offered(people, task)


async def test_a_called_case_is_part_of_the_one_that_is_ended_as_a_whole(people: As) -> None:  # SE-1
    case, task = await waiting(people, Call(name="sub", flow="outer"))
    called = task.case.rpartition(".")[0]
    for part in (called, task.case):
        with pytest.raises(Forbidden, match=REFUSED):
            await people("olga").cancel(part)
        removes = PrimitiveStep(name="r", do=Primitive.REMOVE, target="case")
        around = await people("ann").mend(part, RepairRequest(flow=exlet(removes)))
        assert (await people("root").wait(around.exlet_case or "")).status == "failed"
    assert await is_offered(people, task)
    assert (await people("olga").cancel(case)).status == "cancelled"
    assert (await people("root").user_task(task.id)).state == "withdrawn"


async def test_whoever_has_the_role_ends_the_call(people: As) -> None:  # SE-1
    case, _ = await waiting(people, Call(name="sub", flow="outer"))
    assert (await people("rita").cancel(case, "sub")).status == "completed"


@pytest.mark.parametrize("do", [Primitive.RESTART, Primitive.RESUBMIT, Primitive.RESTAGE])
async def test_a_claimed_task_is_not_offered_anew_by_those_without_its_role(  # SE-1
    people: As, do: Primitive
) -> None:
    await people("ann").deploy(Flow(name=FlowName("asks"), body=APPROVE))
    case = (await people("ann").start("asks")).id
    [task] = await people("ann").worklist(case=case)
    await people("rita").claim(task.id)
    around = await people("ann").mend(case, RepairRequest(flow=exlet(step(do, "approve"))))
    assert (await people("root").wait(around.exlet_case or "")).status == "failed"
    [left] = await people("root").worklist(case=case)
    assert (left.id, left.state, left.claimed_by) == (task.id, "claimed", "rita")
    again = await people("rita").mend(case, RepairRequest(exlet="mended"))
    assert (await people("root").wait(again.exlet_case or "")).status == "completed"
    assert {each.state for each in await people("root").worklist(case=case)} == {"offered", "withdrawn"}


async def test_what_an_exlet_asks_is_answered_by_its_role(people: As) -> None:  # SE-1
    asks = exlet(APPROVE, name="ask-first")
    rule = Rule(id=1, condition="true", exlet="ask-first")
    trees = {ExceptionType.ABORT: {"work": RuleTree({1: rule}, 1)}}
    await people("ann").deploy(job_flow("top"))
    force = exlet(step(Primitive.COMPLETE), name="fc")
    await people("ann").put_rules(RuleSet(name="top", trees=trees, exlets={"ask-first": asks, "fc": force}))
    case = (await people("ann").start("top")).id
    await do_jobs(people("root"), 1, fail=True)
    task = await open_task(people)
    [decision] = await people("olga").decisions(DecisionQuery(case=case))
    ways = [
        people("olga").cancel(case, "work"),
        people("olga").cancel(task.case),
        people("olga").mend(case, RepairRequest(exlet="fc", item="work")),
        people("olga").reject_choice(RejectRequest(decision=decision.id, exlet="fc", note="quicker")),
    ]
    for way in ways:
        with pytest.raises(Forbidden, match=REFUSED):
            await way
    assert await is_offered(people, task)


async def test_rules_that_somebody_applies_end_no_more_than_that_person_may(people: As) -> None:  # SE-1
    both = Parallel(name="p", branches=(Call(name="sub", flow="asks"), JobActivity(name="work", command="true")))
    held = Flow(name=FlowName("top"), body=both, on_unhandled="hold")
    await people("ann").deploy(Flow(name=FlowName("asks"), body=APPROVE))
    await people("ann").deploy(held)
    await people("ann").start("top")
    task = await open_task(people)
    await do_jobs(people("root"), 1, fail=True)
    [group] = await until(people("olga").failures)
    trees = {ExceptionType.ABORT: {"work": RuleTree({1: Rule(id=1, condition="true", exlet="fc")}, 1)}}
    force = exlet(step(Primitive.COMPLETE, "sub"), name="fc")
    await people("ann").put_rules(RuleSet(name="top", trees=trees, exlets={"fc": force}))
    [taken_up] = (await people("olga").apply_rules(group.id)).taken_up
    decision = await people("olga").decision(taken_up)
    assert (await people("root").wait(decision.exlet_case or "")).status == "failed"
    assert await is_offered(people, task)


async def test_an_item_beside_it_is_still_mended(people: As) -> None:  # SE-1
    both = Parallel(name="p", branches=(Call(name="sub", flow="asks"), JobActivity(name="work", command="true")))
    case, task = await waiting(people, both)
    await people("olga").cancel(case, "work")
    with pytest.raises(NotFound):
        await people("olga").cancel(case, "p")
    assert await is_offered(people, task)
