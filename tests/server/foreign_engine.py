"""A small engine of another system: it knows sequences of items and nothing of exceptions.

It tells the service of each point over HTTP, holds what it is told to hold, and does what it is ordered."""

import asyncio
from collections.abc import Sequence

import msgspec

from mendflow.client import Client
from mendflow.core.model.engine_views import EngineOrder
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value

WAIT_MS = 5_000


class ForeignCase:
    def __init__(self, id: str, flow: str, items: Sequence[str], data: dict[str, Value]) -> None:
        self.id = id
        self.flow = flow
        self.items = list(items)
        self.data = data
        self.status = "running"
        self.story: list[str] = []
        self.suspended = asyncio.Event()
        self.free = asyncio.Event()
        self.free.set()


class ForeignEngine:
    """Its cases are run by `run`; `serve` does what the service orders until it is cancelled."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.cases: dict[str, ForeignCase] = {}
        self.done: list[EngineOrder] = []
        self._held: dict[str, asyncio.Event] = {}
        self._told = 0

    async def run(self, case: ForeignCase) -> None:
        """One item after the other; each is told of before it begins and before it ends."""
        self.cases[case.id] = case
        for item in list(case.items):
            for type in (ExceptionType.ITEM_PRE, ExceptionType.ITEM_POST):
                await self._tell(case, item, type)
                await case.free.wait()
                if case.status != "running":
                    case.story.append(case.status)
                    return
                if item not in case.items:
                    break
                case.story.append(f"{type.value} {item}")
        case.status = "completed"
        case.story.append("completed")

    async def _tell(self, case: ForeignCase, item: str, type: ExceptionType) -> None:
        self._told += 1
        event = ExceptionEvent(
            id=f"{self._told}",
            type=type,
            case=CaseId(case.id),
            flow=case.flow,
            item=ItemId(item),
            task=item,
            facts={
                "case": {
                    "status": case.status,
                    "data": case.data,
                    "items": [{"item": item, "task": item, "kind": "task", "status": "waiting", "data": case.data}],
                }
            },
        )
        release = self._held[event.id] = asyncio.Event()
        first = await self.client.engine_event(self.name, event)
        if first.held:
            await self.client.engine_event(self.name, event)  # told again, as after a bad line
            await release.wait()

    async def serve(self) -> None:
        while True:
            for order in await self.client.engine_orders(self.name, wait_ms=WAIT_MS):
                answer = self._do(order)
                self.done.append(order)
                await self.client.engine_done(self.name, order.id, answer)

    def _do(self, order: EngineOrder) -> bool:
        if order.call == "release":
            self._held[str(order.with_["event"])].set()
            return True
        case = self.cases.get(order.case)
        if case is None or case.status != "running":
            return False
        match order.call:
            case "suspend":
                case.free.clear()
                case.suspended.set()
            case "continue":
                case.free.set()
            case "cancel":
                case.status = "cancelled"
                case.free.set()
            case "write":
                case.data.update(msgspec.convert(order.with_["values"], dict[str, Value]))
            case "complete" | "remove":
                case.items.remove(str(order.item))
            case _:
                return False
        case.story.append(order.call)
        return True
