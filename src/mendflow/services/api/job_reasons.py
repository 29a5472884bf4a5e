"""Why a job is in its present state."""

import msgspec

from mendflow.core.model.faults import reason_in
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState
from mendflow.core.model.named_limits import limit_text
from mendflow.core.model.views import Reason
from mendflow.core.results.reuse_checks import why_doubted, why_not_kept
from mendflow.core.scheduling import explanations
from mendflow.core.scheduling.amounts import clock, duration, size
from mendflow.services.base.cluster import first_case_of
from mendflow.services.cases.live_case import state_of
from mendflow.services.runtime.server import Server


def why_job_is_so(server: Server, job: Job) -> Reason:
    """Why a job waits, runs, has failed or is done; how it was sized, if that was learned, its container, and
    the named limits and secrets that it uses."""
    told = _why(server, job)
    facts = [*(job.sizing.reasons if job.sizing is not None else ()), *_image_facts(job), *_use_facts(job.spec)]
    return msgspec.structs.replace(told, facts=[*facts, *told.facts]) if facts else told


def _image_facts(job: Job) -> list[str]:
    """Which image its command runs in, and which content that was."""
    if job.spec.container is None:
        return []
    digest = job.outcome.image if job.outcome is not None else ""
    return [f"its container is {job.spec.container.image}" + (f", image {digest}" if digest else "")]


def _use_facts(spec: JobSpec) -> list[str]:
    """Which named limits and secrets it uses. A secret is known by its name alone."""
    limits = ", ".join(limit_text(name, amount) for name, amount in spec.limits.named)
    secrets = ", ".join(dict.fromkeys(use.name for use in spec.secrets))
    told = [f"it uses the named limit{'s' * (len(spec.limits.named) > 1)} {limits}"] if limits else []
    return [*told, f"it gets the secret{'s' * (', ' in secrets)} {secrets}"] if secrets else told


def _why(server: Server, job: Job) -> Reason:
    if job.state is JobState.RUNNING:
        return _why_running(server, job)
    if job.state is JobState.FAILED:
        return _why_cancelled(job) if state_of(job) == "cancelled" else explanations.why_failed(job)
    if job.state is JobState.AVAILABLE and server.stopped.holds(job.id):
        sentence = f"{job.spec.item} waits until somebody resumes its case: `mendflow resume {first_case_of(job.id)}`."
        return Reason(subject=job.id, state="waiting", sentence=sentence, facts=_attempts(job))
    if job.state is JobState.AVAILABLE:
        told = server.runtime.waiting_reasons.why(job)
        return msgspec.structs.replace(told, facts=[*told.facts, *_attempts(job)])
    how = f"completed in attempt {job.tries}" if job.fence else "was not run again"
    facts = [fact for fact in (job.cache_reason, _left_running(job), _why_not_again(job), *_attempts(job)) if fact]
    return Reason(subject=job.id, state="completed", sentence=f"{job.spec.shown} {how}.", facts=facts)


def _left_running(job: Job) -> str:
    return job.outcome.left_running if job.outcome is not None else ""


def _why_not_again(job: Job) -> str:
    """Why the result that the job made is not used for other jobs, if that was seen only when it ran."""
    if job.outcome is None or job.outcome.cached_from:
        return ""
    if never := why_not_kept(job.outcome):
        return f"its result is not used again: {never}"
    doubt = why_doubted(job.spec, job.outcome)
    return f"its result is not used again without --cached: {doubt}" if doubt else ""


def _why_cancelled(job: Job) -> Reason:
    fault = job.outcome.fault if job.outcome is not None else None
    said = reason_in(fault.message) if fault is not None else ""
    began = "" if job.history else " before it began"
    sentence = f"{job.spec.shown} was cancelled{began}" + (f": {said}" if said else ".")
    return Reason(subject=job.id, state="cancelled", sentence=sentence, facts=_attempts(job))


def _why_running(server: Server, job: Job) -> Reason:
    pilot = server.runtime.meta.pilots.get(job.pilot) if job.pilot else None
    held = pilot.held.get(job.id) if pilot else None
    where = f"pilot {job.pilot} on {pilot.host}" if pilot and pilot.host else f"pilot {job.pilot}"
    facts = []
    if pilot is not None:
        view = server.runtime.meta.pilot_view(pilot)
        heard = f"was heard {view.seen_ms_ago / 1000:.1f} s ago" if pilot.seen_at else "was not heard since our start"
        facts.append(f"the pilot {heard}; its lease ends in {view.lease_ms_left / 1000:.1f} s if it stays silent")
    if job.requeued is not None:
        facts.append(f"it was {job.requeued.sentence()} ({clock(job.requeued.at)}), and waits for its attempt to end")
    if job.history[-1].because:
        facts.append(f"this pilot was chosen because {job.history[-1].because}")
    waits = held is not None and not held.runs
    doing = "is suspended on" if job.suspended else "waits for a slot of" if waits else "runs on"
    sentence = f"{job.spec.shown} {doing} {where}, attempt {job.tries}."
    if held is not None and held.is_staging:
        sentence = f"{job.spec.shown} gets ready on {where}: {_getting_ready(job.spec)}."
    if held is not None and held.is_storing:
        sentence = f"{job.spec.shown} has ended on {where}, and its files are being stored."
        facts += [f"files cannot be stored now: {problem}"] if (problem := server.file_store.problem) else []
    state = "suspended" if job.suspended else "waiting" if waits else "running"
    return Reason(subject=job.id, state=state, sentence=sentence, facts=facts + _attempts(job))


def _getting_ready(spec: JobSpec) -> str:
    """What a pilot does for a job before it starts."""
    if spec.software is None:
        return "its files are being fetched"
    made = (
        f"its software ({spec.software.shown}) is being made ready, once for all jobs of this host that name the same"
    )
    return f"{made}; then its files are fetched" if spec.inputs or spec.replicas else made


def _attempts(job: Job) -> list[str]:
    return [
        f"attempt {attempt.shown} on {attempt.pilot}{_given(attempt)}: {_end_of(attempt)}"
        + (f" (chosen because {attempt.because})" if attempt.because else "")
        for attempt in job.history
        if attempt.end
    ]


def _given(attempt: Attempt) -> str:
    """What it was given, if that was learned: ` with 272 MiB and 2 min`."""
    given = [size(attempt.asked_bytes)] if attempt.asked_bytes else []
    given += [duration(attempt.asked_ms)] if attempt.asked_ms else []
    return f" with {' and '.join(given)}" if given else ""


def _end_of(attempt: Attempt) -> str:
    if attempt.requeue is not None:
        return f"{attempt.requeue.sentence()} ({clock(attempt.requeue.at)})"
    if attempt.fault is None and (changed := attempt.measures.changed_inputs):
        return f"{attempt.end}, but it changed its linked input {changed[0]}; the pilot removed the file from its cache"
    return f"{attempt.end}, {attempt.fault.message}" if attempt.fault else attempt.end
