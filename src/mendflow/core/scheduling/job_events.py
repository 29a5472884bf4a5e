"""What happens to a job, as events, and how each changes it. `evolve` is the only place where a job changes."""

from typing import Union

import msgspec
from msgspec.structs import replace

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobState, Measurements, Outcome, Requeue, StoredLog
from mendflow.core.scheduling import retries

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.AVAILABLE: frozenset({JobState.RUNNING, JobState.COMPLETED, JobState.FAILED}),
    JobState.RUNNING: frozenset({JobState.AVAILABLE, JobState.COMPLETED, JobState.FAILED}),
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
}
"""The transitions. Available becomes completed when an earlier case's result is used, and failed when the job is
cancelled before it runs. Nothing follows an end."""

HISTORY_FIRST = 3
HISTORY_LAST = 20
"""A job with very many attempts keeps its first and its latest; those between are dropped."""


class AttemptGranted(msgspec.Struct, frozen=True):
    pilot: PilotId
    fence: int
    at: Instant
    host: str = ""
    site: str = ""
    token: str = ""
    serial: int = 0
    lease_ms: int = 0
    because: str = ""


class JobFinished(msgspec.Struct, frozen=True):
    """The job has ended with this outcome. `end` is completed, failed, lost or cancelled; `own` says whether a failed
    attempt counts as the job's own failure."""

    outcome: Outcome
    end: str
    at: Instant
    own: bool = False


class AttemptRequeued(msgspec.Struct, frozen=True):
    """The attempt is over and the job waits again, not before `available_at`. `end` is failed, lost, requeued or
    returned. One that is not `begun` was no try of the job."""

    end: str
    at: Instant
    available_at: Instant
    own: bool = False
    fault: Fault | None = None
    measures: Measurements = Measurements()
    requeue: Requeue | None = None
    begun: bool = True
    log: StoredLog | None = None
    folder: str = ""


class TriesTakenOver(msgspec.Struct, frozen=True):
    """The job has ended at another scheduler, which tells how it was tried there: what was known of that before was
    less."""

    history: tuple[Attempt, ...]
    fence: int
    unbegun: int
    failures: int
    losses: int


class ResultTakenOver(msgspec.Struct, frozen=True):
    """An earlier case has run the same job; its result is used."""

    outcome: Outcome
    why: str
    at: Instant


class JobSuspended(msgspec.Struct, frozen=True):
    pass


class JobResumed(msgspec.Struct, frozen=True):
    pass


class RequeueOrdered(msgspec.Struct, frozen=True):
    """A person has requeued the job. The attempt no longer counts, but may still run."""

    requeue: Requeue


JobEvent = Union[
    AttemptGranted,
    JobFinished,
    AttemptRequeued,
    TriesTakenOver,
    ResultTakenOver,
    JobSuspended,
    JobResumed,
    RequeueOrdered,
]


def evolve(job: Job, event: JobEvent) -> None:
    """Apply the event. Never refuses: an event that does not fit is our own bug."""
    match event:
        case AttemptGranted():
            assert event.fence > job.fence, f"job {job.id}: a grant must raise the fence"
            _enter(job, JobState.RUNNING)
            job.fence, job.pilot = event.fence, event.pilot
            _open_attempt(job, event)
        case JobFinished():
            outcome, held = event.outcome, job.pilot is not None
            _finish(job, JobState.COMPLETED if outcome.ok else JobState.FAILED, outcome, event.at)
            _close_attempt(
                job, event.end, event.at, outcome.fault, outcome.measures, log=outcome.log, folder=outcome.folder
            )
            if held:  # a job that nobody has had has no attempt that could be lost
                _charge(job, event.end, event.own)
        case AttemptRequeued():
            _enter(job, JobState.AVAILABLE)
            _close_attempt(
                job, event.end, event.at, event.fault, event.measures, event.requeue, log=event.log, folder=event.folder
            )
            _charge(job, event.end, event.own)
            job.unbegun += not event.begun
            job.available_at = event.available_at
        case TriesTakenOver():
            job.history, job.fence, job.unbegun = list(event.history), event.fence, event.unbegun
            job.failures, job.losses = event.failures, event.losses
        case ResultTakenOver():
            _finish(job, JobState.COMPLETED if event.outcome.ok else JobState.FAILED, event.outcome, event.at)
            job.cache_reason = event.why
        case JobSuspended():
            job.suspended = True
        case JobResumed():
            job.suspended = False
        case RequeueOrdered():
            assert job.state is JobState.RUNNING, f"job {job.id}: nobody has it"
            job.requeued = event.requeue


def validate(job: Job) -> None:
    """The invariants of a job."""
    running = job.state is JobState.RUNNING
    assert (job.pilot is not None) == running, f"job {job.id}: {job.state} with pilot {job.pilot}"
    assert (job.outcome is not None) == job.finished, f"job {job.id}: {job.state} with outcome {job.outcome}"
    open_attempts = [attempt.fence for attempt in job.history if not attempt.end]
    assert open_attempts == ([job.fence] if running else []), f"job {job.id}: open attempts {open_attempts}"
    fences = [attempt.fence for attempt in job.history]
    assert fences == sorted(set(fences)), f"job {job.id}: fences out of order {fences}"
    assert len(fences) <= HISTORY_FIRST + HISTORY_LAST
    assert not fences or fences[-1] == job.fence
    assert job.tries >= running, f"job {job.id}: {job.unbegun} of {job.fence} grants unbegun"
    assert running or job.requeued is None, f"job {job.id}: requeued, and nobody has it"
    assert job.failures <= retries.tries_max(job.spec), f"job {job.id}: more failures than tries"


def _enter(job: Job, state: JobState) -> None:
    assert state in TRANSITIONS[job.state], f"job {job.id} cannot go from {job.state} to {state}"
    job.state = state
    job.pilot = None
    job.requeued = None


def _finish(job: Job, state: JobState, outcome: Outcome, at: Instant) -> None:
    _enter(job, state)
    job.outcome = outcome
    job.finished_at = at


def _charge(job: Job, end: str, own: bool) -> None:
    if own:
        job.failures += 1
    elif end in ("lost", "failed"):
        job.losses += 1


def _open_attempt(job: Job, grant: AttemptGranted) -> None:
    needs = job.spec.resources
    job.history.append(
        Attempt(
            fence=grant.fence,
            number=job.tries,
            pilot=grant.pilot,
            host=grant.host,
            site=grant.site,
            token=grant.token,
            serial=grant.serial,
            lease_ms=grant.lease_ms,
            granted_at=grant.at,
            because=grant.because,
            asked_bytes=needs.memory_bytes if needs.memory_auto else 0,
            asked_ms=needs.wall_ms if needs.wall_auto else 0,
        )
    )
    if len(job.history) > HISTORY_FIRST + HISTORY_LAST:
        del job.history[HISTORY_FIRST:-HISTORY_LAST]


def _close_attempt(
    job: Job,
    end: str,
    at: Instant,
    fault: Fault | None,
    measures: Measurements,
    requeue: Requeue | None = None,
    *,
    log: StoredLog | None = None,
    folder: str = "",
) -> None:
    history = job.history
    if not history or history[-1].end:
        return  # cancelled while nobody held it
    history[-1] = replace(
        history[-1], ended_at=at, end=end, fault=fault, measures=measures, requeue=requeue, log=log, folder=folder
    )
