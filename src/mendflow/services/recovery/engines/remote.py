"""An engine of another system, with the same interface as our own.

It reports its cases in events, and fetches its orders: each call of interface B is an order that is stored until the
engine reports that it is done. So neither side loses anything when the other is away, and a repeated order has the same
id, so that the engine carries it out once."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

import msgspec

from mendflow.core.model.engine_views import EngineOrder, EngineView
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.values import Value
from mendflow.core.model.views import CASE_END_STATES, CaseHold, CaseStatus, CaseTask
from mendflow.core.query.search_fields import ENGINE_CASE_LIST
from mendflow.services.base.cluster import ENGINE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.engines.engine_journal import EngineJournal
from mendflow.stores.contract import Store

ENGINE_ORDER_KIND: Final = "engine-order"
CASE_KIND: Final = "engine-case"
ENDED_CASE_KIND: Final = "engine-case-ended"
"""Cases that are over are kept under a kind of their own, so that a server that starts need not read them."""

PERSON: Final = "person"
"""The holder of what a person suspended."""

NUMBER_DIGITS_MAX = 18


class EngineDocument(msgspec.Struct, kw_only=True):
    name: str
    owner: str = ""
    project: str = DEFAULT_PROJECT
    registered_at: Instant = 0
    orders: int = 0  # how many orders were ever given


class EngineCase(msgspec.Struct, kw_only=True):
    """A case of that engine, as last reported, and who suspends what of it."""

    engine: str
    facts: CaseFacts
    holders: dict[str, list[str]] = {}  # by item; the empty name is the whole case
    ends: dict[str, str] = {}  # the status that the case ends with when this event is released
    begun_at: Instant = 0  # when it was first told of
    ended_at: Instant = 0
    owner: str = ""

    @property
    def started_at(self) -> Instant:
        """As the engine says, else when it first told of the case."""
        return self.facts.started_at or self.begun_at

    @property
    def status(self) -> CaseStatus:
        """Our word for its status: engines may have others for a case that runs."""
        told = "suspended" if self.is_suspended else self.facts.status
        return cast(CaseStatus, told) if told in {*CASE_END_STATES, "suspended"} else "running"

    @property
    def name(self) -> str:
        """What people call it: the engine's name and its own."""
        return f"{self.engine}:{self.facts.case}"

    @property
    def is_suspended(self) -> bool:
        return bool(self.holders.get(""))


def listed(case: EngineCase, project: str) -> CaseDocument:
    """By what the case is found among this server's own."""
    return CaseDocument(
        id=CaseId(case.name),
        flow=case.facts.flow,
        digest=case.facts.version,
        status=case.status,
        started_at=case.started_at,
        ended_at=case.ended_at,
        inputs=case.facts.data,
        owner=case.owner,
        project=project,
        engine=case.engine,
    )


_decode_case = msgspec.json.Decoder(EngineCase).decode
_decode_order = msgspec.json.Decoder(EngineOrder).decode


class RemoteEngine:
    """`on_end` hears of each case that is over: the engine's name, the case, and its last status."""

    def __init__(
        self,
        document: EngineDocument,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        on_end: Callable[[str, CaseId, str], None] | None = None,
    ) -> None:
        self._on_end = on_end
        self.document = document
        self.seen_at: Instant = 0
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._orders: dict[str, EngineOrder] = {}
        self._cases: dict[CaseId, EngineCase] = {}
        self._listed: dict[CaseId, CaseDocument] = {}  # of live cases: as they are listed now
        self._answers: dict[str, asyncio.Future[Value]] = {}
        self._orders_arrived = asyncio.Event()
        self._journal = EngineJournal(document.name, store, ledger)

    @property
    def name(self) -> str:
        return self.document.name

    async def start(self) -> None:
        async for found in self._store.scan(ENGINE_ORDER_KIND, f"{self.name}/"):
            self._ledger.known(ENGINE_ORDER_KIND, found.id, found.version)
            order = _decode_order(found.body)
            self._orders[order.id] = order
        async for found in self._store.scan(CASE_KIND, f"{self.name}/"):
            self._ledger.known(CASE_KIND, found.id, found.version)
            kept = _decode_case(found.body)
            self._cases[kept.facts.case] = kept
        ids = [f"{self.name}/{case}" for case in self._cases]
        for kind in (ENGINE_CASE_LIST, ENDED_CASE_KIND):  # one of the same name may have ended before
            for found in await self._store.get_many(kind, ids):
                self._ledger.known(kind, found.id, found.version)

    def view(self) -> EngineView:
        document = self.document
        return EngineView(
            name=document.name,
            registered_at=document.registered_at,
            seen_at=self.seen_at,
            waiting=len(self._orders),
            owner=document.owner,
            project=document.project,
        )

    def project_of(self, case: CaseId) -> str:
        return self.document.project

    def open_tasks(self, case: CaseId, item: ItemId | None) -> list[CaseTask]:
        return []

    # Reports of the engine

    async def report(self, facts: CaseFacts) -> None:
        """Record what the engine says of a case. Said to be over, it is."""
        if facts.case not in self._cases:
            if facts.status in CASE_END_STATES:
                return
            await self._begin(facts)
        kept = self._cases[facts.case]
        kept.facts = facts
        if facts.status in CASE_END_STATES:
            self.end(facts.case, facts.status)
        else:
            self._save(kept)

    def _save(self, kept: EngineCase) -> None:
        """Write what is known of a live case, and where it is listed if that is another now."""
        self._ledger.touch(CASE_KIND, f"{self.name}/{kept.facts.case}", kept)
        self._list(kept)

    def _list(self, kept: EngineCase) -> None:
        entry, case = listed(kept, self.document.project), kept.facts.case
        if self._listed.get(case) != entry:
            self._listed[case] = entry
            self._ledger.touch(ENGINE_CASE_LIST, f"{self.name}/{case}", entry, last=bool(kept.ended_at))

    async def _begin(self, facts: CaseFacts) -> None:
        """A case that was not known; perhaps one of the same name is over."""
        await self._ledger.settled()
        before = await self._store.get(ENDED_CASE_KIND, f"{self.name}/{facts.case}")
        if before is not None:
            self._ledger.known(ENDED_CASE_KIND, before.id, before.version)
            if (entry := await self._store.get(ENGINE_CASE_LIST, before.id)) is not None:
                self._ledger.known(ENGINE_CASE_LIST, entry.id, entry.version)
        if facts.case not in self._cases:
            now, owner = self._clock.now(), self.document.owner
            self._cases[facts.case] = EngineCase(engine=self.name, facts=facts, owner=owner, begun_at=now)
            self._journal.add_start(facts, now)

    def add_event(self, event: ExceptionEvent) -> None:
        """Put an event into the history of its case."""
        self._journal.add_event(event, self._clock.now())

    def end_after(self, event: ExceptionEvent, status: str, *, held: bool) -> None:
        """The case is over after this event: now, or, if the event is held, when that is released."""
        kept = self._cases.get(event.case)
        if kept is None:
            return
        if not held:
            self.end(event.case, status)
            return
        kept.ends = {**kept.ends, event.id: status}
        self._save(kept)

    def end(self, case: CaseId, status: str) -> None:
        """The case is over. What is known of it is kept, for those who ask."""
        kept = self._cases.pop(case, None)
        if kept is None:
            return
        kept.facts = msgspec.structs.replace(kept.facts, status=status, items=[])
        kept.ended_at, kept.holders, kept.ends = self._clock.now(), {}, {}
        self._journal.add_end(kept.facts, kept.ended_at)
        self._ledger.drop(CASE_KIND, f"{self.name}/{case}")
        self._ledger.touch(ENDED_CASE_KIND, f"{self.name}/{case}", kept, last=True)
        self._list(kept)
        self._listed.pop(case, None)
        if self._on_end is not None:
            self._on_end(self.name, case, status)

    def live_case(self, case: CaseId) -> EngineCase | None:
        return self._cases.get(case)

    def live_cases(self) -> list[EngineCase]:
        return list(self._cases.values())

    async def find(self, case: CaseId) -> EngineCase | None:
        """A case of this engine, also one that is over."""
        if (live := self._cases.get(case)) is not None:
            return live
        await self._ledger.settled()
        found = await self._store.get(ENDED_CASE_KIND, f"{self.name}/{case}")
        return _decode_case(found.body) if found is not None else None

    async def history(self, case: CaseId) -> list[HistoryEntry]:
        """What the engine told of the case, and which orders it has carried out."""
        await self._ledger.settled()
        return await self._journal.read(case)

    async def orders(self, wait_ms: int) -> list[EngineOrder]:
        """Its open orders, oldest first; held back until there is one, or the time is over."""
        self.seen_at = self._clock.now()
        if not self._orders and wait_ms > 0:
            self._orders_arrived.clear()
            try:
                await asyncio.wait_for(self._orders_arrived.wait(), wait_ms / 1000)
            except TimeoutError:
                pass
        await self._ledger.settled()
        return list(self._orders.values())

    def done(self, order: str, answer: Value) -> None:
        """The engine has carried out an order. Reported twice, it counts once."""
        if not order.isdecimal() or len(order) > NUMBER_DIGITS_MAX or int(order) > self.document.orders:
            raise NotFound(f"engine {self.name} was never given an order {order!r:.40}")
        carried_out = self._orders.pop(order, None)
        if carried_out is not None:
            self._ledger.drop(ENGINE_ORDER_KIND, f"{self.name}/{int(order):010}")
            if answer is not False:
                self._note_done(carried_out)
        waiter = self._answers.pop(order, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _note_done(self, order: EngineOrder) -> None:
        """What follows from an order that was carried out: a case that was cancelled, or whose end was held, is
        over."""
        self._journal.add_order(order, self._clock.now())
        if order.call == "cancel":
            self.end(order.case, "cancelled")
        elif order.call == "release":
            event = str(order.with_.get("event", ""))
            for case in [case for case, kept in self._cases.items() if event in kept.ends]:
                self.end(case, self._cases[case].ends[event])

    # A

    async def flows(self) -> list[str]:
        return sorted({kept.facts.flow for kept in self._cases.values()})

    # B

    async def cases_of(self, flow: str, project: str) -> list[CaseId]:
        """All cases of an engine are of its own project."""
        return [case for case, kept in self._cases.items() if kept.facts.flow == flow]

    async def facts(self, case: CaseId, item: ItemId | None = None) -> CaseFacts | None:
        kept = self._cases.get(case)
        return kept.facts if kept is not None else None

    async def suspended(self, case: CaseId, item: ItemId | None) -> bool:
        kept = self._cases.get(case)
        return kept is not None and bool(kept.holders.get("") or (item and kept.holders.get(item)))

    async def suspend(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool:
        done = bool(self._holders(case, item)) or await self._ask("suspend", case, item, by, {})
        others = [each for each in self._holders(case, item) if each != holder]
        self._hold(case, item, [*others, holder])
        return done

    async def resume(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool:
        if holder not in self._holders(case, item):
            return False
        others = [each for each in self._holders(case, item) if each != holder]
        done = bool(others) or await self._ask("continue", case, item, by, {})
        self._hold(case, item, [each for each in self._holders(case, item) if each != holder])
        return done

    async def cancel(self, case: CaseId, *, reason: str, by: str) -> bool:
        return await self._ask("cancel", case, None, by, {"reason": reason})

    async def restart(
        self, case: CaseId, item: ItemId, *, by: str, values: dict[str, Value] | None = None, level: int = 0
    ) -> bool:
        settings: dict[str, Value] = {"values": values} if values else {}
        return await self._ask("restart", case, item, by, {**settings, "level": level} if level else settings)

    async def complete(self, case: CaseId, item: ItemId, outputs: Value, *, by: str) -> bool:
        return await self._ask("complete", case, item, by, {"outputs": outputs})

    async def fail(self, case: CaseId, item: ItemId, fault: Fault, *, proceed: bool, by: str) -> bool:
        settings: Value = {"fault": msgspec.to_builtins(fault), "proceed": proceed}
        return await self._ask("fail", case, item, by, settings)

    async def remove(self, case: CaseId, item: ItemId, *, by: str) -> bool:
        return await self._ask("remove", case, item, by, {})

    async def write(
        self, case: CaseId, item: ItemId | None, values: dict[str, Value], *, by: str, ended: int = 0
    ) -> bool:
        return await self._ask("write", case, item, by, {"values": values})

    async def held_by(self, holder: str, case: CaseId) -> list[CaseHold]:
        kept = self._cases.get(case)
        held = kept.holders.items() if kept is not None else ()
        return [
            CaseHold(item=ItemId(item) if item else None, by=f"exlet {holder}", over=True)
            for item, holders in held
            if holder in holders
        ]

    def order(self, call: str, case: CaseId, item: ItemId | None, by: str, given: dict[str, Value]) -> None:
        """Order something for a person, without waiting until it is done. The same by the same is ordered once."""
        if not self._known_order(call, case, item, by):
            self._add_order(call, case, item, {"by": by, **given})

    def open_orders(self, case: CaseId) -> list[str]:
        """What it was ordered to do with this case and has not done yet."""
        return [
            f"{order.call} {order.item}" if order.item else order.call
            for order in self._orders.values()
            if order.case == case
        ]

    def hold_for_person(self, case: CaseId, item: ItemId | None, by: str) -> None:
        """A person suspends the case, or the item: the engine is ordered to, and nobody waits for it."""
        held = self._holders(case, item)
        if not held:
            self.order("suspend", case, item, by, {})
        if PERSON not in held:
            self._hold(case, item, [*held, PERSON])

    def free_for_person(self, case: CaseId, item: ItemId | None, by: str) -> bool:
        """A person lets the case, or the item, go on, whoever has suspended it. False if nobody has."""
        if not self._holders(case, item):
            return False
        self._hold(case, item, [])
        self.order("continue", case, item, by, {})
        return True

    async def release(self, event: str) -> None:
        """Does not wait for the engine to continue."""
        event = event.removeprefix(f"{self.name}:")
        if all(order.call != "release" or order.with_.get("event") != event for order in self._orders.values()):
            self._add_order("release", CaseId(""), None, {"event": event})

    async def _ask(self, call: str, case: CaseId, item: ItemId | None, by: str, given: dict[str, Value]) -> bool:
        """Give an order and wait until it is done. The same order by the same step is given once."""
        id = self._known_order(call, case, item, by) or self._add_order(call, case, item, {"by": by, **given})
        waiter = self._answers.get(id)
        if waiter is None:
            waiter = self._answers[id] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(waiter) is not False

    def _known_order(self, call: str, case: CaseId, item: ItemId | None, by: str) -> str:
        """The id of the open order that is the same; empty if there is none."""
        wanted = (call, case, item, by)
        same = (
            order.id
            for order in self._orders.values()
            if (order.call, order.case, order.item, order.with_.get("by")) == wanted
        )
        return next(same, "")

    def _add_order(self, call: str, case: CaseId, item: ItemId | None, given: dict[str, Value]) -> str:
        document = self.document
        document.orders += 1
        order = EngineOrder(id=str(document.orders), call=call, case=case, item=item, with_=given)
        self._ledger.touch(ENGINE_KIND, document.name, document)
        self._ledger.touch(ENGINE_ORDER_KIND, f"{self.name}/{document.orders:010}", order)
        self._orders[order.id] = order
        self._orders_arrived.set()
        return order.id

    def _holders(self, case: CaseId, item: ItemId | None) -> list[str]:
        kept = self._cases.get(case)
        return kept.holders.get(item or "", []) if kept is not None else []

    def _hold(self, case: CaseId, item: ItemId | None, holders: list[str]) -> None:
        if (kept := self._cases.get(case)) is not None:
            kept.holders = {**kept.holders, item or "": holders}
            self._save(kept)
