"""What the engine of a case did, as entries of its history: told by its journal.

The journal holds only facts; what followed from them, the engine's orders, is computed by replaying it. The facts alone
need no replay: whoever knows which items have the serials in them can tell the last of very many at once."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from mendflow.core.engine import Case, Replay
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import (
    CallPartner,
    Cancel,
    CancelCalledCase,
    CancelJob,
    CaseMoved,
    CaseReopened,
    Deliver,
    EndCase,
    Event,
    Fact,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    ItemFailed,
    ItemSkipped,
    OfferTask,
    Order,
    RemoveItem,
    RestartItem,
    Resume,
    RunPrimitive,
    RunStyleSheet,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    Suspend,
    WithdrawTask,
    WriteData,
)
from mendflow.core.model.faults import asked_for_by
from mendflow.core.model.ids import CaseId, Instant, ItemId, item_name
from mendflow.core.model.repair_views import HistoryEntry

decode_event = msgspec.json.Decoder(Event).decode

_END_LIFECYCLES = {"completed": "complete", "failed": "pi_abort", "cancelled": "withdraw"}
_COMMAND_WORDS: dict[type, tuple[str, str]] = {
    Suspend: ("suspended", "suspend"),
    Resume: ("continued", "resume"),
    Cancel: ("removed", "withdraw"),
    RestartItem: ("restarted", "reassign"),
    ForceComplete: ("force-completed", "manualskip"),
    ForceFail: ("force-failed", "ate_abort"),
    RemoveItem: ("removed", "withdraw"),
    WriteData: ("written", ""),
}
_ORDER_WORDS: dict[type, tuple[str, str]] = {
    SubmitJob: ("submitted", "schedule"),
    OfferTask: ("offered", "schedule"),
    StageFiles: ("staging", "schedule"),
    StartCalledCase: ("called", "start"),
    CallPartner: ("asked", "start"),
    RunPrimitive: ("mending", "start"),
    RunStyleSheet: ("transforming", "start"),
}
_WITHDRAWAL_WORDS: dict[type, tuple[str, str]] = {
    CancelJob: ("cancelled", "withdraw"),
    CancelCalledCase: ("cancelled", "withdraw"),
    WithdrawTask: ("withdrawn", "withdraw"),
}


_ORDERED = frozenset(what for what, _ in (*_ORDER_WORDS.values(), *_WITHDRAWAL_WORDS.values())) | {"skipped"}


def is_order(entry: HistoryEntry) -> bool:
    """Whether it tells what the engine ordered for an item; without these are left what came to the case, and its
    end."""
    return entry.source == "engine" and entry.item is not None and entry.what in _ORDERED


class OutgoingItem(NamedTuple):
    """An order that went out: the item, the word for the kind of order, and the name to show."""

    item: ItemId
    what: str
    name: str


class FactReader:
    """Tells of facts. `items` are those that orders went out for, by serial: what ends another item is not told."""

    def __init__(self, case: CaseId, flow: str, items: Mapping[int, OutgoingItem]) -> None:
        self._id = case
        self._flow_name = flow
        self._items = dict(items)
        self.entries: list[HistoryEntry] = []
        self._cancelled = False  # by a person, who is named there
        self._ends: list[tuple[int, int]] = []  # the place of each entry that ends an item, and the item's serial

    def last_entries(self, last: int, *, brief: bool = False) -> tuple[list[HistoryEntry], list[int]]:
        """The last so many entries, or all, and the serials of the items that these end; `brief`: so many without what
        the engine ordered."""
        many = self._with_orders(last) if brief and last else last
        entries = self.entries[-many:] if many else self.entries
        return [each for each in entries if not (brief and is_order(each))], self.serials_of(many)

    def _with_orders(self, last: int) -> int:
        """How many entries at the end have this many that are no orders; 0, for all, if there are fewer."""
        left = last
        for many, entry in enumerate(reversed(self.entries), 1):
            left -= not is_order(entry)
            if not left:
                return many
        return 0

    def serials_of(self, last: int) -> list[int]:
        """The serials of the items that the last so many entries end."""
        first = bisect_left(self._ends, (len(self.entries) - last, 0)) if last else 0
        return [serial for _, serial in self._ends[first:]]

    def add_end(self, at: Instant, status: str, message: str) -> None:
        """The case is over. That somebody cancelled it was told with who that was."""
        if status == "cancelled" and self._cancelled:
            return
        self._add(at, status, name=self._flow_name, lifecycle=_END_LIFECYCLES[status], message=message)

    def add_fact(self, at: Instant, fact: Fact) -> None:
        match fact:
            case StartCase():
                self._flow_name = str(fact.flow.name)
                self._add(at, "started", name=self._flow_name, lifecycle="start")
            case FinishItem(serial=serial) if serial in self._items:
                self._add_finish(at, fact)
            case Deliver():
                self._add(at, "message", name=fact.channel, lifecycle="complete", message=f"to channel {fact.channel}")
            case FireTimer(serial=serial):
                self._add(at, "timer", name="timer", lifecycle="complete", message=f"timer {serial}")
            case CaseMoved(server=server):
                self._add(at, "moved", name=self._flow_name, lifecycle="", message=f"server {server} goes on with it")
            case CaseReopened(by=by):
                self._add_reopening(at, by)
            case _ if type(fact) in _COMMAND_WORDS:
                self._add_command(at, fact)

    def _add_reopening(self, at: Instant, by: str) -> None:
        if self.entries and self.entries[-1].what == "reopened":
            self.entries.pop()  # it was not written to its end
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="person",
                what="reopened",
                name=self._flow_name,
                lifecycle="resume",
                by=by,
                message="it goes on from where it stood",
            )
        )

    def _add_finish(self, at: Instant, fact: FinishItem) -> None:
        out, fault = self._items[fact.serial], fact.outcome.fault
        self._ends.append((len(self.entries), fact.serial))
        if fault is not None:
            self._add(at, "failed", name=out.name, item=out.item, lifecycle="ate_abort", message=fault.message)
            return
        cached = f"cached from {fact.outcome.cached_from}" if fact.outcome.cached_from else ""
        what = {"staging": "staged", "mending": "mended", "transforming": "transformed"}.get(out.what, "completed")
        self._add(at, what, name=out.name, item=out.item, lifecycle="complete", message=cached)

    def _add_command(self, at: Instant, fact: Fact) -> None:
        what, lifecycle = _COMMAND_WORDS[type(fact)]
        by, item, who = getattr(fact, "by", ""), getattr(fact, "item", None), getattr(fact, "who", "")
        message = getattr(fact, "reason", "")
        if who and message in (asked_for_by(who), f"removed by {who}"):  # as it was said before
            message = ""
        if who and isinstance(fact, Cancel):
            what, self._cancelled = "cancelled", True
        if isinstance(fact, ForceFail):
            message = fact.fault.message
        if isinstance(fact, WriteData):
            message = ", ".join(fact.values)
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="service" if by else "person",
                what=what,
                name=item_name(item) if item else self._flow_name,
                item=item,
                lifecycle=lifecycle,
                by=by.rpartition("/")[0] or who,
                message=message,
            )
        )

    def _add(
        self,
        at: Instant,
        what: str,
        *,
        name: str = "",
        item: ItemId | None = None,
        lifecycle: str = "",
        message: str = "",
        element: str = "",
    ) -> None:
        self.entries.append(
            HistoryEntry(
                at=at,
                case=self._id,
                source="engine",
                what=what,
                name=name or (item_name(item) if item else ""),
                item=item,
                lifecycle=lifecycle,
                message=message,
                element=element,
            )
        )


class JournalReader(FactReader):
    """Replays the journal and records the orders of the engine, and the events that it got."""

    def __init__(self, case: CaseId) -> None:
        super().__init__(case, "", {})
        self._replay = Replay()

    @property
    def _case(self) -> Case:
        return self._replay.case

    def take(self, entry: bytes) -> None:
        """The next entry of the journal."""
        event = decode_event(entry)
        self.add_fact(event.at, event.fact)
        for order in self._replay.take(event):
            self._add_order(event.at, order)

    def _add_order(self, at: Instant, order: Order) -> None:
        if isinstance(order, EndCase):
            self.add_end(at, order.status, order.fault.message if order.fault else "")
        elif isinstance(order, ItemSkipped):
            what, lifecycle = ("cancelled", "withdraw") if order.cancelled else ("skipped", "autoskip")
            self._add(at, what, item=order.item, lifecycle=lifecycle, message=order.reason, element=order.element)
        elif isinstance(order, ItemFailed):
            message = order.fault.message
            self._add(at, "failed", item=order.item, lifecycle="ate_abort", message=message, element=order.element)
        elif type(order) in _ORDER_WORDS:
            self._add_outgoing(at, order)
        elif type(order) in _WITHDRAWAL_WORDS and (known := self._items.get(getattr(order, "serial", 0))):
            what, lifecycle = _WITHDRAWAL_WORDS[type(order)]
            self._add(at, what, name=known.name, item=known.item, lifecycle=lifecycle)

    def _add_outgoing(self, at: Instant, order: Order) -> None:
        what, lifecycle = _ORDER_WORDS[type(order)]
        item = order.spec.item if isinstance(order, SubmitJob) else getattr(order, "item", ItemId(""))
        name = order.do.value if isinstance(order, RunPrimitive) else item_name(item)
        self._items[getattr(order, "serial", 0)] = OutgoingItem(item, what, name)
        element = element_of(self._case, getattr(order, "serial", 0))
        self._add(at, what, name=name, item=item, lifecycle=lifecycle, message=_order_text(order), element=element)


def _order_text(order: Order) -> str:
    if isinstance(order, RunPrimitive):
        about = f" {order.about}" if order.about else ""
        return f"{order.do.value} {order.target}{about}"
    if isinstance(order, StartCalledCase):
        return order.name
    if isinstance(order, OfferTask):
        return f"to {order.role}"
    if isinstance(order, CallPartner):
        return f"{order.operation} of {order.partner}"
    if isinstance(order, RunStyleSheet):
        return f"by {order.sheet}"
    return ""
