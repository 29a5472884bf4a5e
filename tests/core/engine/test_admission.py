"""What is no value never gets into a case: a journal that cannot be written would be the end of it."""

import math

import msgspec
import pytest

from mendflow.core.engine.admission import NOT_DATA
from mendflow.core.engine.messages import Deliver, ForceComplete, ForceFail, ItemFailed, RestartItem, SubmitJob
from mendflow.core.model.errors import RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Assign,
    Catch,
    Copy,
    Flow,
    ForEach,
    Input,
    JobActivity,
    Receive,
    Scope,
    Sequence,
    While,
)
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.values import FileRef, Value
from tests.core.engine.world import Play, file, started


def deep() -> Value:
    value: Value = []
    for _ in range(975):
        value = [value]
    return value


NO_VALUES = [10**30, deep(), math.nan, {1: 2}, b"x"]


def job(name: str, **more: object) -> JobActivity:
    return JobActivity(name=name, command=name, **more)  # type: ignore[arg-type]  # the fields are the model's own


@pytest.mark.parametrize("value", NO_VALUES)
def test_a_case_is_not_started_with_what_is_no_value(value: Value) -> None:
    with pytest.raises(RequestError, match="input n cannot be taken"):
        Play(Flow(name=FlowName("f"), body=job("a"), inputs={"n": Input()}), {"n": value})


@pytest.mark.parametrize("value", NO_VALUES)
def test_a_message_that_is_no_value_is_refused(value: Value) -> None:
    play = started(Receive(name="r", channel="news"))
    with pytest.raises(RequestError, match="the message cannot be taken"):
        play.do(Deliver(id="m", channel="news", value=value))
    with pytest.raises(RequestError, match="the correlation cannot be taken"):
        play.do(Deliver(id="m", channel="news", correlation=value))


@pytest.mark.parametrize("value", NO_VALUES)
def test_an_item_is_not_forced_with_what_is_no_value(value: Value) -> None:
    play = started(job("a"))
    with pytest.raises(RequestError, match="the outputs of a"):
        play.do(ForceComplete(item=ItemId("a"), outputs=value))
    with pytest.raises(RequestError, match="the fault of a"):
        play.do(ForceFail(item=ItemId("a"), fault=Fault(name="x", category=Category.JOB, message="", data=value)))


@pytest.mark.parametrize("value", NO_VALUES)
def test_outputs_that_are_no_value_become_a_fault_and_the_journal_can_be_written(value: Value) -> None:
    play = started(job("a"))
    play.finish(play.serial("a"), Outcome(outputs=value, files={"t": file("t")}))
    assert play.status == "failed"
    fault = play.ended.fault
    assert fault is not None and (fault.name, fault.category) == (NOT_DATA, Category.OUTPUT)
    assert "outputs cannot be stored" in fault.message
    msgspec.json.encode(play.journal)


@pytest.mark.parametrize(
    "measures", [Measurements(), Measurements(peak_bytes=5, damaged=("lfn:/a on near: it is damaged",))]
)
def test_whatever_a_pilot_measures_can_be_kept(measures: Measurements) -> None:
    play = started(job("a"))
    play.finish(play.serial("a"), Outcome(measures=measures))
    assert play.status == "completed"


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(fault=Fault(name="x", category=Category.JOB, message="", data=10**30)),
        Outcome(exit_code=10**30),
        Outcome(measures=Measurements(peak_bytes=10**30)),
        Outcome(files={"t": FileRef(sha256="s", bytes=10**30, name="t")}),
    ],
)
def test_no_part_of_an_outcome_can_spoil_the_journal(outcome: Outcome) -> None:
    play = started(job("a"))
    play.finish(play.serial("a"), outcome)
    assert play.status == "failed" and play.ended.fault is not None and play.ended.fault.name == NOT_DATA
    msgspec.json.encode(play.journal)


@pytest.mark.parametrize("value", NO_VALUES)
def test_what_a_job_reported_of_itself_and_is_no_value_is_left_out(value: Value) -> None:
    play = started(job("a"))
    play.finish(play.serial("a"), Outcome(outputs=1, values={"a": value}))
    assert play.status == "completed"
    msgspec.json.encode(play.journal)


def test_a_value_that_grows_deeper_with_each_turn_is_a_fault_in_time() -> None:
    again = While(name="w", condition=Expr("true"), body=Assign(name="a", copies=(Copy("x", {"in": "${{ x }}"}),)))
    play = started(Scope(name="s", body=again, variables={"x": 0})).run_out()
    assert play.ended.fault is not None and "deeper than 64 levels" in play.ended.fault.message


def test_a_part_that_is_put_into_itself_again_and_again_is_a_fault_in_time() -> None:
    again = While(name="w", condition=Expr("true"), body=Assign(name="a", copies=(Copy("x.in", "${{ x }}"),)))
    play = started(Scope(name="s", body=again, variables={"x": {}})).run_out()
    assert play.ended.fault is not None and "deeper than 64 levels" in play.ended.fault.message


def test_resources_beyond_all_sense_are_a_fault() -> None:
    play = started(msgspec.structs.replace(job("a"), resources=_memory("${{ 1e300 }}")))
    assert play.ended.fault is not None and "more than there is anywhere" in play.ended.fault.message


def _memory(template: str) -> Value:
    return msgspec.structs.replace(JobActivity(name="x").resources, memory_bytes=template)


def test_a_loop_that_counts_too_far_is_a_fault_that_says_so() -> None:
    play = started(ForEach(name="f", body=job("a"), first=0, last=Expr("9000000000000")))
    assert play.ended.fault is not None and "at most 10,000,000 are taken" in play.ended.fault.message


def test_a_long_loop_takes_room_only_for_the_turns_that_ran() -> None:
    loop = ForEach(
        name="f", body=job("a"), first=0, last=9_999_999, parallel=False, min_ended=2, collect=Expr("jobs.a.outputs")
    )
    play = started(loop)
    play.done("a[0]", outputs=1)
    assert len(play.case.instances) < 10
    assert max(len(getattr(each, "collected", ())) for each in play.case.instances.values()) == 1
    play.done("a[1]", outputs=2)
    assert play.status == "completed"


SPILLED = {"$spilled": "5a" * 32, "bytes": 70_000}


def after_spill(second: JobActivity) -> Play:
    return started(Sequence(name="s", body=(job("h"), second))).done("h", outputs={"v": SPILLED, "n": 1})


def test_a_spilled_value_is_handed_on_whole() -> None:
    play = after_spill(job("z", args=("${{ jobs.h.outputs.v }}",), inputs={"v.json": "${{ jobs.h.outputs.v }}"}))
    order = play.out[play.serial("z")]
    assert isinstance(order, SubmitJob)
    assert order.spec.args == [SPILLED]
    assert order.spec.inputs["v.json"].sha256 == "5a" * 32


@pytest.mark.parametrize(
    "more",
    [
        {"env": {"V": "${{ jobs.h.outputs.v }}"}},
        {"env": {"V": "v=${{ jobs.h.outputs.v }}"}},
        {"args": ("${{ jobs.h.outputs.v.bytes }}",)},
        {"args": ("${{ jobs.h.outputs.v.size() }}",)},
        {"args": ("${{ jobs.h.outputs.v[0] }}",)},
        {"when": Expr("jobs.h.outputs.v == 'x'")},
    ],
)
def test_a_spilled_value_is_not_taken_for_a_map(more: dict[str, object]) -> None:
    fault = after_spill(job("z", **more)).ended.fault
    assert fault is not None
    said = "jobs.h.outputs.v is 70 kB, too large for an expression; pass it to a job as an argument, or as a file"
    assert fault.message == f"z: {said}"


def failed_items(play: Play) -> list[tuple[str, str, str]]:
    return [(each.item, each.kind, each.fault.message) for each in play.given if isinstance(each, ItemFailed)]


def test_a_job_that_fails_before_it_is_ordered_is_told_of_with_its_name() -> None:
    play = started(
        Sequence(name="s", body=(job("a"), JobActivity(name="z", command="echo ${{ jobs.a.outputs.typo }}")))
    )
    play.done("a", outputs={"type": 1})
    told = failed_items(play)
    assert told == [("z", "job", "z: `jobs.a.outputs` has no `typo`; did you mean `type`?")]
    assert play.ended.fault is not None and play.ended.fault.message == told[0][2]


def test_a_condition_that_cannot_be_evaluated_is_told_of() -> None:
    body = JobActivity(name="z.iteration", label="z", command="x", when=Expr("item.typo"))
    play = started(ForEach(name="z", body=body, items=[1], parallel=False))
    assert [(item, kind) for item, kind, _ in failed_items(play)] == [("z[0]", "job")]


def test_a_job_whose_staging_fails_is_told_of() -> None:
    play = started(job("a", inputs={"in.txt": "given.txt"}))
    fault = Fault(name="stagingFailed", category=Category.DATA, message="given.txt is not there")
    play.finish(play.serial("a"), Outcome(fault=fault))
    assert failed_items(play) == [("a", "job", "a: given.txt is not there")]


def test_a_restarted_job_whose_staging_fails_is_told_of_with_the_fault_as_it_came() -> None:
    reads = job("a", inputs={"in.txt": "given.txt"})
    says = JobActivity(name="say", command="echo ${{ fault.message }}")
    play = started(Scope(name="s", body=reads, catches=(Catch(body=says),)))
    play.finish(play.serial("a"), Outcome(files={"in.txt": file("given.txt")}))
    play.do(RestartItem(item=ItemId("a")))
    fault = Fault(name="stagingFailed", category=Category.DATA, message="given.txt is not there")
    play.finish(play.serial("a"), Outcome(fault=fault))
    assert failed_items(play) == [("a", "job", "given.txt is not there")]
    assert play.command("say") == "echo given.txt is not there"


def test_a_job_that_was_submitted_and_failed_is_not_told_of_twice() -> None:
    assert failed_items(started(job("a")).fail("a")) == []
