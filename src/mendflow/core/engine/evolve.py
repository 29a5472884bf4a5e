"""Evolve: applies an event. The only place where a case changes; it never refuses.

A fact about something that no longer exists changes nothing. While a case is suspended, facts are kept, and are applied
in order when it is resumed."""

from collections.abc import Callable
from typing import Any, Final

from mendflow.core.engine import control, message_delivery
from mendflow.core.engine.activities import KINDS
from mendflow.core.engine.external_facts import add_external_fact
from mendflow.core.engine.faults import FlowFault
from mendflow.core.engine.messages import (
    Cancel,
    CaseMoved,
    CaseReopened,
    Deliver,
    Event,
    FinishItem,
    FireTimer,
    MarkCompensated,
    Order,
    Proceed,
    Resume,
    StartCase,
    Suspend,
    WriteData,
)
from mendflow.core.engine.run import START, Run
from mendflow.core.engine.state import Case, Instance, Item

MESSAGE_IDS_MAX: Final = 10_000
"""How many message ids a case remembers, to detect repeated deliveries."""


def evolve(case: Case, event: Event) -> list[Order]:
    """Apply the event, and give the orders that follow from it. One from the journal is cut where it was cut when it
    was new; a new one when it gets long."""
    case.position += 1
    fact, cut = event.fact, event.cut
    if cut:
        event = Event(event.at, fact)  # the cut is this event's, and not that of those which apply what is kept of it
    if isinstance(fact, CaseMoved):
        return []
    if isinstance(fact, StartCase):
        _begin(case, fact, event)
    run = Run(case, KINDS, event.at, cut)
    if isinstance(fact, FinishItem) and case.posted.pop(fact.serial, None) is not None:
        return run.orders
    if case.over:
        return run.orders
    if isinstance(fact, CaseReopened):
        control.restart_items(run, fact.restarted)
        run.work()
        run.yield_work()
        return run.orders
    add_external_fact(case, fact)
    if by := getattr(fact, "by", ""):
        control.remember_command(case, by, fact)
    if isinstance(fact, StartCase):
        root = run.make(0, 0, 0, 0, "")
        case.root = root.id
        (case.backlog if fact.later else run.agenda).append((START, root.id))
    elif (case.status == "suspended" or case.facts) and (
        type(fact) not in _WHILE_SUSPENDED or control.must_wait(case, fact)
    ):
        _keep(case, event)
    else:
        _apply(run, event)
    run.work()
    run.yield_work()
    return run.orders


def evolve_new(case: Case, event: Event) -> tuple[Event, list[Order]]:
    """Apply an event for the first time: the event as it has to stand in the journal, which says where it was cut, and
    the orders that follow from it."""
    orders = evolve(case, event)
    return Event(event.at, event.fact, case.meter.cut), orders


def _begin(case: Case, fact: StartCase, event: Event) -> None:
    case.id, case.flow, case.parent = fact.case, fact.flow, fact.parent
    case.status, case.started_at, case.remember = "running", event.at, fact.remember
    defaults = {name: declared.default for name, declared in fact.flow.inputs.items()}
    case.inputs = {**defaults, **fact.inputs}


def _apply(run: Run, event: Event) -> None:
    _FACTS[type(event.fact)](run, event.fact, event)


def _run_guarded(run: Run, instance: Instance, do: Callable[..., None], *given: Any) -> None:
    """Apply something to an instance; a fault in it is the instance's."""
    try:
        do(run, *given)
    except FlowFault as problem:
        run.fail(instance, problem.fault)


def _keep(case: Case, event: Event) -> None:
    """Keep a fact for later, and remember what it answers, so that it is not taken twice."""
    case.facts.append(event)
    fact = event.fact
    if isinstance(fact, (FinishItem, FireTimer)):
        case.answered[fact.serial] = None
    elif isinstance(fact, Deliver):
        _remember_answer(case, fact)


def _remember_answer(case: Case, fact: Deliver) -> None:
    case.message_ids[fact.id] = None
    if len(case.message_ids) > MESSAGE_IDS_MAX:
        del case.message_ids[next(iter(case.message_ids))]


def _finish(run: Run, fact: FinishItem, event: Event) -> None:
    owner = run.instances.get(run.index.serials.get(fact.serial, 0))
    if not isinstance(owner, Item):
        return
    if owner.suspended:
        owner.facts.append(event)
        run.case.answered[fact.serial] = None
        return
    outcome = fact.outcome
    if fact.serial in run.case.written_outputs:
        outcome = control.with_written_outputs(run.case, owner, fact)
    _run_guarded(run, owner, run.kinds[run.nodes[owner.node].kind].order_finished, owner, outcome)


def _fire(run: Run, fact: FireTimer, event: Event) -> None:
    owner = run.instances.get(run.index.serials.get(fact.serial, 0))
    if owner is None:
        return
    if isinstance(owner, Item) and owner.suspended:
        owner.facts.append(event)
        run.case.answered[fact.serial] = None
        return
    _run_guarded(run, owner, run.kinds[run.nodes[owner.node].kind].timer_fired, owner, fact.serial)


def _deliver(run: Run, fact: Deliver, _event: Event) -> None:
    _remember_answer(run.case, fact)
    message_delivery.deliver(run, fact)


def _proceed(run: Run, _fact: Proceed, _event: Event) -> None:
    case = run.case
    case.continuation = 0
    if case.status == "suspended":
        return
    run.agenda.extend(case.backlog)
    case.backlog.clear()
    run.work()
    _catch_up(run)


def _catch_up(run: Run) -> None:
    """Apply kept facts in order, up to a limit."""
    case = run.case
    facts, done = case.facts, 0
    case.facts = []
    for event in facts:
        if case.status != "running" or run.is_cut_here():
            break
        done += 1
        run.starts += 1
        if isinstance(event.fact, (FinishItem, FireTimer)):
            case.answered.pop(event.fact.serial, None)
        _apply(run, event)
        run.work()
    case.facts = [] if case.over else facts[done:]


def _resume(run: Run, fact: Resume, _event: Event) -> None:
    if fact.item is not None:
        control.resume_item(run, fact.item, fact.holder, _apply)
    elif control.resume_case(run, fact.holder):
        _catch_up(run)


def _steer(run: Run, fact: Any, _event: Event) -> None:
    control.EFFECTS[type(fact)](run, fact)


_WHILE_SUSPENDED: Final = frozenset({Suspend, Resume, Cancel, Proceed, WriteData, MarkCompensated})
"""Facts that are not kept while a case is suspended."""

_FACTS: Final[dict[type, Callable[[Run, Any, Event], None]]] = {
    FinishItem: _finish,
    FireTimer: _fire,
    Deliver: _deliver,
    Proceed: _proceed,
    Resume: _resume,
    **dict.fromkeys(control.EFFECTS, _steer),
}
