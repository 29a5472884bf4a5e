"""Commands of people and exlets to a case and its items.

A command of an exlet names its step. A repeated command of the same step is ignored, so that an exlet that continues
after a crash does nothing twice. Several holders can suspend the same thing: it continues when all have released it; a
person releases for all."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.compensations import forget_compensations
from mendflow.core.engine.data_updates import update_order, write_case, write_item, write_outputs
from mendflow.core.engine.elements import element_at
from mendflow.core.engine.faults import FlowFault
from mendflow.core.engine.messages import (
    Cancel,
    CancelCalledCase,
    CancelJob,
    Command,
    Event,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    ItemEnded,
    ItemFailed,
    MarkCompensated,
    Order,
    RemoveItem,
    RestartItem,
    Suspend,
    WithdrawTask,
    WriteData,
)
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Case, InstanceEnd, Item
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import REMOVED_WORDS, Category, Fault
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value

COMMANDS_MAX: Final = 1_000
"""How many commands a case remembers, to detect repeated ones."""

PERSON: Final = ""

Apply = Callable[[Run, Event], None]
"""Applies a kept fact that is due now."""


def command_key(by: str, command: Command) -> str:
    """Equal for the same command of the same step."""
    return f"{by} {type(command).__struct_config__.tag} {getattr(command, 'item', None) or ''}"


def remember_command(case: Case, by: str, command: Command) -> None:
    """Remember that the command was taken."""
    case.taken[command_key(by, command)] = None
    if len(case.taken) > COMMANDS_MAX:
        del case.taken[next(iter(case.taken))]


def holders_of(case: Case, item: Item | None) -> dict[str, None]:
    """Who suspends the case or the item. Earlier versions did not record it: then it was a person."""
    if item is None:
        return case.holders or ({PERSON: None} if case.status == "suspended" else {})
    return case.item_holders.get(item.id) or ({PERSON: None} if item.suspended else {})


def must_wait(case: Case, fact: Command) -> bool:
    """Whether it writes to an item that a kept command is about: then it must come after that one."""
    if not isinstance(fact, WriteData) or fact.item is None:
        return False
    return any(getattr(kept.fact, "item", None) == fact.item for kept in case.facts)


def run_guarded(run: Run, instance: Item, do: Callable[..., None], *given: Any) -> None:
    """Apply something to an item; a fault in it is the item's."""
    try:
        do(run, *given)
    except FlowFault as problem:
        run.fail(instance, problem.fault)


def suspend_case(run: Run, holder: str) -> None:
    case = run.case
    was_held = case.status == "suspended"
    case.holders = {**holders_of(case, None), holder: None}
    if was_held:
        return
    case.status = "suspended"
    for instance, kind in live_items_with_kinds(run):
        if not instance.suspended and instance.serial not in case.answered:
            kind.suspend(run, instance)


def suspend_item(run: Run, item: ItemId, holder: str) -> None:
    if (found := live_item(run, item)) is None:
        return
    instance, kind = found
    case = run.case
    case.item_holders[instance.id] = {**holders_of(case, instance), holder: None}
    if instance.suspended:
        return
    if case.status == "running" and instance.serial not in case.answered:
        kind.suspend(run, instance)
    instance.suspended = True


def suspend(run: Run, fact: Suspend) -> None:
    if fact.item is None:
        suspend_case(run, fact.holder)
    else:
        suspend_item(run, fact.item, fact.holder)


def release_hold(case: Case, item: Item | None, holder: str) -> bool:
    """Release a holder; True if none is left."""
    holders = holders_of(case, item)
    if not holders or (holder != PERSON and holder not in holders):
        return False
    left = {} if holder == PERSON else {each: None for each in holders if each != holder}
    if item is None:
        case.holders = left
    elif left:
        case.item_holders[item.id] = left
    else:
        case.item_holders.pop(item.id, None)
    return not left


def resume_case(run: Run, holder: str) -> bool:
    """Whether the case continues, and kept facts are due."""
    case = run.case
    if not release_hold(case, None, holder):
        return False
    case.status = "running"
    for instance, kind in live_items_with_kinds(run):
        if not instance.suspended and instance.serial not in case.answered:
            kind.resume(run, instance)
    return True


def resume_item(run: Run, item: ItemId, holder: str, apply: Apply) -> None:
    found = live_item(run, item)
    if found is None or not release_hold(run.case, found[0], holder):
        return
    instance, kind = found
    instance.suspended = False
    facts, instance.facts = instance.facts, []
    if run.case.status == "suspended":
        run.case.facts.extend(facts)
        return
    if not facts and instance.serial not in run.case.answered:
        kind.resume(run, instance)
    run_guarded(run, instance, kind.wake, instance)
    for each in facts:
        assert isinstance(each.fact, (FinishItem, FireTimer))
        run.case.answered.pop(each.fact.serial, None)
        apply(run, each)


def cancel(run: Run, fact: Cancel) -> None:
    message = fact.reason or "the case was removed"
    run.finish("cancelled", fault=Fault(name="cancelled", category=Category.CANCELLED, message=message))


def restart(run: Run, fact: RestartItem) -> None:
    if (found := live_item(run, fact.item)) is not None:
        instance, kind = found
        instance.order = run.case.at_start.pop(instance.id, instance.order)
        if fact.values:
            _write_if_possible(instance, fact.values)
        if fact.level:
            run.case.levels[instance.id] = fact.level
        run_guarded(run, instance, kind.restart, instance)


def restart_items(run: Run, items: Sequence[ItemId]) -> None:
    """Begin items again that were withdrawn, with the data that they had."""
    for item in items:
        if (found := live_item(run, item)) is not None:
            instance, kind = found
            run_guarded(run, instance, kind.restart, instance)


def _write_if_possible(instance: Item, values: dict[str, Value]) -> None:
    try:
        instance.order = write_item(instance, values)
    except RequestError:
        return


def force_complete(run: Run, fact: ForceComplete) -> None:
    if (found := live_item(run, fact.item)) is not None:
        instance, kind = found
        serial, given = instance.serial, len(run.orders)
        run_guarded(run, instance, kind.force, instance, fact.outputs)
        if instance.end is InstanceEnd.COMPLETED:
            _tell_ended(run, instance, serial, given, fact)


def force_fail(run: Run, fact: ForceFail) -> None:
    if (found := live_item(run, fact.item)) is None:
        return
    instance, kind = found
    serial, given = instance.serial, len(run.orders)
    if fact.proceed:
        kind.fail(run, instance, fact.fault)
    else:
        run.fail(instance, fact.fault)
    _tell_ended(run, instance, serial, given, fact)


def remove(run: Run, fact: RemoveItem) -> None:
    if (found := live_item(run, fact.item)) is None:
        return
    instance, serial, given = found[0], found[0].serial, len(run.orders)
    if fact.path:
        run.remove(instance, fact.reason)
        if any(_concerns(order, instance, serial) for order in run.orders[given:]):
            _tell_ended(run, instance, serial, given, fact)
    else:
        run.skip(instance, REMOVED_WORDS)


def _concerns(order: Order, instance: Item, serial: int) -> bool:
    """Whether the order withdraws the item's request, or reports its failure."""
    if isinstance(order, ItemFailed):
        return order.item == instance.item
    return isinstance(order, (CancelJob, WithdrawTask, CancelCalledCase)) and order.serial == serial


def _tell_ended(
    run: Run, instance: Item, serial: int, given: int, fact: ForceComplete | ForceFail | RemoveItem
) -> None:
    """Report it after the orders about the item itself, and before what follows from its end: the case may end."""
    if not serial:
        return
    node = run.nodes[instance.node]
    about = [place for place in range(given, len(run.orders)) if _concerns(run.orders[place], instance, serial)]
    ended = ItemEnded(
        serial=serial,
        item=instance.item,
        name=node.shown,
        kind=node.kind,
        state=_STATES[type(fact)],
        outputs=getattr(fact, "outputs", None),
        fault=getattr(fact, "fault", None),
        reason=getattr(fact, "reason", ""),
        by=fact.by,
        is_reported=any(isinstance(run.orders[place], ItemFailed) for place in about),
        element=element_at(run.case, instance, instance.node),
    )
    run.orders.insert(about[-1] + 1 if about else given, ended)


_STATES: Final[dict[type, Literal["completed", "failed", "cancelled"]]] = {
    ForceComplete: "completed",
    ForceFail: "failed",
    RemoveItem: "cancelled",
}


def write(run: Run, fact: WriteData) -> None:
    """A write that no longer fits changes nothing."""
    try:
        if fact.item is None:
            write_case(run.case, fact.values)
        elif (found := live_item(run, fact.item)) is not None:
            write_live(run.case, found[0], fact)
    except RequestError:
        return


def write_live(case: Case, instance: Item, fact: WriteData) -> None:
    if fact.serial:
        if instance.serial == fact.serial:
            earlier = case.written_outputs.get(fact.serial, {})
            kept = {path: value for path, value in earlier.items() if path not in fact.values}
            case.written_outputs[fact.serial] = {**kept, **fact.values}
        return
    before = instance.order
    instance.order = write_item(instance, fact.values)
    if before is None or instance.order is before:
        return
    if not fact.held:
        case.at_start.setdefault(instance.id, before)
    elif (first := case.at_start.get(instance.id)) is not None:
        case.at_start[instance.id] = update_order(first, fact.values)


def with_written_outputs(case: Case, instance: Item, fact: FinishItem) -> Outcome:
    """The answer with what was written into its outputs while it was held; a failure has none."""
    if fact.outcome.fault is not None:
        return fact.outcome
    try:
        outputs = write_outputs(fact.outcome.outputs, case.written_outputs[fact.serial], instance.item)
    except RequestError:
        return fact.outcome  # as `write`: what does not fit changes nothing
    return replace(fact.outcome, outputs=outputs)


def mark_compensated(run: Run, fact: MarkCompensated) -> None:
    forget_compensations(run, fact.numbers)


def live_item(run: Run, item: ItemId) -> tuple[Item, ItemKind[Item]] | None:
    found = run.instances.get(run.index.items.get(item, 0))
    if not isinstance(found, Item):
        return None
    kind = run.kinds[run.nodes[found.node].kind]
    assert isinstance(kind, ItemKind)
    return found, kind


def live_items_with_kinds(run: Run) -> list[tuple[Item, ItemKind[Item]]]:
    return [found for item in list(run.index.items) if (found := live_item(run, ItemId(item))) is not None]


EFFECTS: Final[dict[type, Callable[[Run, Any], None]]] = {
    Suspend: suspend,
    Cancel: cancel,
    RestartItem: restart,
    ForceComplete: force_complete,
    ForceFail: force_fail,
    RemoveItem: remove,
    WriteData: write,
    MarkCompensated: mark_compensated,
}
"""What each command does. Resume is missing: it makes kept facts due, which can be of any kind."""
