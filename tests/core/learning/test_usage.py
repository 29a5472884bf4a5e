"""What jobs have cost, by flow and day."""

import pytest

from mendflow.core.learning.usage import CompletedJobs, UsageStatistics, count_job
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState, Measurements, Resources

GB = 1_000_000_000


def completed(*, waited_ms: int, ran_ms: int, asked_bytes: int, peak_bytes: int, host: str, site: str) -> Job:
    measures = Measurements(peak_bytes=peak_bytes)
    attempt = Attempt(
        fence=1,
        pilot=PilotId("p"),
        host=host,
        site=site,
        granted_at=1000 + waited_ms,
        ended_at=1000 + waited_ms + ran_ms,
        end="completed",
        measures=measures,
    )
    spec = JobSpec(item=ItemId("a"), resources=Resources(memory_bytes=asked_bytes))
    job = Job(id=JobId("f-1/1"), case=CaseId("f-1"), spec=spec, name="a", created_at=1000, available_at=1000)
    job.state, job.history = JobState.COMPLETED, [attempt]
    return job


@pytest.mark.parametrize(
    "job",
    [
        completed(waited_ms=0, ran_ms=10, asked_bytes=0, peak_bytes=GB, host="", site=""),
        completed(waited_ms=50, ran_ms=70, asked_bytes=4 * GB, peak_bytes=GB, host="h1", site="s"),
        completed(waited_ms=5, ran_ms=-3, asked_bytes=GB, peak_bytes=2 * GB, host="h1", site=""),
        completed(waited_ms=5, ran_ms=7, asked_bytes=GB, peak_bytes=0, host="h2", site=""),
    ],
)
def test_a_job_that_completed_at_once_is_counted_like_any_other(job: Job) -> None:
    usual, short = UsageStatistics(flow="f", day=0), UsageStatistics(flow="f", day=0)
    completed_jobs = CompletedJobs()
    for _ in range(2):
        count_job(usual, job, {})
        completed_jobs.add(job, job.history[0])
    completed_jobs.add_to(short)
    assert short == usual
    assert usual.attempts == 2
