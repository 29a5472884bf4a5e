"""Which cases a rule lets go. Everything that a rule gives must say so: the more it gives, the fewer cases go."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.retention import PruneRule
from mendflow.core.scheduling.amounts import duration, size


class FinishedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is over, with all that it called. `bytes` is known only where a rule asks for it."""

    id: CaseId
    flow: str
    status: str
    started_at: Instant
    ended_at: Instant
    bytes: int = 0


def selected(cases: Sequence[FinishedCase], rules: Sequence[PruneRule], *, now: Instant) -> dict[CaseId, str]:
    """The cases that one of the rules lets go, with the reason; the oldest first."""
    reasons: dict[CaseId, str] = {}
    for rule in rules:
        for case, reason in _by_rule(cases, rule, now).items():
            reasons.setdefault(case, reason)
    order = {case.id: (case.ended_at, case.id) for case in cases}
    return {id: reasons[id] for id in sorted(reasons, key=lambda id: order[id])}


def _by_rule(cases: Sequence[FinishedCase], rule: PruneRule, now: Instant) -> Mapping[CaseId, str]:
    meant = [case for case in cases if rule.flow in ("", case.flow) and (not rule.states or case.status in rule.states)]
    meant.sort(key=lambda case: (case.ended_at, case.id), reverse=True)
    protected = _newest(meant, rule.keep) if rule.keep is not None else set()
    old = [case for case in meant if case.id not in protected and now - case.ended_at >= rule.older_than_ms]
    if rule.max_bytes is not None:
        old = _beyond(meant, old, rule.max_bytes)
    return {case.id: _reason(rule, case) for case in old}


def _newest(newest_first: Sequence[FinishedCase], number: int) -> set[CaseId]:
    by_flow: dict[str, list[CaseId]] = defaultdict(list)
    for case in newest_first:
        by_flow[case.flow].append(case.id)
    return {id for ids in by_flow.values() for id in ids[:number]}


def _beyond(meant: Sequence[FinishedCase], old: Sequence[FinishedCase], max_bytes: int) -> list[FinishedCase]:
    """The oldest that have to go until the rest fits."""
    excess, going = sum(case.bytes for case in meant) - max_bytes, list[FinishedCase]()
    for case in reversed(old):
        if excess <= 0:
            break
        going.append(case)
        excess -= case.bytes
    return going


def _reason(rule: PruneRule, case: FinishedCase) -> str:
    parts = [
        f"it ended more than {duration(rule.older_than_ms)} ago" if rule.older_than_ms else "",
        f"{rule.keep:,} newer cases of flow {case.flow} are kept" if rule.keep is not None else "",
        f"older cases go while all need more than {size(rule.max_bytes)}" if rule.max_bytes is not None else "",
        f"it is {case.status}" if rule.states else "",
        f"it is of flow {case.flow}" if rule.flow else "",
    ]
    return ", ".join(part for part in parts if part)
