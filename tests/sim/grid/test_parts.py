"""The parts that a grid is made of, each by itself."""

import asyncio
from collections.abc import Iterator
from random import Random
from statistics import fmean, pstdev

import pytest

from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName, ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.sync import Assignment, AttemptControl, AttemptOrder, AttemptRef, SyncAnswer, SyncRequest
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.elements import access, draw_seconds
from mendflow.sim.grid.flows import with_settings
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.pilots import LeanPilot
from mendflow.sim.grid.results import steps_of
from mendflow.sim.grid.scene import MB, ElementScene, GridScene, SiteScene
from mendflow.sim.loop import VirtualLoop

# storage elements


def test_the_delays_of_all_chunks_together_have_the_mean_and_the_spread_of_their_sum() -> None:
    element, chance = ElementScene(delay=0.5, spread=0.25, bytes_per_s=100 * MB, chunk_bytes=MB), Random(1)
    seconds = [access(element, 400 * MB, chance).seconds for _ in range(2_000)]
    assert fmean(seconds) == pytest.approx(4 + 400 * 0.5, rel=0.01)
    assert pstdev(seconds) == pytest.approx(20 * 0.125, rel=0.1)


def test_so_many_accesses_fail_as_the_failure_says_and_each_somewhere_on_the_way() -> None:
    element, chance = ElementScene(delay=0.1, failure=0.1), Random(1)
    tries = [access(element, 700 * MB, chance) for _ in range(2_000)]
    failed = [each.seconds for each in tries if each.fails]
    whole = fmean(each.seconds for each in tries if not each.fails)
    assert 0.08 < len(failed) / len(tries) < 0.12
    assert fmean(failed) == pytest.approx(whole / 2, rel=0.15)


def test_nothing_takes_less_than_no_time() -> None:
    assert min(draw_seconds((1, 10), Random(seed)) for seed in range(100)) == 0.0


# what a scene adds to a flow


def test_settings_of_a_scene_are_for_jobs_that_say_nothing_themselves() -> None:
    own, plain = JobActivity(name="own", command="x", retries=2, priority=7), JobActivity(name="plain", command="x")
    loop = ForEach(name="loop", first=0, last=3, body=plain)
    flow = Flow(name=FlowName("f"), body=Sequence(name="all", body=(own, loop)))
    changed = with_settings(flow, retries=5, retry_wait_ms=100, priority=3).body
    assert isinstance(changed, Sequence)
    first, second = changed.body
    assert isinstance(first, JobActivity) and isinstance(second, ForEach) and isinstance(second.body, JobActivity)
    assert (first.retries, first.retry_wait_ms, first.priority) == (2, 100, 7)
    assert (second.body.retries, second.body.retry_wait_ms, second.body.priority) == (5, 100, 3)
    assert with_settings(flow) is flow


def test_spans_that_end_and_begin_together_are_one_step() -> None:
    assert steps_of([(0, 10), (10, 20), (5, 10)]) == [(0.0, 0), (0, 1), (5, 2), (10, 1), (20, 0)]


# a lean pilot, and a server that says what it is told to

JOB = JobId("case/1")
SPEC = JobSpec(item=ItemId("work"), command="x")


class Scripted:
    """Answers the requests of a pilot in turn; the last answer is never given."""

    def __init__(self, *answers: tuple[float, SyncAnswer]) -> None:
        self._answers: Iterator[tuple[float, SyncAnswer]] = iter(answers)
        self.heard: list[SyncRequest] = []

    async def __call__(self, request: SyncRequest) -> SyncAnswer:
        self.heard.append(request)
        after_s, answer = next(self._answers, (1e6, SyncAnswer(serial=0, lease_ms=0)))
        await asyncio.sleep(after_s)
        return SyncAnswer(
            serial=request.serial,
            lease_ms=60_000,
            jobs=answer.jobs,
            orders=answer.orders,
            lost=answer.lost,
            accepted=answer.accepted,
        )


def spoken(script: Scripted, seconds: float, **scene: object) -> GridContext:
    """Let a pilot that computes for a hundred seconds a job speak to such a server for so long."""
    loop = VirtualLoop()  # type: ignore[abstract]  # sockets and threads are not of this world
    said = {"attentive": True, "exchange_s": 0.0, **scene}
    grid = GridScene(**said)  # type: ignore[arg-type]  # whatever a test says of it

    async def live() -> GridContext:
        context = GridContext(loop, grid, SteadyJobs(100), script)
        LeanPilot(context, PilotId("p"), SiteScene(running=1), "host").start()
        await asyncio.sleep(seconds)
        return context

    return loop.run(live())


def answer(**said: object) -> SyncAnswer:
    return SyncAnswer(serial=0, lease_ms=60_000, **said)  # type: ignore[arg-type]  # whatever a test lets it say


GIVEN = (0.0, answer(jobs=[Assignment(JOB, 1, SPEC)]))


def ordered(after_s: float, control: AttemptControl) -> tuple[float, SyncAnswer]:
    return after_s, answer(orders=[AttemptOrder(JOB, 1, control)])


def test_a_job_that_stood_still_takes_so_much_longer() -> None:
    script = Scripted(GIVEN, ordered(10, AttemptControl.SUSPEND), ordered(500, AttemptControl.RESUME))
    (record,) = spoken(script, 1_000).records
    assert record.ended_s == pytest.approx(600) and record.well
    assert [beat.state for request in script.heard for beat in request.running] == ["running", "suspended", "running"]


def test_a_job_that_is_cancelled_or_lost_ends_at_once_and_is_not_reported() -> None:
    for last in (ordered(10, AttemptControl.CANCEL), (10.0, answer(lost=[AttemptRef(JOB, 1)]))):
        script = Scripted(GIVEN, last)
        (record,) = spoken(script, 1_000).records
        assert record.ended_s == pytest.approx(10) and not record.well
        assert not any(request.reports for request in script.heard)


def test_an_order_about_another_attempt_is_none_for_this_one() -> None:
    script = Scripted(GIVEN, (10.0, answer(orders=[AttemptOrder(JOB, 7, AttemptControl.CANCEL)])))
    (record,) = spoken(script, 1_000).records
    assert record.well


def test_a_result_is_told_until_the_server_has_judged_it() -> None:
    script = Scripted(GIVEN, (1e6, answer()), (1.0, answer()), (1.0, answer(accepted=[AttemptRef(JOB, 1)])))
    spoken(script, 1_000)
    assert [len(request.reports) for request in script.heard] == [0, 0, 1, 1, 0]


def test_a_busy_pilot_that_has_nothing_to_say_speaks_three_times_a_lease() -> None:
    script = Scripted(GIVEN, *[(0.0, answer())] * 20)
    spoken(script, 95, lease_ms=60_000, attentive=False)
    assert [request.sent_at for request in script.heard] == [0, 20_000, 40_000, 60_000, 80_000]


@pytest.mark.parametrize(("hold_s", "wait_ms"), [(0.0, 18_000), (5.0, 5_000), (500.0, 18_000)])
def test_a_request_lies_with_the_server_for_as_long_as_the_scene_says_and_not_past_the_next_beat(
    hold_s: float, wait_ms: int
) -> None:
    script = Scripted()
    spoken(script, 1, lease_ms=60_000, hold_s=hold_s)
    assert [request.wait_ms for request in script.heard] == [wait_ms]
