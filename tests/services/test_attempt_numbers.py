"""What people are told as the number of an attempt: tries that began, over all submissions and runs of an item."""

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as life
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.services.cases.item_views import merged_submissions, of_job, of_jobs, with_earlier_runs

POLICY = RetryPolicy(loss_wait_ms=0)


def story(id: str, ends: str) -> Job:
    """A job with these attempts: r is returned unbegun, l is lost, and . is still with its pilot."""
    job = life.create(JobId(id), CaseId("c"), JobSpec(item=ItemId("a"), command="true"), now=1)
    for end in ends:
        for event in life.grant(job, PilotId("p"), now=5):
            job_events.evolve(job, event)
        ended = {"r": life.give_back(job, job.fence, now=5), "l": life.lose(job, now=5, policy=POLICY), ".": []}[end]
        for event in ended:
            job_events.evolve(job, event)
        job_events.validate(job)
    return job


def test_attempts_of_all_submissions_are_counted_through_without_those_that_never_began() -> None:
    submissions = [story("c/1", "rl"), story("c/1~2", "lrr.")]
    view = of_jobs(submissions)
    assert [attempt.number for attempt in view.attempts] == [1, 1, 2, 3, 3, 3]
    whole = merged_submissions(submissions)
    assert (whole.fence, whole.tries) == (6, 3) and [each.shown for each in whole.history] == [1, 1, 2, 3, 3, 3]
    assert [each.fence for each in whole.history] == [1, 2, 3, 4, 5, 6]


def test_runs_of_an_item_are_counted_through_too() -> None:
    first, again = of_job(story("c/1", "rl")), of_job(story("c/7", "r."))
    view = with_earlier_runs(again, [first])
    assert [attempt.number for attempt in view.attempts] == [1, 1, 2, 2]
    assert [run.attempts for run in view.earlier_runs] == [1]


def test_a_long_history_that_has_forgotten_its_middle_keeps_its_numbers() -> None:
    job = story("c/1", "lllllrl" + "r" * 30 + ".")
    assert len(job.history) == job_events.HISTORY_FIRST + job_events.HISTORY_LAST
    assert job.tries == 7 and [attempt.number for attempt in of_job(job).attempts[-2:]] == [7, 7]


def test_an_item_that_was_mended_still_says_why_it_ran_again() -> None:
    first, again = story("c/1", "l"), story("c/1~2", ".")
    first.cache_reason = "run again: its argument k changed"
    assert of_jobs([first, again]).cache_reason == first.cache_reason
