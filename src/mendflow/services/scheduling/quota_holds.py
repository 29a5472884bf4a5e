"""Quotas of projects as named limits: what jobs and cases hold of them, and what is not held yet.

A quota may be set while jobs run and cases live: then these are written into it, however many they are, and nothing new
starts until enough has ended."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job
from mendflow.core.model.named_limits import LimitDocument, LimitHold, NamedLimits
from mendflow.core.model.projects import JOB_QUOTAS, QuotaKind, quota_name, quota_of
from mendflow.core.scheduling.limit_decisions import Grantor
from mendflow.core.scheduling.project_quotas import quota_uses

SERVER_MARK: Final = "@"
"""Stands before the name of a server that holds some of a quota itself."""

Kinds = dict[str, frozenset[QuotaKind]]
"""By project: the quotas that are set."""


def quotas_set(documents: Iterable[LimitDocument]) -> Kinds:
    found: dict[str, set[QuotaKind]] = {}
    for document in documents:
        if document.count is not None and (quota := quota_of(document.name)) is not None:
            found.setdefault(quota[0], set()).add(quota[1])
    return {project: frozenset(kinds) for project, kinds in found.items()}


def uses_of(job: Job, kinds: Kinds) -> NamedLimits:
    """What a job uses while it runs: its named limits, and of the quotas of its project."""
    named, spec = job.spec.limits.named, job.spec
    of_project = kinds.get(spec.project)
    if not of_project:
        return named
    return (*named, *quota_uses(spec.project, spec.resources.cpus, spec.resources.memory_bytes, of_project))


def hold_of(grantor: Grantor, amount: int, fence: int, now: Instant) -> LimitHold:
    return LimitHold(amount=amount, fence=fence, server=grantor.server, since=now, lease_ms=grantor.lease_ms)


def with_running(
    document: LimitDocument, jobs: Iterable[Job], kinds: Kinds, grantor: Grantor, now: Instant
) -> LimitDocument:
    """The quota with those of the running jobs that it lacks."""
    missing: dict[JobId, LimitHold] = {}
    for job in jobs:
        if job.id not in document.holds:
            amount = dict(uses_of(job, kinds)).get(document.name, 0)
            if amount:
                missing[job.id] = hold_of(grantor, amount, job.fence, now)
    return replace(document, holds={**document.holds, **missing}) if missing else document


def with_amount(document: LimitDocument, holder: str, amount: int, grantor: Grantor, now: Instant) -> LimitDocument:
    """What somebody other than a job or a case holds of a quota: from now on this much."""
    id = JobId(f"{SERVER_MARK}{holder}")
    held = document.holds.get(id)
    if (held.amount if held is not None else 0) == amount:
        return document
    others = {each: hold for each, hold in document.holds.items() if each != id}
    freed_at = now if held is not None and amount < held.amount else document.freed_at
    mine = {id: hold_of(grantor, amount, 0, now)} if amount else {}
    return replace(document, holds={**others, **mine}, freed_at=freed_at)


def without_servers(document: LimitDocument, live: Iterable[str]) -> LimitDocument:
    """The quota without what servers hold that are gone."""
    kept = {f"{SERVER_MARK}{server}" for server in live}
    left = {id: hold for id, hold in document.holds.items() if not id.startswith(SERVER_MARK) or id in kept}
    return replace(document, holds=left) if len(left) < len(document.holds) else document


def names_of_job_quotas(project: str, kinds: Kinds) -> list[str]:
    return [quota_name(project, kind) for kind in JOB_QUOTAS if kind in kinds.get(project, ())]
