"""What the document of a job says about the memory and the time that it asks for."""

from mendflow.core.learning.sizes_requests import (
    MEMORY_STEP_BYTES,
    JobSizes,
    LearnedRun,
    failed_bytes,
    job_name,
    run_of,
)
from mendflow.core.learning.sizes_views import size_view
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState, Measurements, Outcome, Resources

GB = 1_000_000_000
KNOWN = [LearnedRun(0, GB, 60_000, 8 * GB, 0, 6 * GB) for _ in range(5)]


def job(needs: Resources, **more: object) -> Job:
    spec = JobSpec(item=ItemId("align[3]"), resources=needs)
    return Job(id=JobId("night-1a2b.3/7"), case=CaseId("night-1a2b.3"), spec=spec, name="align", **more)  # type: ignore[arg-type]  # as the test says


def failed(limit_bytes: int) -> Attempt:
    data = {"peak_bytes": limit_bytes + 1, "limit_bytes": limit_bytes}
    fault = Fault(name="memoryLimit", category=Category.MEMORY, message="too much", data=data)
    return Attempt(fence=1, pilot=PilotId("p"), granted_at=1, end="failed", fault=fault)


def test_a_job_asks_for_what_jobs_of_its_name_used() -> None:  # LE-2
    request = JobSizes(KNOWN).request(job(Resources(memory_auto=True, memory_max_bytes=8 * GB)))
    assert GB < request.memory_bytes < 1.2 * GB and request.memory_bytes % MEMORY_STEP_BYTES == 0
    assert request.wall_ms == 0
    [reason] = request.sizing.reasons
    assert "the most that the last 5 such jobs used, 1 GB, and" in reason


def test_what_a_repair_has_set_is_the_least() -> None:  # LE-2
    sized = job(Resources(memory_auto=True, memory_max_bytes=8 * GB, memory_bytes=4 * GB))
    request = JobSizes(KNOWN).request(sized)
    assert 4 * GB <= request.memory_bytes <= 4 * GB + MEMORY_STEP_BYTES
    assert request.sizing.memory_least_bytes == 4 * GB and "raised after a failure" in request.sizing.reasons[0]


def test_a_job_that_failed_asks_for_more_than_it_had() -> None:  # LE-2
    again = job(Resources(memory_auto=True, memory_max_bytes=8 * GB), history=[failed(2 * GB)])
    assert failed_bytes(again) == 2 * GB
    assert 5 * GB <= JobSizes(KNOWN).request(again).memory_bytes <= 8 * GB


def test_sizing_a_job_twice_gives_the_same() -> None:  # LE-2
    sized = job(Resources(memory_auto=True, wall_auto=True, memory_max_bytes=8 * GB))
    sizes = JobSizes(KNOWN)
    first = sizes.request(sized)
    sized.sizing = first.sizing
    needs = Resources(
        memory_auto=True,
        wall_auto=True,
        memory_max_bytes=8 * GB,
        memory_bytes=first.memory_bytes,
        wall_ms=first.wall_ms,
    )
    sized.spec = JobSpec(item=sized.spec.item, resources=needs)
    assert sizes.request(sized) == first, "what was learned before is no bound from below"


def test_what_is_learned_stands_under_the_flow_that_was_started() -> None:  # LE-2
    assert (job_name(job(Resources())).flow, job_name(job(Resources())).name) == ("night", "align")


def test_only_measured_successes_teach() -> None:  # LE-2
    measures = Measurements(peak_bytes=GB, ran_ms=1000)
    done = job(Resources(memory_bytes=2 * GB), state=JobState.COMPLETED, outcome=Outcome(measures=measures))
    assert run_of(done) == LearnedRun(0, GB, 1000, 2 * GB, 0, 2 * GB, 0)
    for outcome in (
        Outcome(),
        Outcome(measures=measures, cached_from="x"),
        Outcome(measures=measures, fault=Fault(name="exit", category=Category.JOB, message="")),
    ):
        assert run_of(job(Resources(), state=JobState.COMPLETED, outcome=outcome)) is None


def test_people_see_what_was_saved() -> None:  # LE-2
    view = size_view("night", "align", 12, KNOWN)
    assert (view.jobs, view.runs, view.memory_asked_bytes, view.memory_used_bytes) == (12, 5, 6 * GB, GB)
    assert view.memory_next_bytes < 1.2 * GB and view.memory_basis == "largest"
    assert round(view.saved_gb_hours, 6) == round(5 * 2 / 60, 6)
