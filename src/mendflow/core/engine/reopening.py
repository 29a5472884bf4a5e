"""Reopening: a case that failed goes on from where it stood.

The state of a case that is over has been torn down, but its journal has everything. So the case is played again without
the facts that it failed by, and whoever plays a journal does the same. That is allowed only if nothing else would have
gone otherwise: every other fact must give the same orders as it did. Where a handler ran, or a path for failures, it
would not, and the case has to be run again as another one."""

from collections.abc import Container, Sequence
from typing import Final

import msgspec

from mendflow.core.engine.evolve import evolve
from mendflow.core.engine.messages import (
    CancelCalledCase,
    CancelJob,
    CaseReopened,
    DropTimer,
    EndCase,
    Event,
    FinishItem,
    ItemDone,
    ItemEnded,
    ItemFailed,
    ItemSkipped,
    MarkCompensated,
    Order,
    WithdrawTask,
)
from mendflow.core.engine.outstanding_orders import LiveItem, live_items
from mendflow.core.engine.state import Case
from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import ItemId

_ENDS: Final = (CancelJob, CancelCalledCase, WithdrawTask, DropTimer, EndCase, ItemSkipped, ItemFailed, ItemEnded)
"""Orders that take something back, or tell of an end: what is played without a failure need not give them."""

_NOTED: Final = (ItemSkipped, ItemFailed, ItemDone, ItemEnded)
"""Orders that leave a document of an item."""


class Reopening(msgspec.Struct, frozen=True, kw_only=True):
    """How a case can be reopened. `failed` are the items whose failures count no more; `restarted` were cancelled when
    the case ended; `forgotten` are items that were told to be skipped, or to have failed, and may still begin."""

    void: tuple[int, ...]
    failed: tuple[LiveItem, ...]
    restarted: tuple[LiveItem, ...]
    forgotten: tuple[ItemId, ...]
    length: int

    def fact(self, by: str, *, also: Sequence[ItemId] = ()) -> CaseReopened:
        """`also` are failed items that begin again."""
        return CaseReopened(void=self.void, restarted=(*(each.item for each in self.restarted), *also), by=by)


class Replay:
    """A journal played entry by entry. Where the case was reopened, it is played again without what counts no more."""

    def __init__(self) -> None:
        self.case = Case.blank()
        self._events: list[Event] = []

    def take(self, event: Event) -> list[Order]:
        if isinstance(event.fact, CaseReopened):
            self.case = play(self._events, event.fact.void)
        self._events.append(event)
        return evolve(self.case, event)


def play(events: Sequence[Event], void: Container[int]) -> Case:
    """The case after these entries of its journal, without those at the places `void`."""
    case = Case.blank()
    for place, event in enumerate(events):
        if place not in void:
            evolve(case, event)
    case.position = len(events)
    return case


def plan_reopening(events: Sequence[Event]) -> Reopening:
    """How the case of this journal can go on. Refused, with the reason, if it cannot. A reopening that nothing follows
    was not written to its end: the case is as it was before, and that entry counts no more."""
    length = len(events)
    while events and isinstance(events[-1].fact, CaseReopened):
        events = events[:-1]
    unfinished = range(len(events), length)
    before = next((each.fact.void for each in reversed(events) if isinstance(each.fact, CaseReopened)), ())
    case, told, failures = _told_by(events, set(before))
    if case.status != "failed":
        raise Conflict(f"case {case.id} has not failed: it is {case.status}", case=case.id)
    if case.flow is not None and case.flow.xml is not None:
        raise Conflict(f"case {case.id} is a BPEL process, whose partners were told of its end; run it again")
    if any(isinstance(event.fact, MarkCompensated) for event in events):
        raise Conflict(f"what case {case.id} had completed was undone; run it again", case=case.id)
    if not any(_is_failure(event) for event in events):
        raise Conflict(f"case {case.id} failed by itself, not by an item; correct its flow, and run it again")
    for chosen in dict.fromkeys((tuple(failures), tuple(failures[-1:]))) if failures else ():
        void = {*before, *chosen}
        again, told_again, _ = _told_by(events, void)
        serials = [fact.serial for place in chosen if isinstance(fact := events[place].fact, FinishItem)]
        if not again.over and _gave_the_same(told, told_again, void):
            return _reopening(again, serials, {*void, *unfinished}, told, told_again, length)
    raise Conflict(
        f"case {case.id} has gone on after its failure: what it did then cannot be taken back; run it again",
        case=case.id,
    )


def _told_by(events: Sequence[Event], void: Container[int]) -> tuple[Case, dict[int, list[Order]], list[int]]:
    """The case, the orders that each fact gave, and the places of failures that gave nothing else to do."""
    case, told = Case.blank(), dict[int, list[Order]]()
    failures: list[int] = []
    for place, event in enumerate(events):
        if place in void:
            continue
        fact, serial = event.fact, case.last_serial
        failed = isinstance(fact, FinishItem) and _is_failure(event) and fact.serial in case.index.serials
        told[place] = evolve(case, event)
        if failed and case.last_serial == serial:
            failures.append(place)
    case.position = len(events)
    return case, told, failures


def _is_failure(event: Event) -> bool:
    return isinstance(event.fact, FinishItem) and event.fact.outcome.fault is not None


def _gave_the_same(told: dict[int, list[Order]], told_again: dict[int, list[Order]], void: Container[int]) -> bool:
    """Whether every fact that still counts gave the same orders to the world as it did."""
    return all(
        [order for order in orders if not isinstance(order, _ENDS)]
        == [order for order in told_again[place] if not isinstance(order, _ENDS)]
        for place, orders in told.items()
        if place not in void
    )


def _reopening(
    case: Case,
    serials: Sequence[int],
    void: set[int],
    told: dict[int, list[Order]],
    told_again: dict[int, list[Order]],
    length: int,
) -> Reopening:
    live = [each for each in live_items(case) if each.serial]
    failed = tuple(each for each in live if each.serial in serials)
    noted, still = (
        {order.item for orders in each.values() for order in orders if isinstance(order, _NOTED)}
        for each in (told, told_again)
    )
    return Reopening(
        void=tuple(sorted(void)),
        failed=failed,
        restarted=tuple(each for each in live if each.serial not in serials),
        forgotten=tuple(sorted(noted - still)),
        length=length,
    )
