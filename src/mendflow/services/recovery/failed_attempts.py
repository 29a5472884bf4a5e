"""Makes an exception event of a failed attempt that the proxy reports."""

from typing import Final

from mendflow.core.engine.messages import ItemFailed
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import item_name
from mendflow.core.model.jobs import Outcome, sources_of
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.recovery.ids import serial_of
from mendflow.core.recovery.own_words import own_words
from mendflow.core.scheduling.retries import are_spent, stated_retries
from mendflow.services.base.contracts import Failure
from mendflow.services.cases.exception_facts import job_facts_of, outcome_facts
from mendflow.services.cases.live_case import CaseDocument

RETRY_IS_FUTILE: Final = frozenset({Category.MEMORY, Category.TIME})
"""Categories where a retry without changes would fail in the same way."""


def is_left_to_queue(failure: Failure) -> bool:
    """Whether the meta-scheduler retries it by itself, and the default rules have nothing to add to that."""
    is_futile = failure.fault.category in RETRY_IS_FUTILE or failure.outcome.has_rescued_files
    return not failure.final and not failure.fault.infrastructure and not is_futile


def failure_event(failure: Failure, flow: str) -> ExceptionEvent:
    """The id names the attempt: the same failure reported again has the same id."""
    serial = serial_of(failure.job)
    return ExceptionEvent(
        id=f"{failure.id or f'{failure.real}:{failure.attempts}'}/{ExceptionType.ABORT.value}",
        type=ExceptionType.ABORT,
        case=failure.case,
        flow=flow,
        item=failure.spec.item,
        task=item_name(failure.spec.item),
        serial=serial,
        facts={"job": _job(failure), "outcome": outcome_facts(failure.outcome), "pattern": failure.pattern},
        fault=failure.fault,
        job=failure.job,
        own_words=own_words(failure.spec, flow),
    )


def early_failure_event(document: CaseDocument, order: ItemFailed) -> ExceptionEvent:
    """An item that failed before it gave an order, as when its inputs cannot be computed."""
    return ExceptionEvent(
        id=f"{document.id}/{order.item}/{ExceptionType.ABORT.value}",
        type=ExceptionType.ABORT,
        case=document.id,
        flow=document.flow,
        item=order.item,
        task=item_name(order.item),
        facts={"outcome": {"ok": False}},
        fault=order.fault,
    )


def _job(failure: Failure) -> dict[str, Value]:
    spec, fault, outcome = failure.spec, failure.fault, failure.outcome
    own = max(failure.attempts - failure.losses, 0)
    left = len(sources_of(spec, fault.file)) - 1 if fault.file else 0
    return {
        **job_facts_of(spec),
        **measures_of(outcome),
        "id": failure.job,
        "exit_code": outcome.exit_code if outcome.exit_code is not None else fault.exit_code,
        "signal": fault.signal,
        "stage": failure.stage or fault.stage,
        "log_tail": outcome.log_tail or fault.log_tail,
        "site": failure.site,
        "pilot": failure.pilot,
        "host": failure.host,
        "failures": own,
        "losses": failure.losses,
        "attempts": failure.attempts,
        "level": failure.level,
        "generation": failure.generation,
        "final": failure.final,
        "retries": stated.rule.times if (stated := stated_retries(spec, fault)) is not None else 0,
        "retries_spent": are_spent(spec, fault, own),
        "domain": failure.domain,
        "hosts": list(failure.hosts),
        "files_rescued": outcome.has_rescued_files,
        "sources_left": max(left, 0),
        "sources": list(sources_of(spec, fault.file)) if fault.file else [],
    }


def measures_of(outcome: Outcome) -> dict[str, Value]:
    measures = outcome.measures
    return {"peak_bytes": measures.peak_bytes, "cpu_ms": measures.cpu_ms, "ran_ms": measures.ran_ms}
