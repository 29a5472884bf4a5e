"""Decide: may this command be taken now? Nothing changes here.

A command that is taken becomes one event. A repeated message becomes none. Anything else is refused, with the reason
and what to do."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from mendflow.core.engine.entry import clean, demand_message, demand_plain, demand_value
from mendflow.core.engine.messages import (
    Cancel,
    Command,
    Deliver,
    Event,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    StartCase,
    Suspend,
)
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.state import Case, Item
from mendflow.core.model.flow import Flow, Input
from mendflow.core.model.ids import Instant, ItemId
from mendflow.core.model.problems import Conflict, Mistake, NotFound
from mendflow.core.model.values import Value, file_of


class Stale(Conflict):
    """The answer to an order that nobody waits for any more. Whoever gave it may forget it."""

    code: ClassVar[str] = "stale"


def decide(case: Case, command: Command, now: Instant) -> list[Event]:
    """The events that the command becomes, or a Mistake."""
    if case.status == "blank" and not isinstance(command, StartCase):
        raise Conflict("the case has not been started; give StartCase first")
    if not _CHECKS[type(command)](case, command):
        return []
    if isinstance(command, FinishItem) and (cleaned := clean(command.outcome)) is not command.outcome:
        command = replace(command, outcome=cleaned)
    return [Event(now, command)]


def _start(case: Case, command: StartCase) -> bool:
    if case.status != "blank":
        raise Conflict(f"case {case.id} is started already; use another id for a new one", case=case.id)
    compile_flow(command.flow)
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
        elif not fits(declared, given[name]):
            problems.append(f"input {name} must be a {declared.type}, not {given[name]!r:.80}")
    if problems:
        raise Mistake("; ".join(problems), problems=problems)


_TYPES: Final[dict[str, Callable[[Value], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    "file": lambda value: (isinstance(value, str) and value != "") or file_of(value) is not None,
}


def fits(declared: Input, value: Value) -> bool:
    check = _TYPES.get(declared.type)
    return check is None or check(value) or (value is None and not declared.required)


def _finish(case: Case, command: FinishItem) -> bool:
    serial = command.serial
    if serial in case.posted:
        return True
    owner = case.instances.get(case.index.serials.get(serial, 0))
    if serial in case.answered or not isinstance(owner, Item) or owner.serial != serial:
        raise Stale(f"case {case.id}: nobody waits for {serial} any more; forget it", case=case.id, serial=serial)
    return True


def _fire(case: Case, command: FireTimer) -> bool:
    serial = command.serial
    owner = case.instances.get(case.index.serials.get(serial, 0))
    if serial in case.answered or owner is None or serial not in getattr(owner, "timers", ()):
        raise Stale(f"case {case.id}: timer {serial} is no longer set; forget it", case=case.id, serial=serial)
    return True


def _proceed(case: Case, command: Proceed) -> bool:
    if not command.serial or command.serial != case.going_on:
        raise Stale(f"case {case.id}: there is nothing to go on with under {command.serial}", case=case.id)
    return True


def _deliver(case: Case, command: Deliver) -> bool:
    _live(case)
    demand_message(case.plan, command)
    return command.id not in case.seen


def _suspend(case: Case, command: Suspend) -> bool:
    _live(case)
    if command.item is None:
        if case.status == "suspended":
            raise Conflict(f"case {case.id} is suspended already; `mendflow continue` lets it go on", case=case.id)
    elif _item(case, command.item).suspended:
        raise Conflict(f"item {command.item} is suspended already; `mendflow continue` lets it go on", case=case.id)
    return True


def _resume(case: Case, command: Resume) -> bool:
    _live(case)
    if command.item is None:
        if case.status != "suspended":
            raise Conflict(f"case {case.id} is not suspended", case=case.id)
    elif not _item(case, command.item).suspended:
        raise Conflict(f"item {command.item} is not suspended", case=case.id)
    return True


def _cancel(case: Case, _command: Cancel) -> bool:
    _live(case)
    return True


def _on_item(case: Case, command: RestartItem | ForceComplete | ForceFail | RemoveItem) -> bool:
    _live(case)
    _item(case, command.item)
    if isinstance(command, (ForceComplete, ForceFail)):
        demand_plain(command)
    return True


def _live(case: Case) -> None:
    if case.over:
        raise Conflict(f"case {case.id} is over ({case.status}); nothing more can be done with it", case=case.id)


def _item(case: Case, item: ItemId) -> Item:
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
}
