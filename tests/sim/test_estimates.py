"""Estimates of jobs: the more telling source wins, field by field, and what nobody knows is refused at once."""

from random import Random

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence, UserTask
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import JobSpec
from mendflow.sim.estimates import ANY, Estimate, Estimates, check_known, jobs_of, merge_estimates


def flow(*jobs: JobActivity | UserTask, calls: tuple[Flow, ...] = ()) -> Flow:
    return Flow(name=FlowName("f"), body=Sequence(name="all", body=jobs), calls=calls)


def seconds(estimates: dict[str, Estimate], item: str = "a", expected_ms: int = 0) -> float:
    spec = JobSpec(item=ItemId(item), command="x", expected_ms=expected_ms)
    return Estimates(estimates).of(spec, Random(1)).seconds


def test_a_job_takes_what_is_said_of_it_before_what_it_expects_and_that_before_what_is_said_of_all() -> None:
    assert seconds({"a": Estimate(seconds=3), ANY: Estimate(seconds=9)}, expected_ms=5_000) == 3
    assert seconds({ANY: Estimate(seconds=9)}, expected_ms=5_000) == 5
    assert seconds({ANY: Estimate(seconds=9)}) == 9


def test_an_item_of_a_loop_is_known_by_its_own_name_and_by_that_of_its_job() -> None:
    known = {"a": Estimate(seconds=3, outputs={"n": 1}), "a[2]": Estimate(outputs={"n": 2})}
    first, third = (
        Estimates(known).of(JobSpec(item=ItemId(item), command="x"), Random(1)) for item in ("a[0]", "a[2]")
    )
    assert (first.seconds, first.outputs) == (3, {"n": 1})
    assert (third.seconds, third.outputs) == (3, {"n": 2})


def test_measured_durations_are_drawn_from_and_guessed_ones_spread_around() -> None:
    drawn = {Estimate(samples=(1.0, 7.0)).duration_s(Random(seed)) for seed in range(20)}
    assert drawn == {1.0, 7.0}
    spread = [Estimate(seconds=1.0, spread_s=2.0).duration_s(Random(seed)) for seed in range(200)]
    assert min(spread) == 0.0
    assert len(set(spread)) > 50


def test_files_have_the_size_of_their_name_or_of_their_job() -> None:
    spec = JobSpec(item=ItemId("a"), command="x", files={"big": "b", "small": "s"})
    doing = Estimates({"a": Estimate(seconds=1, file_bytes=5, files={"big": 700})}).of(spec, Random(1))
    assert doing.files == {"big": 700, "small": 5}


def test_layers_add_up_and_the_earlier_wins() -> None:
    said, measured = (
        {"a": Estimate(file_bytes=7)},
        {"a": Estimate(samples=(4.0,), file_bytes=1), "b": Estimate(seconds=2)},
    )
    whole = merge_estimates([said, measured])
    assert (whole["a"].file_bytes, whole["a"].samples) == (7, (4.0,))
    assert whole["b"].seconds == 2


def test_all_jobs_of_which_nothing_is_known_are_told_at_once_those_of_called_flows_too() -> None:
    inner = flow(JobActivity(name="deep", command="x"))
    body = ForEach(name="loop", items=[1], body=JobActivity(name="loop.iteration", label="loop", command="x"))
    outer = Flow(
        name=FlowName("o"),
        body=Sequence(name="s", body=(body, JobActivity(name="b", command="x", expected_ms=1))),
        calls=(inner,),
    )
    assert set(jobs_of(outer)) == {"loop", "b", "deep"}
    with pytest.raises(InvalidRequest, match=r"these jobs take: deep, loop; say it with --runtime deep=60"):
        check_known(outer, Estimates({}))
    check_known(outer, Estimates({"loop": Estimate(seconds=1), "deep": Estimate(samples=(1.0,))}))
    check_known(outer, Estimates({ANY: Estimate(seconds=1)}))


def test_a_flow_that_waits_for_a_person_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"approve: waits for a person"):
        check_known(flow(UserTask(name="approve", role="boss")), Estimates({ANY: Estimate(seconds=1)}))
