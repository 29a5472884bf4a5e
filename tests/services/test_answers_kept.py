"""What a person answers is taken as it is meant, and kept when a case is run again, unless something is new."""

from typing import Any

import pytest

from mendflow.core.engine.messages import OfferTask
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Call,
    Empty,
    Flow,
    Input,
    JobActivity,
    OnAlarm,
    OnMessage,
    Pick,
    Receive,
    Scope,
    Sequence,
    UserTask,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.events import EventStream
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.user_tasks import UserTasks
from mendflow.stores.memory import MemoryStore
from tests.patience import until

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))
ASKED = UserTask(name="approve", role="boss", title="Go?", fields={"approved": "yes or no"})


def flow(make: str = "make", publish: str = "false", task: UserTask = ASKED) -> Flow:
    jobs = (JobActivity(name="make", command=make), task, JobActivity(name="publish", command=publish))
    outputs = {"approved": "${{ jobs.approve.outputs.approved }}"}
    return Flow(name=FlowName("f"), body=Sequence(name="s", body=jobs), outputs=outputs)


def play(spec: JobSpec) -> Outcome:
    return FAILED if spec.command == "false" else Outcome(outputs=spec.item)


async def failed_behind_the_answer(domain: Domain, pilot: Any) -> str:
    await domain.deploy(flow())
    case = (await domain.start("f", {}, who="me")).id
    await pilot.run_all(play)
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann", comment="fine")
    await pilot.run_all(play)
    assert (await domain.case(case)).status == "failed"
    return case


async def test_a_field_that_is_yes_or_no_is_answered_so(domain: Domain) -> None:
    outputs = {"approved": "${{ jobs.approve.outputs.approved }}"}
    await domain.deploy(Flow(name=FlowName("f"), body=ASKED, outputs=outputs))
    case = (await domain.start("f", {}, who="me")).id
    [offered] = await domain.worklist(role="boss", state="offered")
    with pytest.raises(Conflict, match="wants yes or no for approved, not 'perhaps'"):
        await domain.complete(offered.id, {"approved": "perhaps"}, who="ann")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    assert (await domain.case(case)).outputs == {"approved": True}


async def test_who_has_answered_is_not_asked_again_after_a_failure_behind_the_answer(
    domain: Domain, pilot: Any
) -> None:
    first = await failed_behind_the_answer(domain, pilot)
    again = await domain.rerun(first, who="me", from_failed=True)
    await pilot.run_all(lambda spec: Outcome(outputs=spec.item))
    view = await domain.case(again.id)
    assert (view.status, view.outputs) == ("completed", {"approved": True})
    [kept] = await domain.worklist(case=again.id)
    assert (kept.state, kept.ended_by, kept.comment) == ("completed", "ann", f"kept from case {first}: fine")


async def test_a_person_is_asked_again_about_something_new(domain: Domain, pilot: Any) -> None:
    await failed_behind_the_answer(domain, pilot)
    other = UserTask(name="approve", role="boss", title="Go now?", fields=ASKED.fields)
    for changed in (flow(make="make it better"), flow(task=other)):
        await domain.deploy(changed)
        again = (await domain.start("f", {}, who="me", cache_from="last")).id
        await pilot.run_all(play)
        assert [each.state for each in await domain.worklist(case=again)] == ["offered"]
        await domain.cancel(again, who="me")


async def test_a_person_is_asked_again_if_another_input_is_given(domain: Domain, pilot: Any) -> None:
    jobs = (ASKED, JobActivity(name="publish", command="false"))
    await domain.deploy(Flow(name=FlowName("f"), inputs={"x": Input()}, body=Sequence(name="s", body=jobs)))
    first = (await domain.start("f", {"x": 1}, who="me")).id
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    await pilot.run_all(play)
    again = await domain.rerun(first, who="me", inputs={"x": 2})
    assert [each.state for each in await domain.worklist(case=again.id)] == ["offered"]


async def test_a_rerun_of_everything_asks_again(domain: Domain, pilot: Any) -> None:
    first = await failed_behind_the_answer(domain, pilot)
    again = await domain.rerun(first, who="me", cache="none")
    await pilot.run_all(play)
    assert [each.state for each in await domain.worklist(case=again.id)] == ["offered"]


async def test_a_task_that_is_to_be_done_again_asks_again(domain: Domain, pilot: Any) -> None:
    first = await failed_behind_the_answer(domain, pilot)
    for named, state in (("approve", "offered"), ("publish", "completed")):
        again = await domain.rerun(first, who="me", again=[named])
        await pilot.run_all(play)
        assert [each.state for each in await domain.worklist(case=again.id)] == [state]


async def test_nobody_can_do_a_task_while_its_earlier_answer_is_looked_for() -> None:
    looked: list[str] = []

    class AskedStore(MemoryStore):
        async def search(self, *_: Any, **__: Any) -> list[Any]:
            with pytest.raises(NotFound, match="there is no task c-2/1"):
                await tasks.find("c-2/1")
            looked.append("c-1")
            return []

    async def finished(*_: Any) -> None: ...

    store = AskedStore()
    await store.open()
    ledger, events = Ledger(store, print), EventStream(0)
    tasks = UserTasks(
        store=store,
        ledger=ledger,
        clock=SystemClock(),
        events=events,
        finished=finished,
        is_suspended=lambda _case, _item: False,
    )
    order = OfferTask(serial=1, item=ItemId("approve"), role="boss", title="Go?")
    await tasks.offer(CaseId("c-2"), order, "", reissued=False, earlier=CaseId("c-1"), grounds="the same")
    assert looked == ["c-1"] and (await tasks.find("c-2/1")).state == "offered"


# For what an answer was given


def publishing(name: str = "f", what: str = "false", default: str = "harmless") -> Flow:
    jobs = (ASKED, JobActivity(name="publish", command=what))
    inputs = {"x": Input(type="string", default=default)}
    return Flow(name=FlowName(name), inputs=inputs, body=Sequence(name="s", body=jobs))


async def answered(domain: Domain, pilot: Any, flow: Flow, who: str = "ann") -> str:
    """A case that fails behind what was answered."""
    await domain.deploy(flow)
    case = (await domain.start(flow.name, {}, who="me")).id
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who=who)
    await pilot.run_all(play)
    assert (await domain.case(case)).status == "failed"
    return case


async def states(domain: Domain, case: str) -> list[str]:
    return [each.state for each in await domain.worklist(case=case)]


async def test_an_answer_is_kept_for_the_same_flow_with_the_same_inputs(domain: Domain, pilot: Any) -> None:
    first = await answered(domain, pilot, publishing())
    for inputs in ({}, {"x": "harmless"}):
        again = await domain.start("f", inputs, who="me", cache="all", cache_from=first)
        assert await states(domain, again.id) == ["completed"]
        await pilot.run_all(play)
    sent = await domain.start_with_flow(publishing(), {}, who="me", rerun_of=first)
    assert await states(domain, sent.id) == ["completed"], "word for word the same"
    await pilot.run_all(play)
    third = await domain.rerun(sent.id, who="me")
    assert await states(domain, third.id) == ["completed"]


async def test_an_answer_is_not_kept_for_another_flow_that_asks_in_the_same_words(domain: Domain, pilot: Any) -> None:
    first = await answered(domain, pilot, publishing())
    await domain.deploy(publishing("g"))
    again = await domain.start("g", {}, who="me", cache="all", cache_from=first)
    assert await states(domain, again.id) == ["offered"]


@pytest.mark.parametrize(
    "changed",
    [publishing(default="harmful"), publishing(what="something else")],
    ids=["another default", "another step behind it"],
)
async def test_an_answer_is_not_kept_for_a_flow_that_was_changed(domain: Domain, pilot: Any, changed: Flow) -> None:
    first = await answered(domain, pilot, publishing())
    for earlier in ({"cache": "all", "cache_from": first}, {"rerun_of": first}):
        sent = await domain.start_with_flow(changed, {}, who="me", **earlier)  # type: ignore[arg-type]  # own fields
        assert await states(domain, sent.id) == ["offered"]
        await domain.cancel(sent.id, who="me")
    await domain.deploy(changed)
    again = await domain.start("f", {}, who="me", cache="all", cache_from=first)
    assert await states(domain, again.id) == ["offered"]
    await domain.cancel(again.id, who="me")
    as_it_was = await domain.rerun(first, who="me", from_failed=True)
    assert await states(domain, as_it_was.id) == ["completed"], "a rerun is of the flow as it was"


async def test_an_answer_is_not_kept_if_a_flow_that_is_called_behind_it_was_changed(domain: Domain, pilot: Any) -> None:
    called = Flow(name=FlowName("inner"), body=JobActivity(name="publish", command="false"))
    steps = (ASKED, Call(name="out", flow="outer"))
    await domain.deploy(called)
    await domain.deploy(Flow(name=FlowName("outer"), body=Call(name="in", flow="inner")))
    first = await answered(domain, pilot, Flow(name=FlowName("f"), body=Sequence(name="s", body=steps)))
    again = await domain.rerun(first, who="me")
    assert await states(domain, again.id) == ["completed"]
    await pilot.run_all(play)
    await domain.deploy(Flow(name=FlowName("inner"), body=JobActivity(name="publish", command="other")))
    later = await domain.rerun(first, who="me")
    assert await states(domain, later.id) == ["offered"]


async def test_an_answer_in_a_called_case_holds_for_the_case_that_calls_it(domain: Domain, pilot: Any) -> None:
    def calling(what: str) -> Flow:
        steps = (Call(name="ask", flow="asks"), JobActivity(name="publish", command=what))
        return Flow(name=FlowName("f"), body=Sequence(name="s", body=steps))

    await domain.deploy(Flow(name=FlowName("asks"), body=ASKED))
    first = await answered(domain, pilot, calling("false"))
    again = await domain.rerun(first, who="me")
    await pilot.run_all(play)
    [kept] = [each for each in await domain.worklist() if each.case.startswith(f"{again.id}.")]
    assert (kept.state, kept.ended_by) == ("completed", "ann")
    await domain.deploy(calling("other"))
    later = await domain.start("f", {}, who="me", cache="all", cache_from=first)
    await pilot.run_all(play)
    [asked] = [each for each in await domain.worklist() if each.case.startswith(f"{later.id}.")]
    assert asked.state == "offered"


async def test_an_answer_is_not_kept_where_the_rules_choose_what_follows(domain: Domain, pilot: Any) -> None:
    steps = (ASKED, JobActivity(name="publish", command="false"), Call(name="then"))
    first = await answered(domain, pilot, Flow(name=FlowName("f"), body=Sequence(name="s", body=steps)))
    again = await domain.rerun(first, who="me")
    assert await states(domain, again.id) == ["offered"]


# What came from outside before it


HEARD = Receive(name="get", channel="what", variable="what")


def said_before(*steps: Activity, name: str = "f") -> Flow:
    jobs = (*steps, ASKED, JobActivity(name="publish", command="false"))
    return Flow(name=FlowName(name), body=Scope(name="all", variables={"what": ""}, body=Sequence(name="s", body=jobs)))


async def rerun_and_told(domain: Domain, first: str, said: str) -> str:
    again = (await domain.rerun(first, who="me")).id
    await domain.send(again, "what", said, id=f"{again}-1")
    return again


@pytest.mark.parametrize(("said", "state"), [("EVIL", "offered"), ("GOOD", "completed")])
async def test_se_1_an_answer_is_kept_only_after_the_same_message(
    domain: Domain, pilot: Any, said: str, state: str
) -> None:
    await domain.deploy(said_before(HEARD))
    first = (await domain.start("f", {}, who="me")).id
    await domain.send(first, "what", "GOOD", id="m-1")
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    await pilot.run_all(play)
    assert (await domain.case(first)).status == "failed"
    again = await rerun_and_told(domain, first, said)
    assert await states(domain, again) == [state]


async def test_se_1_an_answer_is_not_kept_where_a_message_no_longer_comes(domain: Domain, pilot: Any) -> None:
    waits = Pick(
        name="pick",
        messages=(OnMessage(channel="what", variable="what", body=Empty(name="heard")),),
        alarms=(OnAlarm(duration=30, body=Empty(name="silence")),),
    )
    await domain.deploy(said_before(waits))
    first = (await domain.start("f", {}, who="me")).id
    await domain.send(first, "what", "GOOD", id="m-1")
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    await pilot.run_all(play)
    again = (await domain.rerun(first, who="me")).id

    async def asked() -> list[str]:
        return await states(domain, again)

    assert await until(asked, "a task") == ["offered"]


async def test_se_1_an_answer_in_a_called_case_is_not_kept_after_another_message_to_its_caller(
    domain: Domain, pilot: Any
) -> None:
    await domain.deploy(Flow(name=FlowName("asks"), body=ASKED))
    steps = (HEARD, Call(name="ask", flow="asks"), JobActivity(name="publish", command="false"))
    body = Scope(name="all", variables={"what": ""}, body=Sequence(name="s", body=steps))
    await domain.deploy(Flow(name=FlowName("f"), body=body))
    first = (await domain.start("f", {}, who="me")).id
    await domain.send(first, "what", "GOOD", id="m-1")
    await pilot.run_all(play)
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    await pilot.run_all(play)
    again = await rerun_and_told(domain, first, "EVIL")
    await pilot.run_all(play)
    [asked] = [each for each in await domain.worklist() if each.case.startswith(f"{again}.")]
    assert asked.state == "offered"


async def test_se_1_an_answer_in_a_called_case_is_not_kept_after_a_job_of_its_caller_ran_again(
    domain: Domain, pilot: Any
) -> None:
    await domain.deploy(Flow(name=FlowName("asks"), body=ASKED))
    steps = (JobActivity(name="make", command="make"), Call(name="ask", flow="asks"))
    behind = JobActivity(name="publish", command="false")
    await domain.deploy(Flow(name=FlowName("f"), body=Sequence(name="s", body=(*steps, behind))))
    first = (await domain.start("f", {}, who="me")).id
    await pilot.run_all(play)
    [offered] = await domain.worklist(state="offered")
    await domain.complete(offered.id, {"approved": "yes"}, who="ann")
    await pilot.run_all(play)
    for again, state in ((["make"], "offered"), ([], "completed")):
        case = (await domain.rerun(first, who="me", again=again)).id
        await pilot.run_all(play)
        [asked] = [each for each in await domain.worklist() if each.case.startswith(f"{case}.")]
        assert asked.state == state, again
