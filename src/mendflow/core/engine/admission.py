"""Validates what enters a case. The journal keeps everything for good, so what it cannot hold is refused or replaced
here.

A command with an invalid value is refused. A job's outcome cannot be refused, because the job has ended: it becomes a
fault that says what was wrong."""

from operator import attrgetter
from typing import Final

from msgspec.structs import astuple, replace

from mendflow.core.engine.messages import CallPartner, Deliver, ForceComplete, ForceFail, Order
from mendflow.core.engine.plan import Plan
from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.expressions.cel import closest_name
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.values import SMALL_MAX, SMALL_MIN, Value, check_value
from mendflow.core.model.xml import Operation, XmlType

NOT_DATA: Final = "notData"
_TEXTS_MEASURED: Final = ("damaged", "changed_inputs")
_numbers_in = attrgetter(*(name for name in Measurements.__struct_fields__ if name not in _TEXTS_MEASURED))


def demand_value(value: Value, what: str) -> None:
    if reason := check_value(value):
        raise RequestError(f"{what} cannot be taken: {reason}")


def demand_message(plan: Plan, message: Deliver) -> None:
    """Refuse a message that nobody will ever receive, or that is not data."""
    if message.channel not in plan.channels:
        known = ", ".join(sorted(plan.channels)) or "none"
        guess = closest_name(message.channel, plan.channels)
        raise RequestError(f"flow {plan.flow.name} has no channel {message.channel:.80}; it has {known}{guess}")
    demand_value(message.id, "the message's id")
    demand_value(message.value, "the message")
    if (operation := plan.operations.get(message.channel)) is not None:
        _demand_shape(plan, operation.input, message.value, "the message")
    demand_value(message.correlation, "the correlation")


def demand_request(plan: Plan, order: Order | None) -> None:
    """Refuse a request to a partner that is not a message of its operation."""
    if isinstance(order, CallPartner) and (operation := _operation_called(plan, order)) is not None:
        _demand_shape(plan, operation.input, order.value, "what it sends")


def demand_answer(plan: Plan, order: Order | None, outputs: Value) -> None:
    """Refuse an answer made up for a partner if it is not a message of the operation."""
    if (
        isinstance(order, CallPartner)
        and (operation := _operation_called(plan, order)) is not None
        and operation.output
    ):
        _demand_shape(plan, operation.output, outputs, "the answer")


def _operation_called(plan: Plan, order: CallPartner) -> Operation | None:
    return plan.flow.xml.port_types.get(order.port_type, {}).get(order.operation) if plan.flow.xml is not None else None


def _demand_shape(plan: Plan, message: str, value: Value, what: str) -> None:
    assert plan.flow.xml is not None, "only flows with XML have operations"
    if reason := flaw(plan.flow.xml, XmlType(message=message), value):
        raise RequestError(f"{what} cannot be taken: {reason}")


def demand_plain(command: ForceComplete | ForceFail) -> None:
    if isinstance(command, ForceComplete):
        demand_value(command.outputs, f"the outputs of {command.item}")
    elif reason := _flaw_of_fault(command.fault):
        raise RequestError(f"the fault of {command.item} cannot be taken: {reason}")


def sanitize_outcome(outcome: Outcome) -> Outcome:
    """The outcome, or a fault if the journal could not hold it."""
    if outcome.values and check_value(outcome.values):
        outcome = replace(outcome, values={})  # reported values are only for observers; drop them
    fault = outcome.fault
    if fault is not None and (reason := _flaw_of_fault(fault)):
        return Outcome(fault=_not_data(f"it failed, and its fault cannot be stored: {reason}"))
    if reason := check_value(outcome.outputs):
        kept = replace(outcome, outputs=None)
        return replace(sanitize_outcome(kept), fault=fault or _not_data(f"its outputs cannot be stored: {reason}"))
    measures, numbers = outcome.measures, _numbers_in(outcome.measures)
    rest = [outcome.exit_code, outcome.log_tail, outcome.cached_from, outcome.code_mismatch, outcome.undeclared_reads]
    if outcome.left_running or outcome.image:
        rest += [outcome.left_running, outcome.image]
    if measures.damaged or measures.changed_inputs:
        rest += [*measures.damaged, *measures.changed_inputs]
    if not SMALL_MIN < min(numbers) <= max(numbers) < SMALL_MAX:
        rest += numbers
    if outcome.files or outcome.file_lists:
        rest += _parts_of_files(outcome)
    if any(rest) and (reason := check_value(rest)):  # most have none of this
        return Outcome(fault=fault or _not_data(f"its outcome cannot be stored: {reason}"))
    return outcome


def _parts_of_files(outcome: Outcome) -> list[Value]:
    files = [part for name, ref in outcome.files.items() for part in (name, *astuple(ref))]
    return files + [part for name, refs in outcome.file_lists.items() for ref in refs for part in (name, *astuple(ref))]


def _flaw_of_fault(fault: Fault) -> str:
    return check_value(fault.data) or check_value(
        [fault.name, fault.message, fault.exit_code, fault.signal, fault.log_tail, fault.stage, fault.file]
    )


def _not_data(message: str) -> Fault:
    return Fault(name=NOT_DATA, category=Category.OUTPUT, message=message)
