"""Who may use named limits: decided from the documents of the limits alone, which name everyone that uses them.

A job gets all that it uses or nothing. Limits are first come, first served over all servers: a server leaves what was
just given back, for a moment, to another one whose jobs have waited for longer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.named_limits import LimitDemand, LimitDocument, LimitHold, NamedLimits
from mendflow.core.model.projects import quota_of
from mendflow.core.scheduling.project_quotas import why_quota

LEFT_TO_OTHERS_MS: Final = 1_500
"""For so long what was given back is left to the server whose jobs have waited longest."""
DEMAND_FRESH_MS: Final = 15_000
"""What a server has said of its waiting jobs counts for so long."""

Documents = Mapping[str, LimitDocument]


class HoldRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is about to be granted, under this fence, and has waited since then."""

    job: JobId
    fence: int
    named: NamedLimits
    since: Instant


class Grantor(msgspec.Struct, frozen=True):
    """The server that grants jobs, and the length of its leases."""

    server: str
    lease_ms: int


class HoldDecision(msgspec.Struct, frozen=True):
    """Which jobs may start, and the documents that say so."""

    granted: frozenset[JobId]
    changed: dict[str, LimitDocument]


def decide_holds(
    documents: Documents, wanted: Sequence[HoldRequest], grantor: Grantor, *, now: Instant
) -> HoldDecision:
    """Which of the jobs may start now. One that may not holds nothing, even if it held a part of what it uses."""
    after = dict(documents)
    granted = set()
    for request in wanted:
        if all(_has_room(after[name], amount, request, grantor.server, now) for name, amount in request.named):
            granted.add(request.job)
            for name, amount in request.named:
                hold = LimitHold(
                    amount=amount, fence=request.fence, server=grantor.server, since=now, lease_ms=grantor.lease_ms
                )
                after[name] = with_hold(after[name], request.job, hold)
        else:
            for name, _ in request.named:
                after[name] = without_hold(after[name], request.job, request.fence, now=now)
    changed = {name: each for name, each in after.items() if each is not documents[name]}
    return HoldDecision(frozenset(granted), changed)


def _has_room(document: LimitDocument, amount: int, request: HoldRequest, server: str, now: Instant) -> bool:
    own = document.holds.get(request.job)
    if document.count is None:
        return False
    if amount > document.free + (own.amount if own is not None else 0):
        return False
    return own is not None or not _is_left_to_others(document, request.since, server, now)


def _is_left_to_others(document: LimitDocument, since: Instant, server: str, now: Instant) -> bool:
    if not document.waiting or now - document.freed_at >= LEFT_TO_OTHERS_MS:
        return False
    others = [each for id, each in fresh_demands(document, now).items() if id != server]
    return any(each.since < since for each in others)


def fresh_demands(document: LimitDocument, now: Instant) -> dict[str, LimitDemand]:
    """What servers have lately said of their waiting jobs."""
    return {id: each for id, each in document.waiting.items() if now - each.at < DEMAND_FRESH_MS}


def with_hold(document: LimitDocument, job: JobId, hold: LimitHold) -> LimitDocument:
    before = document.holds.get(job)
    if before is not None and (before.amount, before.fence, before.server) == (hold.amount, hold.fence, hold.server):
        return document
    return msgspec.structs.replace(document, holds={**document.holds, job: hold})


def without_hold(document: LimitDocument, job: JobId, fence: int, *, now: Instant) -> LimitDocument:
    """The job's attempt under this fence, or an earlier one, uses the limit no longer."""
    held = document.holds.get(job)
    if held is None or held.fence > fence:
        return document
    left = {id: hold for id, hold in document.holds.items() if id != job}
    return msgspec.structs.replace(document, holds=left, freed_at=now)


def with_demand(document: LimitDocument, server: str, demand: LimitDemand | None, *, now: Instant) -> LimitDocument:
    """What the server says of its waiting jobs now; what others have said long ago goes."""
    waiting = {id: each for id, each in fresh_demands(document, now).items() if id != server}
    if demand is not None:
        waiting[server] = demand
    return document if waiting == document.waiting else msgspec.structs.replace(document, waiting=waiting)


def why_limited(
    named: NamedLimits, documents: Documents, is_told: Callable[[JobId], bool] = lambda _: True
) -> tuple[str, bool]:
    """Why a job that uses these limits cannot start now, and whether only an administrator can change that; empty if it
    can. `is_told` says which of the jobs that use a limit may be named: others may be of other projects."""
    for name, amount in named:
        document = documents.get(name)
        if (quota := quota_of(name)) is not None:
            told, needs_administrator = why_quota(*quota, amount, document) if document is not None else ("", False)
            if told:
                return told, needs_administrator
            continue
        if document is None or document.count is None:
            how = f"an administrator sets it: mendflow limits set {name} COUNT"
            return f"it waits for limit {name}, which nobody has set; {how}", True
        if amount > document.count:
            return f"it uses {amount} of limit {name}, and the limit is {document.count}", True
        if amount > document.free:
            named_jobs = [job for job in document.holds if is_told(job)][:3]
            users = ", ".join(named_jobs) + (", ..." if named_jobs and len(document.holds) > len(named_jobs) else "")
            used = f"{document.used} of {document.count} are in use"
            more = f", and it needs {amount}" if amount > 1 else ""
            return f"it waits for limit {name}: {used}{more}" + (f" (by {users})" if users else ""), False
    return "", False
