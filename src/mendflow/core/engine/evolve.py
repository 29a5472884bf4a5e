"""Evolve: what follows from an event. The only place where a case changes; it never refuses.

A fact about something that is no longer there changes nothing. While a case is suspended facts are kept, and are
applied in their order when it is resumed."""

from collections.abc import Callable
from typing import Any, Final

from mendflow.core.engine import mail
from mendflow.core.engine.activities import KINDS
from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.faults import Thrown
from mendflow.core.engine.messages import (
    Cancel,
    Deliver,
    Event,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    Order,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    StartCase,
    Suspend,
)
from mendflow.core.engine.run import START, Run
from mendflow.core.engine.state import Case, Instance, Item
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import ItemId

SEEN_MAX: Final = 10_000
"""How many message ids a case remembers, to know a repeated delivery."""


def evolve(case: Case, event: Event) -> list[Order]:
    """Apply the event, and give the orders that follow from it."""
    case.position += 1
    fact = event.fact
    if isinstance(fact, StartCase):
        _begin(case, fact, event)
    run = Run(case, KINDS, event.at)
    if isinstance(fact, FinishItem) and case.posted.pop(fact.serial, None) is not None:
        return run.orders
    if case.over:
        return run.orders
    if isinstance(fact, StartCase):
        root = run.make(0, 0, 0, 0, "")
        case.root = root.id
        (case.backlog if fact.later else run.agenda).append((START, root.id))
    elif type(fact) not in _AT_ONCE and (case.status == "suspended" or case.facts):
        _keep(case, event)
    else:
        _apply(run, event)
    run.work()
    run.rest()
    return run.orders


def _begin(case: Case, fact: StartCase, event: Event) -> None:
    case.id, case.flow, case.parent = fact.case, fact.flow, fact.parent
    case.status, case.started_at = "running", event.at
    defaults = {name: declared.default for name, declared in fact.flow.inputs.items()}
    case.inputs = {**defaults, **fact.inputs}


def _apply(run: Run, event: Event) -> None:
    _FACTS[type(event.fact)](run, event.fact, event)


def _guarded(run: Run, instance: Instance, do: Callable[..., None], *given: Any) -> None:
    """Do something to an instance; a fault in it is the instance's."""
    try:
        do(run, *given)
    except Thrown as problem:
        run.fail(instance, problem.fault)


def _keep(case: Case, event: Event) -> None:
    """Keep a fact for later, and remember what it answers, so that it is not given twice."""
    case.facts.append(event)
    fact = event.fact
    if isinstance(fact, (FinishItem, FireTimer)):
        case.answered[fact.serial] = None
    elif isinstance(fact, Deliver):
        _see(case, fact)


def _see(case: Case, fact: Deliver) -> None:
    case.seen[fact.id] = None
    if len(case.seen) > SEEN_MAX:
        del case.seen[next(iter(case.seen))]


def _finish(run: Run, fact: FinishItem, event: Event) -> None:
    owner = run.instances.get(run.index.serials.get(fact.serial, 0))
    if not isinstance(owner, Item):
        return
    if owner.suspended:
        owner.facts.append(event)
        run.case.answered[fact.serial] = None
        return
    _guarded(run, owner, run.kinds[run.nodes[owner.node].kind].finished, owner, fact.outcome)


def _fire(run: Run, fact: FireTimer, event: Event) -> None:
    owner = run.instances.get(run.index.serials.get(fact.serial, 0))
    if owner is None:
        return
    if isinstance(owner, Item) and owner.suspended:
        owner.facts.append(event)
        run.case.answered[fact.serial] = None
        return
    _guarded(run, owner, run.kinds[run.nodes[owner.node].kind].fired, owner, fact.serial)


def _deliver(run: Run, fact: Deliver, _event: Event) -> None:
    _see(run.case, fact)
    mail.deliver(run, fact)


def _proceed(run: Run, _fact: Proceed, _event: Event) -> None:
    case = run.case
    case.going_on = 0
    if case.status == "suspended":
        return
    run.agenda.extend(case.backlog)
    case.backlog.clear()
    run.work()
    _catch_up(run)


def _catch_up(run: Run) -> None:
    """Apply kept facts in their order, a bounded number of them."""
    case = run.case
    facts, done = case.facts, 0
    case.facts = []
    for event in facts:
        if case.status != "running" or run.tired:
            break
        done += 1
        run.starts += 1
        if isinstance(event.fact, (FinishItem, FireTimer)):
            case.answered.pop(event.fact.serial, None)
        _apply(run, event)
        run.work()
    case.facts = [] if case.over else facts[done:]


def _suspend(run: Run, fact: Suspend, _event: Event) -> None:
    if fact.item is None:
        run.case.status = "suspended"
        for instance, kind in _items(run):
            if not instance.suspended and instance.serial not in run.case.answered:
                kind.suspend(run, instance)
    elif (found := _item(run, fact.item)) is not None:
        instance, kind = found
        if run.case.status == "running" and instance.serial not in run.case.answered:
            kind.suspend(run, instance)
        instance.suspended = True


def _resume(run: Run, fact: Resume, _event: Event) -> None:
    if fact.item is None:
        run.case.status = "running"
        for instance, kind in _items(run):
            if not instance.suspended and instance.serial not in run.case.answered:
                kind.resume(run, instance)
        _catch_up(run)
    elif (found := _item(run, fact.item)) is not None:
        instance, kind = found
        instance.suspended = False
        facts, instance.facts = instance.facts, []
        if run.case.status == "suspended":
            run.case.facts.extend(facts)
            return
        if not facts and instance.serial not in run.case.answered:
            kind.resume(run, instance)
        _guarded(run, instance, kind.wake, instance)
        for each in facts:
            assert isinstance(each.fact, (FinishItem, FireTimer))
            run.case.answered.pop(each.fact.serial, None)
            _apply(run, each)


def _cancel(run: Run, fact: Cancel, _event: Event) -> None:
    message = fact.reason or "the case was removed"
    run.finish("cancelled", fault=Fault(name="cancelled", category=Category.CANCELLED, message=message))


def _restart(run: Run, fact: RestartItem, _event: Event) -> None:
    if (found := _item(run, fact.item)) is not None:
        instance, kind = found
        _guarded(run, instance, kind.restart, instance)


def _force(run: Run, fact: ForceComplete, _event: Event) -> None:
    if (found := _item(run, fact.item)) is not None:
        instance, kind = found
        _guarded(run, instance, kind.force, instance, fact.outputs)


def _force_fail(run: Run, fact: ForceFail, _event: Event) -> None:
    if (found := _item(run, fact.item)) is not None:
        run.fail(found[0], fact.fault)


def _remove(run: Run, fact: RemoveItem, _event: Event) -> None:
    if (found := _item(run, fact.item)) is not None:
        run.skip(found[0], "it was removed")


def _item(run: Run, item: ItemId) -> tuple[Item, ItemKind[Item]] | None:
    found = run.instances.get(run.index.items.get(item, 0))
    if not isinstance(found, Item):
        return None
    kind = run.kinds[run.nodes[found.node].kind]
    assert isinstance(kind, ItemKind)
    return found, kind


def _items(run: Run) -> list[tuple[Item, ItemKind[Item]]]:
    return [found for item in list(run.index.items) if (found := _item(run, ItemId(item))) is not None]


_AT_ONCE: Final = frozenset({Suspend, Resume, Cancel, Proceed})
"""Facts that are not kept while a case is suspended."""

_FACTS: Final[dict[type, Callable[[Run, Any, Event], None]]] = {
    FinishItem: _finish,
    FireTimer: _fire,
    Deliver: _deliver,
    Proceed: _proceed,
    Suspend: _suspend,
    Resume: _resume,
    Cancel: _cancel,
    RestartItem: _restart,
    ForceComplete: _force,
    ForceFail: _force_fail,
    RemoveItem: _remove,
}
