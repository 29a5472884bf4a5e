"""What an author says about retries holds: by cause, with its waits, and over all submissions of the job."""  # DU-7

import pytest
from msgspec.structs import replace

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome, RetryRule
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as lifecycle
from mendflow.core.scheduling.retries import are_spent, with_spent

POLICY = lifecycle.RetryPolicy()
FAULTS = {
    "75": Fault(name="exitCode", category=Category.JOB, message="75", exit_code=75),
    "1": Fault(name="exitCode", category=Category.JOB, message="1", exit_code=1),
    "memory": Fault(name="memoryLimit", category=Category.MEMORY, message="too much"),
    "reset": Fault(
        name="ConnectionResetError",
        category=Category.JOB,
        message="reset",
        data={"type": "ConnectionResetError", "types": ["ConnectionResetError", "ConnectionError", "OSError"]},
    ),
    "lost": Fault(name="diskFull", category=Category.RESOURCE, message="full"),
}


def job_of(*rules: RetryRule, retries: int = 0, spent: tuple[int, ...] = ()) -> Job:
    spec = JobSpec(item=ItemId("a"), command="x", retry=rules, retries=retries, retry_wait_ms=100, spent=spent)
    return lifecycle.create(JobId("c/1"), CaseId("c"), spec, now=0)


def play(job: Job, *failures: str) -> list[int]:
    """How long it waited after each failure; it ends when the job does."""
    waits, now = [], 0
    for name in failures:
        now = max(now, job.available_at)
        for event in lifecycle.grant(job, PilotId("p"), now=now):
            job_events.evolve(job, event)
        verdict = lifecycle.report(job, PilotId("p"), job.fence, Outcome(fault=FAULTS[name]), now=now, policy=POLICY)
        for event in verdict.events:
            job_events.evolve(job, event)
        job_events.validate(job)
        if job.finished:
            break
        waits.append(job.available_at - now)
    return waits


ON_75 = RetryRule(times=3, wait_ms=1000, on=("75",))
ON_MEMORY = RetryRule(times=1, on=("memory",))
ANY = RetryRule(times=2, wait_ms=10, factor=1)


@pytest.mark.parametrize(
    ("rules", "failures", "waits"),
    [
        ((ON_75,), ["75"] * 9, [1000, 2000, 4000]),
        ((ON_75,), ["1", "1"], []),
        ((ON_75,), ["75", "1", "75"], [1000]),
        ((ON_75, ON_MEMORY), ["75", "memory", "75", "75", "75"], [1000, 0, 2000, 4000]),
        ((ON_75, ON_MEMORY), ["memory", "memory"], [0]),
        ((ON_75, ANY), ["1", "75", "1", "1"], [10, 1000, 10]),
        ((ANY,), ["1", "75", "memory", "1"], [10, 10]),
        ((RetryRule(times=0),), ["1"], []),
        ((RetryRule(times=1, on=("exitCode",)),), ["1", "75"], [0]),
        ((RetryRule(times=2, on=("OSError",)),), ["reset", "reset", "reset"], [0, 0]),
        ((RetryRule(times=2, on=("ValueError",)),), ["reset"], []),
        ((), ["1"], []),
    ],
)
def test_a_failure_is_tried_again_as_its_rule_says(
    rules: tuple[RetryRule, ...], failures: list[str], waits: list[int]
) -> None:
    job = job_of(*rules)
    assert play(job, *failures) == waits
    assert job.state is JobState.FAILED


def test_a_number_is_for_every_failure_and_waits_double() -> None:
    assert play(job_of(retries=3), "1", "75", "1", "1") == [100, 200, 400]


def test_what_earlier_submissions_used_up_counts() -> None:
    assert play(job_of(retries=3, spent=(2,)), "1", "1") == [400]
    assert play(job_of(ON_75, ON_MEMORY, spent=(3, 0)), "75") == []
    assert play(job_of(ON_75, ON_MEMORY, spent=(0, 1)), "75", "memory") == [1000]


def test_waits_after_losses_grow_on_where_the_job_goes_elsewhere() -> None:
    assert play(job_of(), *["lost"] * 4) == [0, 1000, 2000, 4000]
    elsewhere = job_of()
    elsewhere.spec = replace(elsewhere.spec, earlier_losses=2)
    assert play(elsewhere, *["lost"] * 3) == [2000, 4000, 8000]


def test_only_waits_are_carried_over_and_each_submission_has_the_whole_budget_of_losses() -> None:
    elsewhere = job_of()
    elsewhere.spec = replace(elsewhere.spec, earlier_losses=21)
    assert len(play(elsewhere, *["lost"] * 30)) == POLICY.losses_max


@pytest.mark.parametrize(
    ("rules", "fault", "failures", "spent"),
    [
        ((ON_75,), "75", 3, False),
        ((ON_75,), "75", 4, True),
        ((ON_75,), "1", 9, False),
        ((RetryRule(times=0),), "memory", 1, True),
        ((ANY,), "lost", 9, False),
        ((), "75", 9, False),
    ],
)
def test_retries_are_spent_when_the_author_says_so(
    rules: tuple[RetryRule, ...], fault: str, failures: int, spent: bool
) -> None:
    assert are_spent(job_of(*rules).spec, FAULTS[fault], failures) is spent


def test_each_submission_hands_on_what_was_used_up() -> None:
    spec = with_spent(job_of(ON_75, ON_MEMORY).spec, FAULTS["75"], 2)
    assert spec.spent == (2, 0)
    spec = with_spent(spec, FAULTS["memory"], 3)
    assert spec.spent == (2, 1)
    assert with_spent(spec, FAULTS["lost"], 5).spent == (2, 1)
    assert are_spent(spec, FAULTS["memory"], 4) and not are_spent(spec, FAULTS["75"], 4)
