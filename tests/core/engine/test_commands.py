"""Commands: what is refused and why, suspension, and the ways to interfere with one item."""

import pytest

from mendflow.core.engine import Case, StaleAnswer, decide, evolve, outstanding_orders, snapshot
from mendflow.core.engine.messages import (
    Cancel,
    CancelJob,
    Command,
    Deliver,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    ResumeJob,
    StageFiles,
    StartCase,
    SubmitJob,
    Suspend,
    SuspendJob,
    staging_outcome,
)
from mendflow.core.model.errors import BadFlow, Conflict, NotFound, RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Flow,
    ForEach,
    Input,
    JobActivity,
    LinkSource,
    Parallel,
    Receive,
    Sequence,
    Wait,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value
from tests.core.engine.world import Play, file, flow, pieces_of, started

A = ItemId("a")
FAULT = Fault(name="forced", category=Category.JOB, message="by hand")


def job(name: str, **more: object) -> JobActivity:
    return JobActivity(name=name, command=name, **more)  # type: ignore[arg-type]  # the fields are the model's own


def two() -> Sequence:
    return Sequence(name="s", body=(job("a"), job("b")))


def with_inputs(**inputs: Input) -> Flow:
    return Flow(name=FlowName("f"), body=job("a"), inputs=inputs)


@pytest.mark.parametrize(
    ("declared", "given", "said"),
    [
        (Input(required=True), {}, "input x is missing"),
        (Input(), {"x": 1, "y": 2}, "y is not an input of flow f; it has x"),
        (Input(type="number"), {"x": "1"}, "input x must be a number"),
        (Input(type="number"), {"x": True}, "input x must be a number"),
        (Input(type="string"), {"x": 1}, "input x must be a string"),
        (Input(type="boolean"), {"x": 1}, "input x must be a boolean"),
        (Input(type="list"), {"x": {}}, "input x must be a list"),
        (Input(type="map"), {"x": []}, "input x must be a map"),
        (Input(type="file"), {"x": 3}, "input x must be a file"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(declared: Input, given: dict[str, Value], said: str) -> None:
    case = Case.blank()
    with pytest.raises(RequestError, match=said):
        decide(case, StartCase(case=CaseId("c"), flow=with_inputs(x=declared), inputs=given), 1)
    assert snapshot(case) == snapshot(Case.blank())


def test_inputs_have_defaults() -> None:
    body = JobActivity(name="a", command="${{ inputs.x }} ${{ inputs.y }}")
    flow = Flow(name=FlowName("f"), body=body, inputs={"x": Input(default=1), "y": Input(type="file")})
    assert Play(flow, {"y": "some/path"}).command("a") == "1 some/path"


def link(name: str) -> tuple[LinkSource, ...]:
    return (LinkSource(name),)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Sequence(name="s", body=(job("a"), job("a"))), "two activities are called a"),
        (Parallel(name="p", branches=(job("a", sources=link("l")),)), "no parallel around it declares link l"),
        (Parallel(name="p", links=("l",), branches=(job("a", sources=link("l")),)), "link l has no target"),
        (
            Parallel(
                name="p",
                links=("l", "m"),
                branches=(job("a", sources=link("l"), targets=("m",)), job("b", sources=link("m"), targets=("l",))),
            ),
            "wait for each other in a cycle",
        ),
        (
            Parallel(
                name="p",
                links=("l",),
                branches=(Sequence(name="s", body=(job("a", targets=("l",)), job("b", sources=link("l")))),),
            ),
            "wait for each other in a cycle",
        ),
    ],
)
def test_a_flow_that_could_not_run_is_refused_whole(body: Activity, said: str) -> None:
    with pytest.raises(BadFlow, match=said):
        decide(Case.blank(), StartCase(case=CaseId("c"), flow=flow(body)), 1)


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        (FinishItem(serial=99, outcome=Outcome()), StaleAnswer),
        (FireTimer(serial=1), StaleAnswer),
        (Proceed(serial=1), StaleAnswer),
        (Proceed(serial=0), StaleAnswer),
        (RestartItem(item=ItemId("b")), NotFound),
        (ForceComplete(item=ItemId("b")), NotFound),
        (ForceFail(item=ItemId("b"), fault=FAULT), NotFound),
        (RemoveItem(item=ItemId("b")), NotFound),
        (Suspend(item=ItemId("b")), NotFound),
        (Resume(item=ItemId("b")), NotFound),
        (Resume(item=A), Conflict),
        (Resume(), Conflict),
        (StartCase(case=CaseId("c"), flow=flow(two())), Conflict),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(command: Command, mistake: type[RequestError]) -> None:
    play = started(two())
    before = snapshot(play.case)
    with pytest.raises(mistake):
        play.do(command)
    assert snapshot(play.case) == before


@pytest.mark.parametrize("command", [Cancel(), Suspend(), Deliver(id="m", channel="c"), RestartItem(item=A)])
def test_nothing_more_can_be_done_with_a_case_that_is_over(command: Command) -> None:
    play = started(job("a")).done("a")
    with pytest.raises(Conflict, match="has ended"):
        play.do(command)


def test_the_second_answer_to_an_order_is_stale() -> None:
    play = started(two())
    serial = play.serial("a")
    play.done("a")
    with pytest.raises(StaleAnswer):
        play.do(FinishItem(serial=serial, outcome=Outcome()))


def test_an_event_about_something_gone_changes_nothing_but_the_position() -> None:
    play = started(two())
    events = decide(play.case, FinishItem(serial=play.serial("a"), outcome=Outcome()), 1)
    evolve(play.case, events[0])
    assert evolve(play.case, events[0]) == []


def test_cancel_ends_the_case_and_its_jobs() -> None:
    play = started(Parallel(name="p", branches=(job("a"), job("b"), Wait(name="w", duration=5))))
    play.do(Cancel(reason="no longer wanted"))
    assert (play.status, play.cancelled, play.out) == ("cancelled", 2, {})
    assert play.ended.fault is not None and play.ended.fault.message == "no longer wanted"


def test_a_suspended_case_keeps_facts_and_applies_them_in_order_when_it_is_resumed() -> None:
    body = Parallel(
        name="p", branches=(two(), Sequence(name="q", body=(Receive(name="r", channel="c", variable="x"), job("d"))))
    )
    play = started(body)
    serial = play.serial("a")
    assert play.do(Suspend()) == [SuspendJob(serial=serial)]
    assert SuspendJob(serial=serial) in outstanding_orders(play.case)
    play.done("a").send("c", 1, id="m")
    assert play.jobs == []
    with pytest.raises(StaleAnswer):
        play.do(FinishItem(serial=serial, outcome=Outcome()))
    assert decide(play.case, Deliver(id="m", channel="c"), 1) == []
    with pytest.raises(Conflict):
        play.do(Suspend())
    orders = play.do(Resume())
    assert [order.spec.item for order in orders if isinstance(order, SubmitJob)] == ["b", "d"]


def test_facts_that_were_kept_in_great_number_are_applied_in_pieces_and_none_is_lost() -> None:
    with pieces_of(10):
        play = started(ForEach(name="each", items=list(range(20)), body=two()))
        while play.case.continuation:
            play.proceed(play.case.continuation)
        play.do(Suspend())
        play.done(*(f"a[{turn}]" for turn in range(15)))
        begun = sum(isinstance(order, SubmitJob) for order in play.do(Resume()))
        assert 0 < begun <= 10
        play.done("a[17]")
        assert "b[17]" not in play.jobs, "a later fact waits behind those that were kept"
        while play.case.continuation:
            play.proceed(play.case.continuation)
    assert {f"b[{turn}]" for turn in (*range(15), 17)} <= set(play.jobs)


def test_what_was_answered_while_its_case_was_suspended_is_not_cancelled() -> None:
    play = started(Parallel(name="p", branches=(job("a"), job("b"))))
    kept = play.serial("a")
    play.do(Suspend())
    play.done("a")
    orders = play.do(Cancel())
    assert CancelJob(serial=kept) not in orders
    assert play.cancelled == 1


def test_jobs_that_still_run_are_resumed_with_the_case() -> None:
    play = started(job("a"))
    play.do(Suspend())
    assert play.do(Resume()) == [ResumeJob(serial=play.serial("a"))]


def test_a_suspended_item_keeps_its_answer_and_the_rest_goes_on() -> None:
    play = started(Parallel(name="p", branches=(two(), job("c"))))
    play.do(Suspend(item=A))
    with pytest.raises(Conflict):
        play.do(Suspend(item=A))
    play.done("a", "c")
    assert play.jobs == []
    play.do(Resume(item=A))
    assert play.jobs == ["b"]


def test_a_suspended_receive_hears_nothing_until_it_is_resumed() -> None:
    play = started(Receive(name="r", channel="c"))
    play.do(Suspend(item=ItemId("r")))
    play.send("c")
    assert play.status == "running"
    play.do(Resume(item=ItemId("r")))
    assert play.status == "completed"


def test_resuming_a_case_does_not_resume_an_item_that_was_suspended_by_itself() -> None:
    play = started(Parallel(name="p", branches=(job("a"), job("b"))))
    play.do(Suspend(item=A))
    play.do(Suspend())
    assert play.do(Resume()) == [ResumeJob(serial=play.serial("b"))]
    assert play.do(Resume(item=A)) == [ResumeJob(serial=play.serial("a"))]


def test_a_restarted_item_runs_again_with_the_data_of_its_start() -> None:
    play = started(JobActivity(name="a", command="x", inputs={"in": "a/path"}))
    first = play.serial("a")
    play.finish(first, staging_outcome({"in": file("one")}))
    second = play.serial("a")
    orders = play.do(RestartItem(item=A))
    assert orders[0] == CancelJob(serial=second)
    assert isinstance(orders[1], StageFiles) and orders[1].files == {"in": "a/path"}
    assert orders[1].serial not in (first, second)
    with pytest.raises(StaleAnswer):
        play.do(FinishItem(serial=second, outcome=Outcome()))
    play.finish(orders[1].serial, staging_outcome({"in": file("two")}))
    play.done("a")
    assert play.status == "completed"


def test_a_restarted_wait_waits_its_whole_time_again() -> None:
    play = started(Wait(name="w", duration=100))
    play.now += 50
    play.do(RestartItem(item=ItemId("w")))
    play.ring()
    assert (play.now, play.status) == (1_150, "completed")


def test_force_complete_ends_an_item_well_with_the_outputs_given() -> None:
    play = started(Sequence(name="s", body=(job("a"), JobActivity(name="b", command="${{ jobs.a.outputs }}"))))
    play.do(ForceComplete(item=A, outputs="by hand"))
    assert (play.command("b"), play.cancelled) == ("by hand", 1)


def test_force_fail_throws_the_fault_given() -> None:
    play = started(two())
    play.do(ForceFail(item=A, fault=FAULT))
    assert (play.ended.fault, play.cancelled) == (FAULT, 1)


def test_a_false_condition_skips_an_activity() -> None:
    play = started(Sequence(name="s", body=(job("a", when=Expr("1 > 2")), job("b"))))
    assert (play.skipped, play.jobs) == (["a"], ["b"])
