"""How often a job is tried again after a failure of its own, as its author said.

`retries: 4` speaks of every failure; a rule of `retry` of those that it names. What earlier submissions of the job have
used up counts too (`spent`), so that repairs cannot multiply what the author allowed."""

from typing import Final, NamedTuple

from msgspec.structs import replace

from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Job, JobSpec, RetryRule

WAIT_GROWTHS_MAX: Final = 64
"""How often a wait grows by its factor: further on it is at its bound anyway."""


class StatedRetries(NamedTuple):
    """The rule that speaks of a fault, and its place among those of the job."""

    place: int
    rule: RetryRule


def stated_retries(spec: JobSpec, fault: Fault) -> StatedRetries | None:
    """What the author said about such a failure; None if nothing. Failures of the infrastructure are not the job's."""
    if fault.infrastructure:
        return None
    for place, rule in enumerate(spec.retry):
        if not rule.on or any(matches_fault(cause, fault) for cause in rule.on):
            return StatedRetries(place, rule)
    if spec.retries and not spec.retry:
        return StatedRetries(0, RetryRule(times=spec.retries, wait_ms=spec.retry_wait_ms))
    return None


def matches_fault(cause: str, fault: Fault) -> bool:
    """Whether a cause names the fault: by its exit code, its category or its name. An exception is also known by the
    names of the exceptions that it is a kind of."""
    if cause in (fault.name, fault.category.value) or (cause.isdigit() and fault.exit_code == int(cause)):
        return True
    kinds = fault.data.get("types") if isinstance(fault.data, dict) else None
    return isinstance(kinds, list) and cause in kinds


def spent_before(spec: JobSpec, place: int) -> int:
    """How many failures of a rule's kind earlier submissions of the job had."""
    return spec.spent[place] if place < len(spec.spent) else 0


def failures_of(job: Job, stated: StatedRetries) -> int:
    """How many failures of a rule's kind the job had before this one, over all its submissions."""
    speaks_of_all = len(job.spec.retry) < 2 and not stated.rule.on
    if speaks_of_all or job.tries > len(job.history):
        own = job.failures  # of a very long history only its ends are kept: then all count
    else:
        faults = [attempt.fault for attempt in job.history if attempt.end == "failed" and attempt.fault is not None]
        own = sum(stated_retries(job.spec, fault) == stated for fault in faults)
    return own + spent_before(job.spec, stated.place)


def grown_wait_ms(rule: RetryRule, times: int, most: int) -> int:
    return int(min(rule.wait_ms * rule.factor ** min(times, WAIT_GROWTHS_MAX), max(rule.wait_ms, most)))


def tries_max(spec: JobSpec) -> int:
    """How many own failures a job can have."""
    return 1 + (sum(rule.times for rule in spec.retry) if spec.retry else spec.retries)


def are_spent(spec: JobSpec, fault: Fault, failures: int) -> bool:
    """Whether the author said how often such a failure is tried again, and so often it was. `failures` are the job's
    own over all submissions, the present one among them."""
    stated = stated_retries(spec, fault)
    if stated is None:
        return False
    others = sum(each for place, each in enumerate(spec.spent) if place != stated.place)
    return failures - others > stated.rule.times


def with_spent(spec: JobSpec, fault: Fault | None, failures: int) -> JobSpec:
    """The job as it is submitted again after so many own failures in all, the last of which is given."""
    stated = stated_retries(spec, fault) if fault is not None else None
    if stated is None:
        return spec
    spent = [spent_before(spec, place) for place in range(max(len(spec.retry), 1))]
    spent[stated.place] += max(failures - sum(spent), 0)
    return replace(spec, spent=tuple(spent))
