"""The history of cases of another engine: what it told of them, and which orders it has carried out.

Our own engine's history is computed from its journal. Another engine has its journal elsewhere: here each event that it
tells, and each order that it reports as done, is one entry of a stream, already in the form in which it is shown."""

from typing import Final

import msgspec

from mendflow.core.model.engine_views import EngineOrder
from mendflow.core.model.ids import CaseId, Instant, item_name
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

PAGE_ENTRIES: Final = 5_000

_END_LIFECYCLES: Final = {"completed": "complete", "failed": "pi_abort", "cancelled": "withdraw"}
_EVENT_WORDS: Final = {
    ExceptionType.ITEM_PRE: ("beginning", "schedule"),
    ExceptionType.ITEM_POST: ("completing", "complete"),
    ExceptionType.CASE_PRE: ("beginning", "schedule"),
    ExceptionType.CASE_POST: ("completing", "complete"),
    ExceptionType.ABORT: ("failed", "ate_abort"),
    ExceptionType.TIMEOUT: ("timed out", ""),
    ExceptionType.UNAVAILABLE: ("unavailable", ""),
    ExceptionType.VIOLATION: ("violation", ""),
    ExceptionType.SELECTION: ("called", "start"),
}
"""Triggers are missing: the decision about one tells of it."""

_ORDER_WORDS: Final = {
    "suspend": ("suspended", "suspend"),
    "continue": ("continued", "resume"),
    "cancel": ("removed", "withdraw"),
    "restart": ("restarted", "reassign"),
    "complete": ("force-completed", "manualskip"),
    "fail": ("force-failed", "ate_abort"),
    "remove": ("removed", "withdraw"),
    "write": ("written", ""),
}
_decode = msgspec.json.Decoder(HistoryEntry).decode


class EngineJournal:
    def __init__(self, engine: str, store: Store, ledger: Ledger) -> None:
        self._engine = engine
        self._store = store
        self._ledger = ledger

    def add_start(self, facts: CaseFacts, at: Instant) -> None:
        self._add(
            HistoryEntry(at=at, case=facts.case, source="engine", what="started", name=facts.flow, lifecycle="start")
        )

    def add_end(self, facts: CaseFacts, at: Instant) -> None:
        lifecycle = _END_LIFECYCLES.get(facts.status, "complete")
        self._add(
            HistoryEntry(
                at=at, case=facts.case, source="engine", what=facts.status, name=facts.flow, lifecycle=lifecycle
            )
        )

    def add_event(self, event: ExceptionEvent, at: Instant) -> None:
        if event.type not in _EVENT_WORDS:
            return
        what, lifecycle = _EVENT_WORDS[event.type]
        self._add(
            HistoryEntry(
                at=at,
                case=event.case,
                source="engine",
                what=what,
                name=event.task or (item_name(event.item) if event.item else event.flow),
                item=event.item,
                lifecycle=lifecycle,
                message=event.fault.message if event.fault is not None else "",
            )
        )

    def add_order(self, order: EngineOrder, at: Instant) -> None:
        if order.call not in _ORDER_WORDS:
            return
        what, lifecycle = _ORDER_WORDS[order.call]
        by = str(order.with_.get("by", ""))
        person = by.startswith("person ")
        self._add(
            HistoryEntry(
                at=at,
                case=order.case,
                source="person" if person else "service",
                what=what,
                name=item_name(order.item) if order.item else str(order.case),
                item=order.item,
                lifecycle=lifecycle,
                by=by.split(" ")[1] if person else by.rpartition("/")[0],
                message=str(order.with_.get("reason", "")),
            )
        )

    async def read(self, case: CaseId) -> list[HistoryEntry]:
        found: list[HistoryEntry] = []
        while page := await self._store.read(self._stream(case), len(found), PAGE_ENTRIES):
            found += [_decode(entry) for entry in page]
        return found

    def _add(self, entry: HistoryEntry) -> None:
        self._ledger.add(self._stream(entry.case), msgspec.json.encode(entry))

    def _stream(self, case: CaseId) -> str:
        return f"engine/{self._engine}/{case}"
