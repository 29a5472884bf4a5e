"""An engine of another system, with the same interface as our own.

It reports its cases in events, and fetches its orders: each call of interface B is an order that is stored until the
engine reports that it is done. So neither side loses anything when the other is away, and a repeated order has the same
id, so that the engine carries it out once."""

import asyncio
from typing import Final

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.repair_views import EngineOrder, EngineView
from mendflow.core.model.values import Value
from mendflow.core.model.views import CASE_END_STATES, CaseHold
from mendflow.services.base.cluster import ENGINE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

ENGINE_ORDER_KIND: Final = "engine-order"
CASE_KIND: Final = "engine-case"


NUMBER_DIGITS_MAX = 18


class EngineDocument(msgspec.Struct, kw_only=True):
    name: str
    owner: str = ""
    registered_at: Instant = 0
    orders: int = 0  # how many orders were ever given


class EngineCase(msgspec.Struct, kw_only=True):
    """A case of that engine, as last reported, and who suspends what of it."""

    engine: str
    facts: CaseFacts
    holders: dict[str, list[str]] = {}  # by item; the empty name is the whole case


_decode_case = msgspec.json.Decoder(EngineCase).decode
_decode_order = msgspec.json.Decoder(EngineOrder).decode


class RemoteEngine:
    def __init__(self, document: EngineDocument, store: Store, ledger: Ledger, clock: Clock) -> None:
        self.document = document
        self.seen_at: Instant = 0
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._orders: dict[str, EngineOrder] = {}
        self._cases: dict[CaseId, EngineCase] = {}
        self._answers: dict[str, asyncio.Future[Value]] = {}
        self._orders_arrived = asyncio.Event()

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

    def view(self) -> EngineView:
        document = self.document
        return EngineView(
            name=document.name,
            registered_at=document.registered_at,
            seen_at=self.seen_at,
            waiting=len(self._orders),
            owner=document.owner,
        )

    # Reports of the engine

    def update_case(self, facts: CaseFacts) -> None:
        """Record what the engine reports of a case. A case that is over is forgotten."""
        id = f"{self.name}/{facts.case}"
        if facts.status in CASE_END_STATES:
            if self._cases.pop(facts.case, None) is not None:
                self._ledger.drop(CASE_KIND, id)
            return
        kept = self._cases.get(facts.case)
        if kept is None:
            kept = self._cases[facts.case] = EngineCase(engine=self.name, facts=facts)
        kept.facts = facts
        self._ledger.touch(CASE_KIND, id, kept)

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
        if self._orders.pop(order, None) is not None:
            self._ledger.drop(ENGINE_ORDER_KIND, f"{self.name}/{int(order):010}")
        waiter = self._answers.pop(order, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    # A

    async def flows(self) -> list[str]:
        return sorted({kept.facts.flow for kept in self._cases.values()})

    # B

    async def cases_of(self, flow: str) -> list[CaseId]:
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

    async def write(self, case: CaseId, item: ItemId | None, values: dict[str, Value], *, by: str) -> bool:
        return await self._ask("write", case, item, by, {"values": values})

    async def held_by(self, holder: str, case: CaseId) -> list[CaseHold]:
        kept = self._cases.get(case)
        held = kept.holders.items() if kept is not None else ()
        return [
            CaseHold(item=ItemId(item) if item else None, by=f"exlet {holder}", over=True)
            for item, holders in held
            if holder in holders
        ]

    async def release(self, event: str) -> None:
        """Does not wait for the engine to continue."""
        event = event.removeprefix(f"{self.name}:")
        if all(order.call != "release" or order.with_.get("event") != event for order in self._orders.values()):
            self._add_order("release", CaseId(""), None, {"event": event})

    async def _ask(self, call: str, case: CaseId, item: ItemId | None, by: str, given: dict[str, Value]) -> bool:
        """Give an order and wait until it is done. The same order by the same step is given once."""
        known = (
            order.id
            for order in self._orders.values()
            if (order.call, order.case, order.item, order.with_.get("by")) == (call, case, item, by)
        )
        id = next(known, "") or self._add_order(call, case, item, {"by": by, **given})
        waiter = self._answers.get(id)
        if waiter is None:
            waiter = self._answers[id] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(waiter) is not False

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
            self._ledger.touch(CASE_KIND, f"{self.name}/{case}", kept)
