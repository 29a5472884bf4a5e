"""Reads what learning needs from a decision: what failed, where, what was done about it, and what came of that."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.learning.group_statistics import HELPED_RESULTS, FailureOutcome, LearnedFailure, TrialVerdict
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import BY_HAND, DecisionState, ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.failures import RETRIES, group_id, is_rejection

SOURCE_CHARS_MAX: Final = 120


class _Fault(msgspec.Struct):
    name: str = ""
    category: str = ""
    data: Value = None
    rejected_by: str = ""


class _Conclusion(msgspec.Struct):
    rules: str = ""
    task: str = ""
    rule: int = 0
    exlet: str = ""


class _Job(msgspec.Struct):
    host: str = ""
    site: str = ""
    level: int = 0


class _Context(msgspec.Struct):
    job: _Job = msgspec.field(default_factory=_Job)


class DecidedFailure(msgspec.Struct):
    """The fields of a decision's document that are read here; the rest of it is skipped."""

    id: str
    case: CaseId
    flow: str
    type: ExceptionType
    at: Instant
    state: DecisionState
    task: str = ""
    engine: str = ""
    signature: str = ""
    result: str = ""
    exlet: str = ""
    ended_at: Instant = 0
    settled_at: Instant = 0
    replaced_by: str = ""
    fault: _Fault | None = None
    conclusion: _Conclusion | None = None
    trials: list[_Conclusion] = []
    context: _Context = msgspec.field(default_factory=_Context)


decode_decided = msgspec.json.Decoder(DecidedFailure, strict=False).decode


def learned_failure(decision: DecidedFailure, is_same_again: Callable[[str, str], bool]) -> LearnedFailure | None:
    """None if nothing can be learned from it: it is no failure, happened in an exlet, has been replaced by another
    decision about the same failure, or is what a person has decided, who rejected a user task."""
    if decision.type is not ExceptionType.ABORT or exlet_depth(decision.case):
        return None
    if decision.replaced_by and decision.state != "rejected":
        return None
    if is_rejection(decision):
        return None
    fault, said, job = decision.fault or _Fault(), decision.conclusion or _Conclusion(), decision.context.job
    return LearnedFailure(
        id=decision.id,
        group=group_id(decision.type, decision.signature),
        type=decision.type,
        signature=decision.signature,
        category=fault.category,
        name=fault.name,
        case=decision.case,
        flow=decision.flow,
        task=decision.task,
        at=decision.at,
        ended_at=max(decision.at, decision.ended_at, decision.settled_at),
        outcome=outcome_of(decision),
        exlet=decision.exlet,
        rules=said.rules,
        tree=said.task if said.rule != BY_HAND else "",
        rule=said.rule,
        same_again=bool(decision.exlet) and is_same_again(said.rules, decision.exlet),
        host=job.host,
        site=job.site,
        source=source_of(fault.data),
        level=job.level,
        trials=tuple(TrialVerdict(each.rules, each.task, each.rule, each.exlet) for each in decision.trials),
    )


def outcome_of(decision: DecidedFailure) -> FailureOutcome:
    if decision.state in ("ignored", "passive"):
        return "queue" if decision.result == RETRIES else "unhandled"
    if decision.state == "waiting":
        return "unhandled"
    if decision.state == "rejected" or decision.result == "failed":
        return "failed"
    return "helped" if decision.result in HELPED_RESULTS else "other"


def source_of(data: Value) -> str:
    """Where a file did not come from: the server of an address, or the first folders of a path."""
    source = data.get("source") if isinstance(data, dict) else None
    if not isinstance(source, str) or not source:
        return ""
    scheme, separator, rest = source.partition("://")
    if separator:
        return f"{scheme}://{rest.partition('/')[0]}/"[:SOURCE_CHARS_MAX]
    return source.rpartition("/")[0][:SOURCE_CHARS_MAX]
