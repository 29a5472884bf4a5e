"""An engine that is not ours, as small as one can be: its cases are lists of steps, done one after another.

It knows nothing of exceptions. It tells of points in the life of its cases, holds when it is told to hold, and does
what interface B orders. Everything goes through the four methods that a foreign engine has."""

from typing import Any

from mendflow.core.model.engine_views import EngineOrder
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.services.recovery.engines.registry import ForeignEngines


class SmallCase:
    def __init__(self, id: str, steps: list[str], data: dict[str, Any]) -> None:
        self.id = id
        self.left = list(steps)
        self.data = data
        self.did: list[str] = []
        self.status = "running"
        self.suspended = False
        self.held: str = ""


class SmallEngine:
    """`fails` are steps that fail the first time."""

    def __init__(self, name: str, service: ForeignEngines, *, flow: str, fails: tuple[str, ...] = ()) -> None:
        self.name = name
        self.flow = flow
        self.service = service
        self.cases: dict[str, SmallCase] = {}
        self.fails = set(fails)
        self.done: list[str] = []

    async def start(self, id: str, steps: list[str], **data: Any) -> SmallCase:
        self.cases[id] = SmallCase(id, steps, data)
        await self.go(self.cases[id])
        return self.cases[id]

    async def go(self, case: SmallCase) -> None:
        """Do steps until there are none, or something stands in the way."""
        while case.left and not case.suspended and not case.held and case.status == "running":
            step = case.left[0]
            if await self._tell(case, ExceptionType.ITEM_PRE, step):
                return
            await self._do(case, step)
        if not case.left and case.status == "running" and not case.held:
            case.status = "completed"
            await self._tell(case, ExceptionType.CASE_POST, "")

    async def _do(self, case: SmallCase, step: str) -> None:
        if step in self.fails:
            self.fails.discard(step)
            fault = Fault(name="broken", category=Category.JOB, message=f"{step} broke")
            if not await self._tell(case, ExceptionType.ABORT, step, fault=fault):
                case.status = "failed"
            return
        case.did.append(step)
        case.left.pop(0)

    async def _tell(self, case: SmallCase, type: ExceptionType, step: str, fault: Fault | None = None) -> bool:
        number = len(case.did)
        event = ExceptionEvent(
            id=f"{case.id}/{step}/{number}/{type.value}",
            type=type,
            case=CaseId(case.id),
            flow=self.flow,
            item=ItemId(step) if step else None,
            task=step,
            serial=number + 1,
            facts={"case": self._facts(case)},
            fault=fault,
        )
        held = await self.service.tell(self.name, event)
        case.held = event.id if held else ""
        return held

    def _facts(self, case: SmallCase) -> dict[str, Any]:
        live = [{"item": step, "task": step, "kind": "step", "status": "live", "serial": 1} for step in case.left[:1]]
        return {"status": case.status, "started_at": 1, "data": case.data, "items": live}

    async def obey(self, wait_ms: int = 0) -> int:
        """Fetch orders and carry them out; how many there were."""
        orders = await self.service.orders(self.name, wait_ms=wait_ms)
        for order in orders:
            answer = await self._carry_out(order)
            self.done.append(order.call)
            self.service.done(self.name, order.id, answer)
        return len(orders)

    async def _carry_out(self, order: EngineOrder) -> bool:
        if order.call == "release":
            case = next((each for each in self.cases.values() if each.held == order.with_["event"]), None)
            if case is None:
                return False
            released, case.held = case.held, ""
            await self._released(case, released)
            return True
        case = self.cases[order.case]
        match order.call:
            case "suspend":
                case.suspended = True
            case "continue":
                case.suspended = False
                await self.go(case)
            case "write":
                case.data.update(order.with_["values"])
            case "cancel":
                case.status = "cancelled"
            case "restart":
                case.held = ""
                await self._do(case, case.left[0])
                await self.go(case)
            case "complete":
                case.did.append(f"{case.left.pop(0)} (forced)")
        return True

    async def _released(self, case: SmallCase, event: str) -> None:
        """Go on with what was held: the step that was about to begin, or the failure."""
        if event.endswith("/abort"):
            case.status = "failed"
        elif case.left and event.endswith("/item-pre") and case.left[0] == event.split("/")[1]:
            await self._do(case, case.left[0])
        await self.go(case)
