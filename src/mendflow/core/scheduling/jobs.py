"""The life of a job: who may change it, and what follows.

A grant raises the job's fence, and from then on only the holder of that fence may report. Everything is decided from
the job's document alone: `grant`, `report`, `lose` and the others return events (job_events), and change nothing. A
fault of the infrastructure counts against the server's budget of losses, never against the job's own
retries."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.containers import runtimes_for
from mendflow.core.model.faults import CANCELLED_WORDS, Category, Fault, with_reason
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId, item_name
from mendflow.core.model.jobs import (
    Job,
    JobSpec,
    JobState,
    LearnedRequest,
    LimitedResources,
    Outcome,
    Requeue,
    Resources,
)
from mendflow.core.model.named_limits import NamedLimits
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.sync import LEAVE_REASONS
from mendflow.core.model.values import Value
from mendflow.core.scheduling import retries
from mendflow.core.scheduling.job_events import (
    AttemptGranted,
    AttemptRequeued,
    JobEvent,
    JobFinished,
    JobResumed,
    JobSuspended,
    RequeueOrdered,
    ResultTakenOver,
)

OUTLIVED_PERCENT = 105
"""A job that does not say how long it takes needs a pilot that stays for this multiple of the time that it has run in
vain."""

_DOUBLINGS_MAX = 20


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The server's retry policy. Waits double from attempt to attempt up to `wait_max_ms`."""

    losses_max: int = 20
    loss_wait_ms: int = 1_000
    wait_max_ms: int = 300_000


class ReportVerdict(msgspec.Struct, frozen=True):
    """The verdict on a report. An accepted one without events repeats what was accepted before."""

    accepted: bool
    reason: str
    events: tuple[JobEvent, ...] = ()

    @property
    def final(self) -> bool:
        """Whether this report ended the job."""
        return bool(self.events) and isinstance(self.events[-1], JobFinished)


def create(id: JobId, case: CaseId, spec: JobSpec, *, now: Instant, not_before: Instant = 0) -> Job:
    name, later = item_name(spec.item), max(now, not_before)
    return Job(id=id, case=case, spec=spec, name=name, created_at=now, available_at=later)


def resize(job: Job, request: LearnedRequest | None) -> None:
    """Let a job that waits ask for what was learned."""
    if request is None:
        return
    assert job.state is JobState.AVAILABLE, "a pilot has it"
    needs = job.spec.resources
    if (needs.memory_bytes, needs.wall_ms) != (request.memory_bytes, request.wall_ms):
        needs = msgspec.structs.replace(needs, memory_bytes=request.memory_bytes, wall_ms=request.wall_ms)
        job.spec = msgspec.structs.replace(job.spec, resources=needs)
    job.sizing = request.sizing


def grant(
    job: Job,
    pilot: PilotId,
    *,
    now: Instant,
    host: str = "",
    site: str = "",
    token: str = "",
    serial: int = 0,
    lease_ms: int = 0,
    because: str = "",
) -> list[JobEvent]:
    """Give the job to a pilot, or to nobody if it is running, ended, suspended, or must still wait."""
    if job.state is not JobState.AVAILABLE or job.suspended or job.available_at > now:
        return []
    return [AttemptGranted(pilot, job.fence + 1, now, host, site, token, serial, lease_ms, because)]


def report(
    job: Job, pilot: PilotId, fence: int, outcome: Outcome, *, now: Instant, policy: RetryPolicy
) -> ReportVerdict:
    """Judge the end of an attempt. Only the current holder, under the latest fence, may end anything."""
    if job.state is not JobState.RUNNING or job.fence != fence or job.pilot != pilot:
        return _refuse_report(job, pilot, fence)
    if job.requeued is not None:
        reason = f"job {job.id}: lease {fence} is over ({job.requeued.sentence()})"
        return ReportVerdict(False, reason, (_end_requeued(job.requeued, now),))
    fault = outcome.fault
    if fault is None:
        return ReportVerdict(True, "completed", (JobFinished(outcome, "completed", now),))
    if fault.infrastructure and fault.lasting:  # the same machine would be the first to ask for it again
        return ReportVerdict(True, fault.message, (JobFinished(outcome, "failed", now),))
    if fault.infrastructure:
        return ReportVerdict(True, fault.message, (_lose_or_end(job, fault, outcome, now=now, policy=policy),))
    stated = retries.stated_retries(job.spec, fault)
    before = retries.failures_of(job, stated) if stated is not None else 0
    if stated is None or before >= stated.rule.times or fault.category is Category.CANCELLED:
        return ReportVerdict(True, fault.message, (JobFinished(outcome, "failed", now, own=True),))
    wait_ms = retries.grown_wait_ms(stated.rule, before, policy.wait_max_ms)
    again = _requeue_failed("failed", fault, outcome, now=now, wait_ms=wait_ms, own=True)
    return ReportVerdict(True, f"failed ({fault.message}); retry {before + 1} of {stated.rule.times}", (again,))


def lose(
    job: Job,
    *,
    now: Instant,
    policy: RetryPolicy,
    why: str = "its lease ended",
    data: Value = None,
    log_tail: str = "",
) -> list[JobEvent]:
    """The holder is gone or unreachable: requeue the job, and count the loss against the infrastructure. `log_tail`
    is what the holder had told of its log."""
    if job.state is not JobState.RUNNING:
        return []
    if job.requeued is not None:
        return [_end_requeued(job.requeued, now)]
    message = f"{why} on pilot {job.pilot}"
    fault = Fault(name="lost", category=Category.RESOURCE, message=message, data=data, log_tail=log_tail)
    return [_lose_or_end(job, fault, Outcome(fault=fault), now=now, policy=policy)]


def cut_short(job: Job, leaves: str, *, now: Instant, policy: RetryPolicy) -> list[JobEvent]:
    """The holder has left, and has ended the attempt for that; `leaves` is the pilot's reason."""
    why = f"it still ran when it was ended, because {LEAVE_REASONS.get(leaves, 'the pilot left')},"
    return lose(job, now=now, policy=policy, why=why, data={"left": leaves} if leaves in LEAVE_REASONS else None)


def outlived_ms(job: Job) -> int:
    """The longest that it has run until its pilot's time limit; 0 if that has never happened."""
    if not job.history:
        return 0
    ended = [each for each in job.history if each.fault is not None and each.fault.data == {"left": "time"}]
    return max((each.ended_at - each.granted_at for each in ended), default=0)


def effective_needs(job: Job, uses: NamedLimits | None = None) -> Resources:
    """What a pilot must have for it: its needs, a runtime for its container, its project, and what was learnt. A job
    without a time that has outlived a pilot goes only to one that stays noticeably longer: otherwise it would run in
    vain again. `uses` are its named limits with the quotas of its project, if there are some."""
    needs, outlived, container = job.spec.resources, outlived_ms(job), job.spec.container
    if container is not None:
        needs = msgspec.structs.replace(needs, runtimes=runtimes_for(container.image))
    named, project = job.spec.limits.named if uses is None else uses, job.spec.project
    if named or project != DEFAULT_PROJECT:
        needs = LimitedResources(**msgspec.structs.asdict(needs), named_limits=named, project=project)
    if needs.wall_ms or not outlived:
        return needs
    return msgspec.structs.replace(needs, wall_ms=outlived * OUTLIVED_PERCENT // 100)


def pending_retry(events: Sequence[JobEvent]) -> AttemptRequeued | None:
    """The attempt that failed and would be retried."""
    last = events[-1] if events else None
    return last if isinstance(last, AttemptRequeued) and last.fault is not None else None


def give_up(failed: AttemptRequeued, outcome: Outcome) -> JobEvent:
    """End the job with the failed attempt's outcome instead of another attempt."""
    return JobFinished(outcome, failed.end, failed.at, own=failed.own)


def give_back(job: Job, fence: int, *, now: Instant) -> list[JobEvent]:
    """A pilot returns an attempt that it never started. It is not charged, and does not count as a try."""
    if job.state is not JobState.RUNNING or job.fence != fence:
        return []
    return [AttemptRequeued("returned", now, now, requeue=job.requeued, begun=False)]


def requeue_attempt(job: Job, *, by: str, reason: str, now: Instant) -> list[JobEvent]:
    """Requeue: take the attempt from its pilot. The job waits for the end of the attempt, which a report, its absence
    from the pilot's next request, or the end of its lease proves: until then nobody else gets the job."""
    if job.state is not JobState.RUNNING or job.requeued is not None:
        return []
    return [RequeueOrdered(Requeue(by=by, at=now, reason=reason))]


def cancel(job: Job, *, now: Instant, reason: str = "", log_tail: str = "") -> list[JobEvent]:
    """End the job for good, whoever holds it. Its holder's report will be refused; `log_tail` is what it has told of
    its log."""
    if job.finished:
        return []
    message = with_reason(CANCELLED_WORDS, reason)
    fault = Fault(name="cancelled", category=Category.CANCELLED, message=message, log_tail=log_tail)
    return [JobFinished(Outcome(fault=fault, log_tail=log_tail), "cancelled", now)]


def refuse(job: Job, fault: Fault, *, now: Instant) -> list[JobEvent]:
    """End a job that waits, because it cannot be started."""
    return [JobFinished(Outcome(fault=fault), "failed", now)] if job.state is JobState.AVAILABLE else []


def take_over(job: Job, outcome: Outcome, *, why: str, now: Instant) -> list[JobEvent]:
    """Use an earlier case's result for this job, if nobody has started it."""
    return [ResultTakenOver(outcome, why, now)] if job.state is JobState.AVAILABLE and job.fence == 0 else []


def suspend(job: Job) -> list[JobEvent]:
    return [] if job.finished or job.suspended else [JobSuspended()]


def resume(job: Job) -> list[JobEvent]:
    return [JobResumed()] if job.suspended and not job.finished else []


def _refuse_report(job: Job, pilot: PilotId, fence: int) -> ReportVerdict:
    """Why this report is not the holder's; or that it repeats what was accepted before."""
    if fence < job.fence:
        return ReportVerdict(False, f"job {job.id}: lease {fence} is over (latest is {job.fence})")
    if fence > job.fence:
        return ReportVerdict(False, f"job {job.id}: lease {fence} was never granted (latest is {job.fence})")
    holder = job.history[-1].pilot if job.history else None
    if holder != pilot:
        return ReportVerdict(False, f"job {job.id}: lease {fence} is held by {holder}, not by {pilot}")
    end = job.history[-1].end
    if end in ("completed", "failed"):
        return ReportVerdict(True, f"job {job.id}: lease {fence} was reported before ({end})")
    return ReportVerdict(False, f"job {job.id}: lease {fence} is over ({end})")


def _end_requeued(requeue: Requeue, now: Instant) -> AttemptRequeued:
    """The attempt that a person took from its pilot has ended. Nobody is charged."""
    return AttemptRequeued("requeued", now, now, requeue=requeue)


def _requeue_failed(
    end: str, fault: Fault, outcome: Outcome, *, now: Instant, wait_ms: int, own: bool = False
) -> AttemptRequeued:
    measures, log, folder = outcome.measures, outcome.log, outcome.folder
    return AttemptRequeued(end, now, now + wait_ms, own=own, fault=fault, measures=measures, log=log, folder=folder)


def _lose_or_end(job: Job, fault: Fault, outcome: Outcome, *, now: Instant, policy: RetryPolicy) -> JobEvent:
    """Requeue the job at the infrastructure's cost, or end it when that budget is spent."""
    end = "lost" if fault.name == "lost" else "failed"
    losses = job.losses + 1
    if losses <= policy.losses_max:
        in_all = losses + job.spec.earlier_losses  # who goes elsewhere waits on, and does not begin anew
        wait_ms = _doubled_wait_ms(policy.loss_wait_ms, in_all - 2, policy) if in_all > 1 else 0
        return _requeue_failed(end, fault, outcome, now=now, wait_ms=wait_ms)
    story = Fault(
        name="lost-too-often",
        category=Category.RESOURCE,
        message=f"given up after {losses} losses to the infrastructure ({policy.losses_max} are allowed); "
        f"the last: {fault.message}. Look at the pilots named in its history, then run it again",
        data={"losses": losses, "pilots": sorted({attempt.pilot for attempt in job.history}), "last": fault.name},
        log_tail=fault.log_tail,
    )
    return JobFinished(msgspec.structs.replace(outcome, fault=story), end, now)


def _doubled_wait_ms(wait_ms: int, times: int, policy: RetryPolicy) -> int:
    return min(wait_ms << min(times, _DOUBLINGS_MAX), max(wait_ms, policy.wait_max_ms))
