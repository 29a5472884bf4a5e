"""Predictions: they repeat to the byte, they follow the flow and the grid, and what holds a flow back is what helps."""

import msgspec
import pytest

from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.pages.charts.drawing import draw_chart
from mendflow.sim.estimates import ANY, Estimate, Estimates
from mendflow.sim.grid.scene import MB, BatchScene, ElementScene, GridScene, SiteScene
from mendflow.sim.predict import Prediction, Question, predict
from mendflow.sim.prediction_figures import figures


def loop(turns: int, *, then: bool = False) -> Flow:
    """So many jobs at once that make a file each, and if wanted one after all of them."""
    body = JobActivity(name="work.iteration", label="work", command="x", files={"out": "o"})
    each = ForEach(name="work", items=list(range(turns)), body=body)
    last = JobActivity(name="last", command="x")
    return Flow(name=FlowName("f"), body=Sequence(name="s", body=(each, last) if then else (each,)))


def asked(flow: Flow, site: SiteScene, estimate: Estimate, **more: object) -> Prediction:
    question = Question(flow=flow, scene=GridScene(sites=(site,)), job_model=Estimates({ANY: estimate}), seeds=(1, 2))
    return predict(msgspec.structs.replace(question, **more), tell=lambda sentence: None)


def test_the_same_question_has_the_same_answer_to_the_byte() -> None:
    estimate, site = Estimate(seconds=60, spread_s=10, file_bytes=MB), SiteScene(hosts=2, running=3, share="host")
    first, second = (asked(loop(8, then=True), site, estimate) for _ in range(2))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert [draw_chart(each.chart) for each in figures(first)] == [draw_chart(each.chart) for each in figures(second)]


@pytest.mark.full
def test_how_many_processes_play_cannot_be_seen() -> None:
    estimate, site = Estimate(seconds=60, spread_s=10), SiteScene(hosts=1, running=3)
    one, two = (asked(loop(5), site, estimate, what_if=False, processes=processes) for processes in (1, 2))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)


def test_jobs_of_a_minute_on_half_as_many_pilots_take_two_minutes_and_more_pilots_would_help() -> None:
    made = asked(loop(8), SiteScene(hosts=1, running=4), Estimate(seconds=60))
    assert made.turnaround_s.mean == pytest.approx(120, rel=0.05)
    assert (made.status, made.jobs, made.pilots, made.most_at_once) == ("completed", 8, 4, 4)
    assert made.busy > 0.9
    assert made.what_ifs[0].name == "twice the pilots"
    assert made.what_ifs[0].gain == pytest.approx(0.5, abs=0.05)
    assert made.bottleneck.startswith("the number of pilots: with twice the pilots it would take 50 % less")


def test_a_chain_is_held_back_by_itself() -> None:
    chain = Sequence(name="s", body=tuple(JobActivity(name=f"j{at}", command="x") for at in range(3)))
    made = asked(Flow(name=FlowName("f"), body=chain), SiteScene(hosts=1, running=4), Estimate(seconds=60))
    assert made.turnaround_s.mean == pytest.approx(180, rel=0.05)
    assert made.bottleneck.startswith("the flow itself")
    assert [step.name for step in made.steps] == ["j0", "j1", "j2"]


def test_large_files_hold_back_what_moves_them() -> None:
    element = ElementScene(delay=0.0, bytes_per_s=MB)
    made = asked(loop(4), SiteScene(hosts=1, running=4, element=element), Estimate(seconds=5, file_bytes=60 * MB))
    assert made.bottleneck.startswith("the files")
    assert made.stage_out_part > 0.8


def test_pilots_that_wait_in_a_batch_queue_hold_back_a_short_flow() -> None:
    site = SiteScene(hosts=1, max_pilots=4, batch=BatchScene(queue_s=(600.0, 0.0)))
    made = asked(loop(4), site, Estimate(seconds=5), seeds=(1,))
    assert made.turnaround_s.mean > 600
    assert made.bottleneck.startswith("the batch queues")


def test_running_jobs_over_time_begin_and_end_with_the_flow() -> None:
    made = asked(loop(8), SiteScene(hosts=1, running=4), Estimate(seconds=60, spread_s=5), what_if=False)
    assert made.what_ifs == ()
    assert max(count for _, count, _ in made.running) == 4
    assert made.running[-1][0] == pytest.approx(made.turnaround_s.most, abs=0.001)
    assert [each.name for each in figures(made)] == ["running", "steps"]


def test_a_flow_that_fails_there_says_of_what_and_nothing_is_made_better() -> None:
    element = ElementScene(failure=1.0)
    made = asked(loop(2), SiteScene(hosts=1, running=2, element=element), Estimate(seconds=5, file_bytes=MB))
    assert made.status == "failed"
    assert made.fault
    assert made.what_ifs == ()


def test_runs_that_fail_are_counted_and_the_others_make_the_prediction() -> None:
    """One reading or writing in thirty fails, and nothing is tried again: of these seeds some fail."""
    site = SiteScene(hosts=1, running=4, element=ElementScene(failure=0.03))
    made = asked(loop(8), site, Estimate(seconds=60, file_bytes=MB), seeds=tuple(range(1, 9)))
    assert made.status == "failed"
    assert made.runs == 8
    assert 0 < made.failed_runs < 8
    assert made.fault
    assert made.turnaround_s.least > 119
    assert (made.jobs, made.failed_attempts) == (8, 0)
    sound = next(each for each in made.what_ifs if each.name == "storage that never fails")
    assert (sound.failed_runs, sound.pairs) == (0, 8 - made.failed_runs)
    assert "Runs that fail are left out." in draw_chart(figures(made)[-1].chart)


def test_very_many_jobs_are_told_by_what_their_names_have_in_common() -> None:
    """Traces name each task by itself: by a number, by a number of its sequence and an ID, or by a hash."""
    names = [f"{kind}{at:02d}" for kind in ("sift_ID00000", "part_3_ID00000", "merge_a1b2c3") for at in range(8)]
    jobs = Sequence(name="s", body=tuple(JobActivity(name=name, command="x") for name in names))
    site = SiteScene(hosts=1, running=1)
    made = asked(Flow(name=FlowName("f"), body=jobs), site, Estimate(seconds=1), what_if=False, seeds=(1,))
    assert [(step.name, step.attempts) for step in made.steps] == [("sift_…", 8), ("part_…", 8), ("merge_…", 8)]
