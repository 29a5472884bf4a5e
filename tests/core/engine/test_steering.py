"""What exlets do to cases and items: the effect of each primitive on what is live and on what runs next."""

import pytest

from mendflow.core.engine import (
    Case,
    decide,
    evolve,
    find_item,
    item_data,
    item_order,
    outstanding_orders,
    restore,
    snapshot,
)
from mendflow.core.engine.control import COMMANDS_MAX
from mendflow.core.engine.messages import (
    Cancel,
    CancelJob,
    Command,
    ForceComplete,
    ForceFail,
    ItemFailed,
    RemoveItem,
    RestartItem,
    Resume,
    ResumeJob,
    RunPrimitive,
    StartCase,
    SubmitJob,
    Suspend,
    SuspendJob,
    WriteData,
)
from mendflow.core.model.errors import BadFlow, Conflict
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Call,
    Flow,
    Input,
    JobActivity,
    LinkSource,
    Parallel,
    PrimitiveStep,
    Receive,
    Sequence,
    Stage,
    UserTask,
    Wait,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.repair import Primitive
from mendflow.core.model.templates import Template
from tests.core.engine.world import Play, flow, started

A, B = ItemId("a"), ItemId("b")
FAULT = Fault(name="forced", category=Category.JOB, message="by an exlet", exit_code=3)


def job(name: str, **more: object) -> JobActivity:
    return JobActivity(name=name, command=name, **more)  # type: ignore[arg-type]  # the fields are the model's own


def function(name: str, **kwargs: Template) -> JobActivity:
    return JobActivity(name=name, function=FunctionRef(module="m", name="f"), kwargs=kwargs)


def two() -> Sequence:
    return Sequence(name="s", body=(job("a"), job("b")))


def exlet(*steps: Activity) -> Flow:
    body = Sequence(name="steps", body=steps)
    return Flow(name=FlowName("exlet"), body=body, exlet=True, inputs={"context": Input(type="map", required=True)})


# The steps of an exlet


def test_a_primitive_is_an_order_with_its_settings_worked_out() -> None:  # EX-2
    more = PrimitiveStep(
        name="more",
        do=Primitive.RESUBMIT,
        item="${{ inputs.context.item.name }}",
        settings={"resources": {"memory_bytes": "${{ inputs.context.job.memory_bytes * 2 }}"}},
    )
    play = Play(exlet(more), {"context": {"item": {"name": "align[3]"}, "job": {"memory_bytes": 500}}})
    assert list(play.out.values()) == [
        RunPrimitive(
            serial=1,
            item=ItemId("more"),
            do=Primitive.RESUBMIT,
            about="align[3]",
            settings={"resources": {"memory_bytes": 1000}},
        )
    ]
    assert outstanding_orders(play.case) == list(play.out.values())


def test_the_next_step_of_an_exlet_waits_for_the_primitive_before() -> None:  # EX-3
    play = Play(
        exlet(PrimitiveStep(name="first", do=Primitive.SUSPEND), PrimitiveStep(name="then", do=Primitive.CONTINUE)),
        {"context": {}},
    )
    assert play.serial("first") and len(play.out) == 1
    play.done("first")
    assert play.serial("then") and len(play.out) == 1
    assert play.done("then").status == "completed"


def test_a_primitive_that_cannot_be_done_is_a_fault_of_the_exlet() -> None:
    play = Play(exlet(PrimitiveStep(name="first", do=Primitive.REMOVE)), {"context": {}})
    play.fail("first", "gone")
    assert play.ended.fault is not None and play.ended.fault.name == "gone"


def test_a_primitive_outside_an_exlet_is_refused() -> None:
    body = PrimitiveStep(name="m", do=Primitive.SUSPEND)
    with pytest.raises(BadFlow, match="m: `suspend` makes sense only in an exlet"):
        decide(Case.blank(), StartCase(case=CaseId("c"), flow=flow(body)), 1)


def test_an_exlet_that_is_removed_leaves_no_primitive_behind() -> None:
    play = Play(exlet(PrimitiveStep(name="first", do=Primitive.SUSPEND)), {"context": {}})
    play.do(Cancel())
    assert play.status == "cancelled" and not [
        each for each in outstanding_orders(play.case) if isinstance(each, RunPrimitive)
    ]


# Once for each step


@pytest.mark.parametrize(
    "command",
    [
        Suspend(holder="x", by="x/1"),
        Suspend(item=A, holder="x", by="x/1"),
        Resume(holder="x", by="x/1"),
        Resume(item=A, holder="x", by="x/1"),
        RestartItem(item=A, by="x/1"),
        ForceComplete(item=A, by="x/1"),
        ForceFail(item=A, fault=FAULT, by="x/1"),
        ForceFail(item=A, fault=FAULT, proceed=True, by="x/1"),
        RemoveItem(item=A, by="x/1"),
        WriteData(values={"v": 1}, by="x/1"),
        WriteData(values={"v": 1}, item=A, by="x/1"),
        Cancel(by="x/1"),
    ],
    ids=lambda command: f"{type(command).__name__}-{getattr(command, 'item', '')}",
)
def test_a_command_that_the_same_step_gives_again_is_no_event(command: Command) -> None:  # EX-2
    play = started(two())
    play.do(command)
    again = restore(snapshot(play.case))
    assert decide(again, command, 5) == [], "also after a crash, from a snapshot"
    assert decide(play.replayed(), command, 5) == [], "and from the journal"


def test_the_same_step_may_give_different_commands_and_each_counts_once() -> None:
    play = started(Parallel(name="p", branches=(job("a"), job("b"))))
    for command in (Suspend(item=A, holder="x", by="x/1"), Suspend(item=B, holder="x", by="x/1")):
        assert play.do(command)
    assert play.do(Resume(item=A, holder="x", by="x/1"))


def test_a_case_remembers_a_bounded_number_of_commands() -> None:
    play = started(two())
    for number in range(COMMANDS_MAX + 5):
        evolve(play.case, decide(play.case, WriteData(values={"v": number}, by=f"x/{number}"), 1)[0])
    assert len(play.case.taken) == COMMANDS_MAX
    assert decide(play.case, WriteData(values={"v": 1}, by=f"x/{COMMANDS_MAX}"), 1) == []


# Suspend and continue


def test_continue_lets_go_only_of_what_the_same_exlet_suspended() -> None:  # EX-3
    play = started(two())
    serial = play.serial("a")
    assert play.do(Suspend(item=A, holder="x", by="x/1")) == [SuspendJob(serial=serial)]
    assert play.do(Suspend(item=A, holder="y", by="y/1")) == []
    assert play.do(Resume(item=A, holder="z", by="z/1")) == []
    assert play.do(Resume(item=A, holder="x", by="x/2")) == []
    assert play.do(Resume(item=A, holder="y", by="y/2")) == [ResumeJob(serial=serial)]


def test_a_case_that_several_hold_goes_on_when_all_have_let_go() -> None:  # EX-3
    play = started(two())
    play.do(Suspend(holder="x", by="x/1"))
    play.do(Suspend(holder="y", by="y/1"))
    play.do(Suspend())
    play.done("a")
    play.do(Resume(holder="x", by="x/2"))
    play.do(Resume(holder="y", by="y/2"))
    assert (play.status, play.jobs) == ("suspended", [])
    play.do(Resume())
    assert (play.status, play.jobs) == ("running", ["b"])


def test_a_person_lets_go_of_all_that_anyone_holds() -> None:
    play = started(two())
    play.do(Suspend(holder="x", by="x/1"))
    play.do(Suspend(item=A, holder="x", by="x/2"))
    play.do(Suspend(item=A, holder="y", by="y/1"))
    play.do(Resume())
    assert play.status == "running"
    assert play.do(Resume(item=A)) == [ResumeJob(serial=play.serial("a"))]


def test_a_second_suspension_is_a_conflict_for_a_person_and_harmless_for_an_exlet() -> None:
    play = started(two())
    play.do(Suspend(holder="x", by="x/1"))
    play.do(Suspend(holder="x", by="x/2"))
    play.do(Suspend())
    with pytest.raises(Conflict, match="already suspended"):
        play.do(Suspend())
    play.do(Resume())
    with pytest.raises(Conflict, match="not suspended"):
        play.do(Resume())
    with pytest.raises(Conflict, match="not suspended"):
        play.do(Resume(item=A, holder="x"))


def test_a_case_and_an_item_are_held_apart() -> None:  # EX-2
    play = started(two())
    play.do(Suspend(item=A, holder="x", by="x/1"))
    play.do(Suspend(holder="x", by="x/2"))
    assert play.do(Resume(holder="x", by="x/3")) == []
    assert find_item(play.case, A) is not None and find_item(play.case, A).suspended  # type: ignore[union-attr]  # it is live
    play.done("a")
    assert play.jobs == []
    play.do(Resume(item=A, holder="x", by="x/4"))
    assert play.jobs == ["b"]


@pytest.mark.parametrize(
    ("command", "jobs"),
    [
        (Resume(item=A), ["a"]),
        (RestartItem(item=A), ["a"]),
        (RemoveItem(item=A), []),
        (ForceFail(item=A, fault=FAULT, proceed=True), ["b"]),
        (ForceComplete(item=A), ["b"]),
        (Cancel(), []),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_suspended_item_stays_so_until_one_of_these(command: Command, jobs: list[str]) -> None:  # EX-2
    play = started(two())
    play.do(Suspend(item=A, holder="x", by="x/1"))
    play.do(command)
    assert play.jobs == jobs
    assert not play.case.item_holders, "nobody holds what is gone"


def test_a_suspension_of_an_earlier_version_is_a_persons() -> None:
    play = started(two())
    play.do(Suspend())
    play.do(Suspend(item=A))
    play.case.holders.clear()
    play.case.item_holders.clear()
    play.case = restore(snapshot(play.case))
    play.do(Suspend(holder="x", by="x/1"))
    play.do(Resume(holder="x", by="x/2"))
    play.do(Suspend(item=A, holder="x", by="x/3"))
    play.do(Resume(item=A, holder="x", by="x/4"))
    assert play.status == "suspended" and play.case.holders == {"": None}
    play.do(Resume())
    assert play.do(Resume(item=A)) == [ResumeJob(serial=play.serial("a"))]


# Restart, complete, fail


def test_restart_resets_an_items_data_to_what_it_had_at_its_start() -> None:  # EX-2
    play = started(function("a", n=1))
    play.do(WriteData(item=A, values={"n": 2}))
    assert item_data(play.case, A) == {"n": 2}
    play.out[1] = item_order(play.case, 1)  # type: ignore[assignment]  # the order is live
    cancelled, submitted = play.do(RestartItem(item=A))
    assert cancelled == CancelJob(serial=1)
    assert isinstance(submitted, SubmitJob) and submitted.spec.kwargs == {"n": 1}


def test_restart_can_say_what_of_the_data_is_other() -> None:
    play = started(function("a", n=1, m=1))
    _, submitted = play.do(RestartItem(item=A, values={"n": 5}))
    assert isinstance(submitted, SubmitJob) and submitted.spec.kwargs == {"n": 5, "m": 1}
    play.do(RestartItem(item=A))
    assert item_data(play.case, A) == {"n": 5, "m": 1}, "that is how it began the last time"


def test_force_complete_counts_as_a_good_end_and_the_next_item_runs() -> None:  # EX-2
    play = started(Sequence(name="s", body=(job("a"), JobActivity(name="b", command="${{ jobs.a.outputs.n }}"))))
    play.do(ForceComplete(item=A, outputs={"n": 7}, by="x/1"))
    assert (play.command("b"), play.cancelled) == ("7", 1)


def test_force_fail_marks_the_item_as_failed_and_the_next_item_runs() -> None:  # EX-2
    then = JobActivity(name="b", command="${{ jobs.a.failed }} ${{ jobs.a.fault.message }} ${{ jobs.a.outputs }}")
    play = started(Sequence(name="s", body=(job("a"), then)))
    orders = play.do(ForceFail(item=A, fault=FAULT, proceed=True, by="x/1"))
    assert orders[:2] == [CancelJob(serial=1), ItemFailed(item=A, name="a", kind="job", fault=FAULT)]
    assert play.command("b") == "true by an exlet "
    assert play.done("b").status == "completed"


def test_the_links_of_an_item_that_was_made_to_fail_are_true() -> None:  # EX-2
    first = job("a", sources=(LinkSource("l"),))
    play = started(Parallel(name="p", links=("l",), branches=(first, job("b", targets=("l",), join="all"))))
    play.do(ForceFail(item=A, fault=FAULT, proceed=True))
    assert play.jobs == ["b"]


def test_force_fail_can_throw_its_fault_in_the_flow() -> None:
    play = started(two())
    play.do(ForceFail(item=A, fault=FAULT, by="x/1"))
    assert (play.ended.fault, play.status) == (FAULT, "failed")


def test_cancel_removes_the_case() -> None:  # EX-2
    play = started(Parallel(name="p", branches=(two(), job("c"))))
    play.do(Cancel(reason="no longer wanted", by="x/1"))
    assert (play.status, play.cancelled, play.out) == ("cancelled", 2, {})


@pytest.mark.parametrize(
    "body",
    [
        job("a"),
        function("a"),
        UserTask(name="a", role="r", deadline_ms=50),
        Call(name="a", flow="g"),
        Stage(name="a", files={"f": "path"}),
        Wait(name="a", duration=10),
        Receive(name="a", channel="c"),
        JobActivity(name="a", command="x", inputs={"in": "a/path"}),
    ],
    ids=["job", "function", "task", "call", "stage", "wait", "receive", "staging"],
)
@pytest.mark.parametrize(
    "command",
    [
        ForceComplete(item=A),
        ForceFail(item=A, fault=FAULT, proceed=True),
        ForceFail(item=A, fault=FAULT),
        RemoveItem(item=A),
        RestartItem(item=A),
        Suspend(item=A),
    ],
    ids=["complete", "fail", "throw", "remove", "restart", "suspend"],
)
def test_every_kind_of_item_takes_every_command_whether_or_not_its_order_went_out(
    body: Activity, command: Command
) -> None:
    """The engine cannot tell: an order that is held back is an order that is not answered yet."""
    play = started(Parallel(name="p", branches=(Sequence(name="s", body=(body, job("next"))), job("other"))))
    play.do(command)
    play.crash(with_snapshot=False)
    play.crash(with_snapshot=True)
    play.check_owed()
    assert "other" in play.jobs or play.case.over
    goes_on = isinstance(command, ForceComplete) or (isinstance(command, ForceFail) and command.proceed)
    assert ("next" in play.jobs) == goes_on
