"""Decide: may this command be taken now? Changes nothing.

An accepted command becomes one event. A repeated message becomes none, and so does a repeated command of the same step
of an exlet. Anything else is refused, with the reason and what to do."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from mendflow.core.data.input_types import expected_text, is_of_type
from mendflow.core.engine.admission import (
    demand_answer,
    demand_message,
    demand_plain,
    demand_request,
    demand_value,
    sanitize_outcome,
)
from mendflow.core.engine.control import PERSON, command_key, holders_of
from mendflow.core.engine.data_updates import updated_case_data, write_item
from mendflow.core.engine.messages import (
    CUT_WHEN_LONG,
    Cancel,
    Command,
    Deliver,
    Event,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    MarkCompensated,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    StartCase,
    Suspend,
    WriteData,
)
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.secrets_in_faults import quoted
from mendflow.core.engine.state import Case, Item
from mendflow.core.model.errors import Conflict, NotFound, RequestError
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant, ItemId
from mendflow.core.model.values import Value


class StaleAnswer(Conflict):
    """The answer to an order that is no longer outstanding. The sender may drop it."""

    code: ClassVar[str] = "stale"


def decide(case: Case, command: Command, now: Instant, *, is_compiled: bool = False) -> list[Event]:
    """The events that the command becomes, or a RequestError. `is_compiled`: whoever starts the case has compiled its
    flow, and so has checked it."""
    if case.status == "blank" and not isinstance(command, StartCase):
        raise Conflict("the case has not been started; send StartCase first")
    if isinstance(command, StartCase) and case.status == "blank" and not is_compiled:
        compile_flow(command.flow, alone=command.parent is not None)
    if (by := getattr(command, "by", "")) and command_key(by, command) in case.taken:
        return []
    if not _CHECKS[type(command)](case, command):
        return []
    if isinstance(command, FinishItem) and (cleaned := sanitize_outcome(command.outcome)) is not command.outcome:
        command = replace(command, outcome=cleaned)
    elif isinstance(command, RemoveItem):
        command = replace(command, path=True)
    return [Event(now, command, CUT_WHEN_LONG)]


def _start(case: Case, command: StartCase) -> bool:
    if case.status != "blank":
        raise Conflict(f"case {case.id} has already been started; use another id for a new one", case=case.id)
    check_inputs(command.flow, command.inputs)
    for name, value in command.inputs.items():
        demand_value(value, f"input {name}")
    return True


def check_inputs(flow: Flow, given: dict[str, Value]) -> None:
    """Refuse inputs that are unknown, missing or of another type, naming all of them."""
    problems = [
        f"{name} is not an input of flow {flow.name}; it has {', '.join(sorted(flow.inputs)) or 'none'}"
        for name in given
        if name not in flow.inputs
    ]
    for name, declared in flow.inputs.items():
        if name not in given:
            if declared.required:
                problems.append(f"input {name} is missing; give it a value")
        elif not is_of_type(declared, given[name]):
            problems.append(f"input {name} must be {expected_text(declared.type)}, not {quoted(given[name], name)}")
    if problems:
        raise RequestError("; ".join(problems), problems=problems)


def _finish(case: Case, command: FinishItem) -> bool:
    serial = command.serial
    if serial in case.posted:
        return True
    owner = case.instances.get(case.index.serials.get(serial, 0))
    if serial in case.answered or not isinstance(owner, Item) or owner.serial != serial:
        raise StaleAnswer(f"case {case.id}: {serial} is no longer outstanding; drop it", case=case.id, serial=serial)
    return True


def _fire(case: Case, command: FireTimer) -> bool:
    serial = command.serial
    owner = case.instances.get(case.index.serials.get(serial, 0))
    if serial in case.answered or owner is None or serial not in getattr(owner, "timers", ()):
        raise StaleAnswer(f"case {case.id}: timer {serial} is no longer set; drop it", case=case.id, serial=serial)
    return True


def _proceed(case: Case, command: Proceed) -> bool:
    if not command.serial or command.serial != case.continuation:
        raise StaleAnswer(f"case {case.id}: there is no unfinished work under {command.serial}", case=case.id)
    return True


def _deliver(case: Case, command: Deliver) -> bool:
    _demand_live(case)
    demand_message(case.plan, command)
    return command.id not in case.message_ids


def _suspend(case: Case, command: Suspend) -> bool:
    """A person is refused if it is suspended already; for an exlet that is fine."""
    held = holders_of(case, _target_item(case, command.item))
    if command.holder in held and not command.by:
        what = f"case {case.id}" if command.item is None else f"item {command.item}"
        raise Conflict(f"{what} is already suspended; `mendflow resume` resumes it", case=case.id)
    return True


def _resume(case: Case, command: Resume) -> bool:
    held = holders_of(case, _target_item(case, command.item))
    if not command.by and (not held if command.holder == PERSON else command.holder not in held):
        what = f"case {case.id}" if command.item is None else f"item {command.item}"
        raise Conflict(f"{what} is not suspended{f' by {command.holder}' if held else ''}", case=case.id)
    return True


def _target_item(case: Case, item: ItemId | None) -> Item | None:
    """The live item that is meant, or None for the live case."""
    _demand_live(case)
    return None if item is None else _demand_item(case, item)


def _cancel(case: Case, _command: Cancel) -> bool:
    _demand_live(case)
    return True


def _on_item(case: Case, command: RestartItem | ForceComplete | ForceFail | RemoveItem) -> bool:
    _demand_live(case)
    item = _demand_item(case, command.item)
    if isinstance(command, (ForceComplete, ForceFail)):
        demand_plain(command)
    if isinstance(command, ForceComplete) and command.outputs is not None:
        demand_answer(case.plan, item.order, command.outputs)
    if isinstance(command, RestartItem) and command.values:
        _demand_writable(case, command.values, item)
    return True


def _write(case: Case, command: WriteData) -> bool:
    item = _target_item(case, command.item)
    if item is not None and command.serial:
        if item.serial != command.serial:
            raise Conflict(f"item {item.item} of case {case.id} does not wait with its outputs any more", case=case.id)
        for path, value in command.values.items():
            demand_value(value, path)
        return True
    if item is not None:
        _demand_writable(case, command.values, item)
        return True
    for path, value in command.values.items():
        demand_value(value, path)
    inputs, _ = updated_case_data(case, command.values)
    assert case.flow is not None
    for name, declared in case.flow.inputs.items():
        if inputs.get(name) is not case.inputs.get(name) and not is_of_type(declared, inputs.get(name)):
            raise RequestError(f"input {name} must be a {declared.type}, not {quoted(inputs.get(name), name)}")
    return True


def _demand_writable(case: Case, values: dict[str, Value], item: Item) -> None:
    for path, value in values.items():
        demand_value(value, path)
    try:
        demand_request(case.plan, write_item(item, values, dry=True))
    except RequestError as error:
        raise RequestError(f"item {item.item}: {error.message}", item=item.item) from None


def _mark(case: Case, _command: MarkCompensated) -> bool:
    _demand_live(case)
    return True


def _demand_live(case: Case) -> None:
    if case.over:
        raise Conflict(f"case {case.id} has ended ({case.status}); it can no longer be changed", case=case.id)


def _demand_item(case: Case, item: ItemId) -> Item:
    found = case.instances.get(case.index.items.get(item, 0))
    if not isinstance(found, Item):
        raise NotFound(f"case {case.id} has no live item {item}; list its items to see which there are", case=case.id)
    return found


_CHECKS: Final[dict[type, Callable[[Case, Any], bool]]] = {
    StartCase: _start,
    FinishItem: _finish,
    FireTimer: _fire,
    Deliver: _deliver,
    Proceed: _proceed,
    Suspend: _suspend,
    Resume: _resume,
    Cancel: _cancel,
    RestartItem: _on_item,
    ForceComplete: _on_item,
    ForceFail: _on_item,
    RemoveItem: _on_item,
    WriteData: _write,
    MarkCompensated: _mark,
}
