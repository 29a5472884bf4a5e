"""Jobs, tasks, stagings and calls: what is asked of the world, and what becomes of the answers."""

import pytest

from mendflow.core.engine import StaleAnswer, find_item, live_items, outstanding_orders
from mendflow.core.engine.messages import (
    STAGED_FILE_FAULT,
    FinishItem,
    OfferTask,
    StageFiles,
    StartCalledCase,
    SubmitJob,
    WithdrawTask,
    staging_outcome,
)
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Call,
    Catch,
    Flow,
    JobActivity,
    Scope,
    Sequence,
    Stage,
    UserTask,
)
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import JobSpec, Outcome, Submission
from mendflow.core.model.templates import ResourceTemplates
from tests.core.engine.world import Play, file, flow, started


def spec_of(play: Play, item: str) -> JobSpec:
    order = play.out[play.serial(item)]
    assert isinstance(order, SubmitJob)
    return order.spec


def sequence(name: str, *body: Activity) -> Sequence:
    return Sequence(name=name, body=body)


def test_every_part_of_a_job_may_hold_expressions() -> None:
    job = JobActivity(
        name="a",
        command="run ${{ x.n }}",
        args=("${{ x }}", 1),
        kwargs={"k": "${{ x.n }}"},
        env={"N": "${{ x.n }}", "FIXED": "1"},
        files={"out": "out-${{ x.n }}.txt"},
        resources=ResourceTemplates(cpus="${{ x.n }}", memory_bytes="${{ x.n * 1000000 }}", site="s${{ x.n }}"),
        priority=3,
        retries=2,
    )
    spec = spec_of(started(Scope(name="sc", variables={"x": {"n": 4}}, body=job)), "a")
    assert (spec.command, spec.args, spec.kwargs) == ("run 4", [{"n": 4}, 1], {"k": 4})
    assert (spec.env, spec.files) == ({"N": "4", "FIXED": "1"}, {"out": "out-4.txt"})
    assert (spec.resources.cpus, spec.resources.memory_bytes, spec.resources.site) == (4.0, 4_000_000, "s4")
    assert (spec.priority, spec.retries) == (3, 2)


@pytest.mark.parametrize(
    "job",
    [
        JobActivity(name="a", command="x", resources=ResourceTemplates(cpus="${{ 'many' }}")),
        JobActivity(name="a", command="x", resources=ResourceTemplates(gpus="${{ -1 }}")),
        JobActivity(name="a", command="x", inputs={"in": "${{ null }}"}),
        Stage(name="a", files={"in": 5}),
    ],
)
def test_a_job_that_is_described_wrongly_is_a_fault_of_the_flow(job: Activity) -> None:
    play = started(job)
    assert play.ended.fault is not None and play.ended.fault.name == "invalidExpressionValue"


def test_outputs_files_and_exit_code_of_a_job_are_known_afterwards() -> None:
    after = JobActivity(
        name="b", command="${{ jobs.a.outputs.n }} ${{ jobs.a.exit_code }}", inputs={"t": "${{ jobs.a.files.table }}"}
    )
    play = started(sequence("s", JobActivity(name="a", command="x", files={"table": "t.csv"}), after))
    outcome = Outcome(outputs={"n": 7}, files={"table": file("t.csv")}, exit_code=0)
    play.finish(play.serial("a"), outcome)
    spec = spec_of(play, "b")
    assert spec.command == "7 0"
    assert spec.inputs == {"t": file("t.csv")}


def test_a_job_is_submitted_only_when_all_its_data_is_there() -> None:  # FM-6
    job = JobActivity(name="a", command="x", inputs={"one": "data/1", "two": "data/2"}, stage_in="sequence")
    play = started(job)
    [stage] = play.out.values()
    assert isinstance(stage, StageFiles)
    assert (stage.files, stage.order) == ({"one": "data/1", "two": "data/2"}, "sequence")
    assert play.jobs == []
    play.finish(stage.serial, staging_outcome({"one": file("1"), "two": file("2")}))
    assert spec_of(play, "a").inputs == {"one": file("1"), "two": file("2")}
    assert play.serial("a") != stage.serial


def test_data_of_a_producing_job_needs_no_staging() -> None:  # FM-6
    second = JobActivity(name="b", command="x", inputs={"kept": "${{ jobs.a.files.f }}", "given": "path"})
    play = started(sequence("s", JobActivity(name="a", command="x", files={"f": "f"}), second))
    play.finish(play.serial("a"), Outcome(files={"f": file("f")}))
    [stage] = play.out.values()
    assert isinstance(stage, StageFiles) and stage.files == {"given": "path"}
    play.finish(stage.serial, staging_outcome({"given": file("g")}))
    assert spec_of(play, "b").inputs == {"kept": file("f"), "given": file("g")}


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (Outcome(fault=Fault(name=STAGED_FILE_FAULT, category=Category.DATA, message="gone")), STAGED_FILE_FAULT),
        (staging_outcome({}), STAGED_FILE_FAULT),
    ],
)
def test_a_job_whose_data_does_not_arrive_fails_without_being_submitted(outcome: Outcome, name: str) -> None:  # FM-7
    play = started(JobActivity(name="a", command="x", inputs={"one": "data/1"}))
    play.finish(play.serial("a"), outcome)
    assert play.ended.fault is not None
    assert (play.ended.fault.name, play.ended.fault.category) == (name, "data")
    assert not any(isinstance(order, SubmitJob) for order in play.given)


def test_a_job_goes_through_staging_and_submission_to_its_end() -> None:  # FM-7
    play = started(JobActivity(name="a", command="x", inputs={"one": "data/1"}))
    phases = []
    while (item := find_item(play.case, ItemId("a"))) is not None:
        phases.append(item.phase)
        play.finish(item.serial, staging_outcome({"one": file("1")}))
    assert phases == ["staging", "submitted"]
    assert play.status == "completed"


def test_live_items_tell_what_is_under_way() -> None:
    body = sequence("s", UserTask(name="t", role="r"), JobActivity(name="a", command="x"))
    play = started(body)
    [item] = live_items(play.case)
    assert (item.item, item.name, item.kind, item.phase, item.suspended) == ("t", "t", "user-task", "offered", False)
    assert find_item(play.case, ItemId("a")) is None


@pytest.mark.parametrize("submission", [Submission.WAIT, Submission.POLL, Submission.NOTIFY])
def test_however_it_is_submitted_the_flow_waits_for_a_job(submission: Submission) -> None:  # FM-5
    play = started(
        sequence("s", JobActivity(name="a", command="x", submission=submission), JobActivity(name="b", command="x"))
    )
    assert play.jobs == ["a"]
    assert spec_of(play, "a").submission is submission


def test_a_job_that_is_forgotten_lets_the_flow_go_on_and_its_failure_touches_nothing() -> None:  # FM-5
    play = started(
        sequence(
            "s", JobActivity(name="a", command="x", submission=Submission.FORGET), JobActivity(name="b", command="x")
        )
    )
    assert play.jobs == ["a", "b"]
    serial = play.serial("a")
    assert any(isinstance(order, SubmitJob) and order.serial == serial for order in outstanding_orders(play.case))
    play.done("b")
    assert play.status == "completed"
    assert serial in play.case.posted, "a crash before the submission must not lose it"
    assert play.fail("a").status == "completed"
    assert not play.case.posted
    with pytest.raises(StaleAnswer):
        play.do(FinishItem(serial=serial, outcome=Outcome()))


def test_a_task_is_offered_and_completed_with_outputs() -> None:  # AD-6
    task = UserTask(
        name="approve", role="editor", title="Approve ${{ x }}", data={"x": "${{ x }}"}, fields={"ok": "yes or no"}
    )
    play = started(
        Scope(
            name="sc",
            variables={"x": 5},
            body=sequence("s", task, JobActivity(name="b", command="${{ jobs.approve.outputs.ok }}")),
        )
    )
    offer = play.out[play.serial("approve")]
    assert isinstance(offer, OfferTask)
    assert (offer.role, offer.title, offer.data, offer.fields, offer.deadline) == (
        "editor",
        "Approve 5",
        {"x": 5},
        {"ok": "yes or no"},
        0,
    )
    play.done("approve", outputs={"ok": "yes"})
    assert play.command("b") == "yes"


def test_a_rejected_task_throws_rejected() -> None:  # AD-6
    task = UserTask(name="approve", role="editor")
    play = started(
        Scope(name="sc", body=task, catches=(Catch(fault="rejected", body=JobActivity(name="h", command="x")),))
    )
    play.fail("approve", name="rejected")
    assert play.jobs == ["h"]


def test_a_task_past_its_deadline_is_withdrawn_and_throws_deadline() -> None:  # AD-6
    task = UserTask(name="approve", role="editor", deadline_ms=Expr("60 * 1000"))
    play = started(
        Scope(name="sc", body=task, catches=(Catch(fault="deadline", body=JobActivity(name="h", command="x")),))
    )
    offer = play.out[play.serial("approve")]
    assert isinstance(offer, OfferTask) and offer.deadline == 61_000
    play.ring()
    assert play.jobs == ["h"]
    assert [order.serial for order in play.given if isinstance(order, WithdrawTask)] == [offer.serial]


def test_a_task_done_in_time_leaves_no_timer() -> None:  # AD-6
    play = started(sequence("s", UserTask(name="t", role="r", deadline_ms=100), JobActivity(name="b", command="x")))
    play.done("t")
    assert play.timers == []


def test_a_stage_takes_files_into_keeping() -> None:  # FM-6
    body = sequence(
        "s",
        Stage(name="st", files={"x": "a/path"}),
        JobActivity(name="b", command="x", inputs={"in": "${{ jobs.st.files.x }}"}),
    )
    play = started(body)
    play.finish(play.serial("st"), staging_outcome({"x": file("x")}))
    assert spec_of(play, "b").inputs == {"in": file("x")}


def test_a_call_runs_another_flow_and_takes_its_outputs() -> None:
    other = flow(JobActivity(name="o", command="x"))
    caller = Flow(
        name=FlowName("caller"),
        calls=(Flow(name=FlowName("other"), body=other.body),),
        body=sequence(
            "s",
            Call(name="c", flow="other", inputs={"n": "${{ 1 + 1 }}"}),
            JobActivity(name="b", command="${{ jobs.c.outputs.r }}"),
        ),
    )
    play = Play(caller)
    call = play.out[play.serial("c")]
    assert isinstance(call, StartCalledCase)
    assert (call.name, call.inputs, call.flow) == ("other", {"n": 2}, caller.calls[0])
    play.done("c", outputs={"r": "done"})
    assert play.command("b") == "done"


def test_a_called_flow_takes_along_the_flows_that_it_calls_itself() -> None:
    loop = Flow(name=FlowName("loop"), body=Call(name="again", flow="loop"))
    play = Play(Flow(name=FlowName("caller"), calls=(loop,), body=Call(name="c", flow="loop")))
    call = play.out[play.serial("c")]
    assert isinstance(call, StartCalledCase) and call.flow is not None
    assert [each.name for each in call.flow.calls] == ["loop"]


def test_a_call_can_leave_the_choice_of_its_flow_to_the_rules() -> None:  # EX-8
    play = started(Call(name="treat", inputs={"age": 5}))
    assert list(play.out.values()) == [StartCalledCase(serial=1, item=ItemId("treat"), name="", inputs={"age": 5})]
