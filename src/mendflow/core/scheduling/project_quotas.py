"""Quotas of projects: what a running job uses of them, and the sentences about them."""

from typing import Final

from mendflow.core.model.named_limits import LimitDocument, NamedLimits
from mendflow.core.model.projects import JOB_QUOTAS, MILLI, QuotaKind, quota_name
from mendflow.core.scheduling.amounts import size

USERS_SHOWN: Final = 3

_WORDS: Final[dict[QuotaKind, tuple[str, str]]] = {
    "cases": ("cases", "--cases"),
    "waiting-jobs": ("waiting jobs", "--waiting-jobs"),
    "running-jobs": ("running jobs", "--running-jobs"),
    "cpus": ("CPUs", "--cpus"),
    "memory": ("memory", "--memory"),
    "stored-bytes": ("stored files", "--stored-bytes"),
}
"""What each quota bounds, and the option that sets it."""


def quota_uses(project: str, cpus: float, memory_bytes: int, kinds: frozenset[QuotaKind]) -> NamedLimits:
    """What a running job uses of its project's quotas, of these kinds. Of the stored bytes it takes one: with none left
    it does not start."""
    amounts: dict[QuotaKind, int] = {
        "cpus": round(cpus * MILLI),
        "memory": memory_bytes,
        "running-jobs": 1,
        "stored-bytes": 1,
    }
    return tuple((quota_name(project, kind), amounts[kind]) for kind in JOB_QUOTAS if kind in kinds and amounts[kind])


def amount_text(kind: QuotaKind, amount: int) -> str:
    """So much of a quota, for people."""
    if kind in ("memory", "stored-bytes"):
        return size(amount)
    return f"{amount / MILLI:g}" if kind == "cpus" else str(amount)


def how_to_raise(project: str, kind: QuotaKind) -> str:
    return f"an administrator raises it: mendflow admin projects set {project} {_WORDS[kind][1]} N"


def quota_text(project: str, kind: QuotaKind, document: LimitDocument) -> str:
    """The quota, how much of it is in use, and by whom."""
    names = [holder for holder in document.holds if not holder.startswith("@")]
    users = ", ".join(names[:USERS_SHOWN]) + (", ..." if len(names) > USERS_SHOWN else "")
    used, count = amount_text(kind, max(0, document.used)), amount_text(kind, document.count or 0)
    by = f" (by {users})" if users and kind != "stored-bytes" else ""
    return f"the quota of project {project} for {_WORDS[kind][0]}: {used} of {count} are in use{by}"


def why_quota(project: str, kind: QuotaKind, amount: int, document: LimitDocument) -> tuple[str, bool]:
    """Why a job that uses so much of a quota cannot start now, and whether only an administrator can change that; empty
    if it can."""
    if document.count is None or amount <= document.free:
        return "", False
    if kind == "stored-bytes":
        advice = f"prune cases that are over, or {how_to_raise(project, kind)}"
        return f"it waits for {quota_text(project, kind, document)}; {advice}", True
    if amount > document.count:
        needs, most = amount_text(kind, amount), amount_text(kind, document.count)
        what = f"the quota of project {project} for {_WORDS[kind][0]} is {most}, and it needs {needs}"
        return f"{what}; {how_to_raise(project, kind)}", True
    more = f", and it needs {amount_text(kind, amount)}" if kind != "running-jobs" else ""
    return f"it waits for {quota_text(project, kind, document)}{more}", False


def why_not_queued(project: str, most: int) -> str:
    """Why a job is not in the queue yet."""
    return f"it is queued when project {project} has fewer than {most} waiting jobs, its quota for waiting jobs"
