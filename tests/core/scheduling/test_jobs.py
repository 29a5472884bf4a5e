"""The life of a job, transition by transition."""

import msgspec
import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState, Measurements, Outcome, Resources
from mendflow.core.scheduling import job_events, jobs
from mendflow.core.scheduling.job_events import JobEvent
from mendflow.core.scheduling.jobs import ReportVerdict, RetryPolicy

P1, P2 = PilotId("p-1"), PilotId("p-2")
POLICY = RetryPolicy(losses_max=3, loss_wait_ms=1_000, wait_max_ms=10_000)
FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1", exit_code=1))
NODE_DIED = Outcome(fault=Fault(name="disk", category=Category.RESOURCE, message="the pilot's disk is full"))


def new(*, retries: int = 0, retry_wait_ms: int = 0, wall_ms: int = 0) -> Job:
    needs = Resources(wall_ms=wall_ms)
    spec = JobSpec(item=ItemId("align"), command="true", retries=retries, retry_wait_ms=retry_wait_ms, resources=needs)
    return jobs.create(JobId("align-7/3"), CaseId("align-7"), spec, now=1000)


def happen(job: Job, events: list[JobEvent] | tuple[JobEvent, ...]) -> Job:
    assert events, "nothing happened"
    for event in events:
        job_events.evolve(job, event)
    job_events.validate(job)
    return job


def granted(job: Job, pilot: PilotId = P1, now: int = 1000) -> Job:
    return happen(job, jobs.grant(job, pilot, now=max(now, job.available_at)))


def told(job: Job, outcome: Outcome, *, now: int = 2000, fence: int = 0, pilot: PilotId = P1) -> ReportVerdict:
    return jobs.report(job, pilot, fence or job.fence, outcome, now=now, policy=POLICY)


def test_a_grant_raises_the_fence_and_names_the_holder() -> None:  # JS-1 JS-2
    job = granted(new())
    assert (job.state, job.pilot, job.fence) == (JobState.RUNNING, P1, 1)
    assert job.history[0].pilot == P1 and job.history[0].granted_at == 1000


def test_a_job_that_is_taken_is_given_to_nobody_else() -> None:  # JS-1
    assert jobs.grant(granted(new()), P2, now=5000) == []


def test_deciding_changes_nothing() -> None:
    job = new(retries=2)
    granted(job)
    before = str(job)
    told(job, FAILED)
    jobs.lose(job, now=9, policy=POLICY)
    jobs.give_back(job, 1, now=9)
    jobs.cancel(job, now=9)
    jobs.suspend(job)
    assert str(job) == before


def test_a_report_by_the_holder_completes_the_job() -> None:  # JS-2 FM-7
    job = granted(new())
    done = Outcome(outputs=42, measures=Measurements(cpu_ms=5))
    verdict = told(job, done)
    assert verdict.accepted and verdict.final
    happen(job, verdict.events)
    assert (job.state, job.outcome, job.finished_at, job.pilot) == (JobState.COMPLETED, done, 2000, None)
    assert job.history[0].end == "completed" and job.history[0].measures.cpu_ms == 5


def test_a_report_under_an_old_fence_is_refused() -> None:  # JS-7
    job = granted(new())
    happen(job, jobs.lose(job, now=2000, policy=POLICY))
    granted(job, P2, 3000)
    verdict = told(job, Outcome(outputs=1), fence=1)
    assert verdict == ReportVerdict(False, "job align-7/3: lease 1 is over (latest is 2)")


def test_a_report_after_its_lease_ended_is_refused_though_nobody_else_has_the_job() -> None:  # JS-7
    job = granted(new())
    happen(job, jobs.lose(job, now=2000, policy=POLICY))
    assert told(job, Outcome(outputs=1), fence=1) == ReportVerdict(False, "job align-7/3: lease 1 is over (lost)")


def test_a_job_that_outlived_its_pilot_wants_one_that_stays_longer_unless_it_says_how_long_it_takes() -> None:
    silent, open_about_it = granted(new()), granted(new(wall_ms=50))
    for job in (silent, open_about_it):
        assert jobs.effective_needs(job) == job.spec.resources
        happen(job, jobs.cut_short(job, "time", now=job.history[0].granted_at + 1_000, policy=POLICY))
    assert jobs.effective_needs(silent).wall_ms == 1_050
    assert jobs.effective_needs(open_about_it).wall_ms == 50
    asked = granted(new())
    happen(asked, jobs.cut_short(asked, "told", now=9_000, policy=POLICY))
    assert jobs.effective_needs(asked).wall_ms == 0, "that says nothing of how long it takes"


def test_a_report_by_another_than_the_holder_is_refused() -> None:  # JS-7
    verdict = told(granted(new()), Outcome(outputs=1), pilot=P2)
    assert verdict == ReportVerdict(False, "job align-7/3: lease 1 is held by p-1, not by p-2")


def test_a_report_under_a_fence_that_was_never_granted_is_refused() -> None:  # JS-7
    assert told(granted(new()), Outcome(outputs=1), fence=9).reason == (
        "job align-7/3: lease 9 was never granted (latest is 1)"
    )
    assert not told(new(), Outcome(outputs=1), fence=0).accepted


def test_a_report_that_is_repeated_is_accepted_again_and_changes_nothing() -> None:
    job = granted(new(retries=1))
    happen(job, told(job, FAILED).events)
    assert told(job, FAILED) == ReportVerdict(True, "job align-7/3: lease 1 was reported before (failed)")
    granted(job)
    happen(job, told(job, Outcome(outputs=1)).events)
    again = told(job, Outcome(outputs=1))
    assert again.accepted and not again.events and not again.final


def test_a_failure_is_tried_again_after_a_wait_that_doubles() -> None:
    job = granted(new(retries=3, retry_wait_ms=100))
    waits = []
    for _ in range(3):
        verdict = told(job, FAILED)
        assert verdict.accepted and not verdict.final
        happen(job, verdict.events)
        assert job.state is JobState.AVAILABLE
        waits.append(job.available_at - 2000)
        assert jobs.grant(job, P1, now=job.available_at - 1) == [], "granted before its time"
        granted(job)
    assert waits == [100, 200, 400]
    verdict = told(job, FAILED)
    assert verdict.final
    happen(job, verdict.events)
    assert (job.state, job.failures) == (JobState.FAILED, 4)
    assert [attempt.end for attempt in job.history] == ["failed"] * 4


def test_a_wait_grows_no_longer_than_the_policy_allows() -> None:
    job = granted(new(retries=50, retry_wait_ms=4_000))
    for _ in range(40):
        happen(job, told(job, FAILED).events)
        assert job.available_at - 2000 <= POLICY.wait_max_ms
        granted(job)


def test_a_lost_attempt_does_not_spend_a_retry() -> None:  # JS-7
    job = granted(new())
    happen(job, jobs.lose(job, now=2000, policy=POLICY))
    assert (job.state, job.failures, job.losses, job.pilot) == (JobState.AVAILABLE, 0, 1, None)
    assert job.available_at == 2000, "the first loss costs no wait"
    assert job.history[0].end == "lost" and job.history[0].ended_at == 2000


def test_a_fault_of_the_infrastructure_does_not_spend_a_retry() -> None:
    job = granted(new())
    verdict = told(job, NODE_DIED)
    assert verdict.accepted and not verdict.final
    happen(job, verdict.events)
    assert (job.state, job.failures, job.losses) == (JobState.AVAILABLE, 0, 1)


def test_a_machine_that_fails_the_same_way_each_time_is_not_given_the_job_again() -> None:
    lasting = Fault(
        name="noContainers", category=Category.RESOURCE, message="no container starts", data={"lasting": True}
    )
    job = granted(new(retries=2))
    verdict = told(job, Outcome(fault=lasting))
    assert verdict.accepted and verdict.final
    happen(job, verdict.events)
    assert job.state is JobState.FAILED and job.outcome is not None and job.outcome.fault == lasting
    assert (job.failures, job.losses) == (0, 1), "it is not the job's own failure"


def test_a_job_that_is_lost_too_often_fails_and_tells_its_story() -> None:
    job = granted(new())
    for number in range(POLICY.losses_max):
        happen(job, jobs.lose(job, now=2000, policy=POLICY))
        granted(job, PilotId(f"p-{number}"))
    happen(job, jobs.lose(job, now=2000, policy=POLICY, why="the node fell silent"))
    assert job.state is JobState.FAILED and job.outcome is not None and job.outcome.fault is not None
    fault = job.outcome.fault
    assert (fault.name, fault.category) == ("lost-too-often", Category.RESOURCE)
    assert "4 losses" in fault.message and "the node fell silent on pilot p-2" in fault.message
    assert fault.data["pilots"] == ["p-0", "p-1", "p-2"]
    assert (job.failures, job.losses) == (0, 4)


def test_an_attempt_that_was_never_begun_is_given_back_free_of_charge() -> None:
    job = granted(new())
    happen(job, jobs.give_back(job, 1, now=2000))
    assert (job.state, job.failures, job.losses, job.available_at) == (JobState.AVAILABLE, 0, 0, 2000)
    assert job.history[0].end == "returned"
    assert jobs.give_back(job, 1, now=3000) == []
    granted(job)
    assert jobs.give_back(job, 1, now=3000) == [], "an old fence gives nothing back"


def test_what_came_back_unbegun_was_no_try_and_the_fence_goes_on_all_the_same() -> None:
    job = granted(new())
    assert (job.fence, job.tries) == (1, 1)
    happen(job, jobs.give_back(job, 1, now=2000))
    assert (job.fence, job.tries) == (1, 0)
    granted(job)
    assert (job.fence, job.tries) == (2, 1)
    happen(job, jobs.lose(job, now=3000, policy=POLICY))
    happen(job, jobs.grant(job, PilotId("p-9"), now=job.available_at))
    assert (job.fence, job.tries) == (3, 2), "nobody knows whether a lost one had begun"
    assert [(each.fence, each.shown) for each in job.history] == [(1, 1), (2, 1), (3, 2)]


def test_an_attempt_of_a_document_that_has_no_numbers_is_known_by_its_fence() -> None:
    older = msgspec.json.decode(b'{"fence": 4, "pilot": "p", "granted_at": 1}', type=Attempt)
    assert older.shown == 4


def test_one_that_was_taken_from_its_pilot_before_it_began_was_no_try() -> None:
    job = granted(new())
    happen(job, jobs.requeue_attempt(job, by="ada", reason="", now=1500))
    happen(job, jobs.give_back(job, 1, now=2000))
    assert job.tries == 0 and job.history[0].requeue is not None


@pytest.mark.parametrize("running", [False, True])
def test_a_cancelled_job_is_over_for_good(running: bool) -> None:
    job = granted(new(retries=5)) if running else new()
    happen(job, jobs.cancel(job, now=2000, reason="not needed"))
    assert job.state is JobState.FAILED and job.outcome is not None and job.outcome.fault is not None
    assert job.outcome.fault.category is Category.CANCELLED and job.outcome.fault.message == "cancelled: not needed"
    assert jobs.cancel(job, now=3000) == [] and jobs.grant(job, P1, now=3000) == []
    assert [attempt.end for attempt in job.history] == (["cancelled"] if running else [])
    assert (job.failures, job.losses) == (0, 0)
    if running:
        assert not told(job, Outcome(outputs=1)).accepted


def test_a_report_that_somebody_ended_the_job_is_not_tried_again() -> None:
    job = granted(new(retries=5))
    ended = Outcome(fault=Fault(name="cancelled", category=Category.CANCELLED, message="by its owner"))
    assert told(job, ended).final


def test_a_suspended_job_is_granted_to_nobody_until_it_is_resumed() -> None:
    job = happen(new(), jobs.suspend(new()))
    assert jobs.grant(job, P1, now=5000) == []
    assert jobs.suspend(job) == []
    happen(job, jobs.resume(job))
    assert jobs.resume(job) == []
    granted(job)


def test_an_earlier_result_is_taken_over_only_before_anyone_began() -> None:
    job = new()
    happen(job, jobs.take_over(job, Outcome(outputs=7, cached_from="align-6/3"), why="unchanged", now=1500))
    assert job.state is JobState.COMPLETED and job.cache_reason == "unchanged"
    assert jobs.take_over(granted(new()), Outcome(), why="late", now=1500) == []


def test_the_history_keeps_the_first_and_the_latest_attempts() -> None:
    job = new()
    for _ in range(100):
        granted(job)
        happen(job, jobs.give_back(job, job.fence, now=2000))
    fences = [attempt.fence for attempt in job.history]
    assert fences == [1, 2, 3, *range(81, 101)]


def test_nothing_leaves_an_end() -> None:  # JS-2
    assert job_events.TRANSITIONS[JobState.COMPLETED] == job_events.TRANSITIONS[JobState.FAILED] == frozenset()
    job = granted(new())
    happen(job, told(job, Outcome(outputs=1)).events)
    with pytest.raises(AssertionError, match="cannot go from completed to running"):
        job_events.evolve(job, job_events.AttemptGranted(P2, 2, 3000))
