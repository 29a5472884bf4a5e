"""Cases that other cases call: a flow by its name, one that came along, or one that the rules choose.

A called case has its caller's id and the call's serial for its own, so an order that is given again finds it. Its end
is the end of the call."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from mendflow.core.engine import Stale
from mendflow.core.engine.messages import Cancel, CancelCalled, StartCalled
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.problems import Mistake, NotFound, StoreUnavailable
from mendflow.services.base.background_tasks import Soon
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows, demand_no_message
from mendflow.services.cases.live_case import CaseDocument, LiveCase, name_of

NOT_CALLED = "callFailed"
"""The fault of a call that no case came of."""

GONE_ON = "the case that called it went on without it"

Finished = Callable[[CaseId, int, Outcome], Coroutine[Any, Any, None]]


LEVELS_MAX = 100


class Selects(Protocol):
    """Chooses the worklet for a call that leaves it to the rules."""

    async def select(self, live: LiveCase, order: StartCalled) -> Flow:
        """Raises a Mistake if no rule holds."""
        ...

    def not_begun(self, case: CaseId, serial: int, reason: str) -> None:
        """No case came of the call after all: if a worklet was chosen for it, nothing follows from that."""
        ...


class CalledCases:
    def __init__(self, manager: FlowManager, flows: Flows, ledger: Ledger, finished: Finished, hub: Hub) -> None:
        self._manager = manager
        self._flows = flows
        self._finished = finished
        self._hub = hub
        self._soon = Soon(ledger)

    async def stop(self) -> None:
        await self._soon.stop()

    async def resume(self, cases: Iterable[LiveCase]) -> None:
        """After these cases were taken up: cancel those whose callers went on without them, if a crash came in
        between."""
        for called in cases:
            document = called.document
            if document.parent is None or document.parent_item is None or not document.live:
                continue
            caller = self._manager.live.get(document.parent)
            if caller is None or document.parent_serial not in caller.case.index.serials:
                await self._cancel(called.id, GONE_ON)

    async def start(self, live: LiveCase, order: StartCalled, again: bool) -> None:
        live.move(order.serial, name_of(order.item), "call", "running")
        id = CaseId(f"{live.id}.{order.serial}")
        if again and (document := await self._manager.document(id)) is not None:
            if not document.live:
                self._soon.do(self._finished(live.id, order.serial, outcome_of(document)))
                return
            if id in self._manager.live:
                return
        self._soon.do(self._begin(live, order, id))

    async def _begin(self, live: LiveCase, order: StartCalled, id: CaseId) -> None:
        try:
            demand_shallow(live, order)
            flow = await self._flow(live, order)
            demand_no_message(flow)
            if live.id in self._manager.live and order.serial in live.case.index.serials:
                await self.begin(live, order, id, flow)
            else:
                self._not_begun(live, order, "the call was given up before its case began")
        except StoreUnavailable:
            raise  # it is no mistake of the call
        except Mistake as mistake:
            self._not_begun(live, order, mistake.message)
            fault = Fault(name=NOT_CALLED, category=Category.INPUT, message=mistake.message)
            await self._finished(live.id, order.serial, Outcome(fault=fault))

    async def _flow(self, live: LiveCase, order: StartCalled) -> Flow:
        if order.flow is not None:
            return order.flow
        selects = self._hub.provider(Selects)
        if order.name or selects is None:
            return (await self._flows.find(order.name))[0]
        return await selects.select(live, order)

    def _not_begun(self, live: LiveCase, order: StartCalled, reason: str) -> None:
        selects = self._hub.provider(Selects)
        if selects is not None:
            selects.not_begun(live.id, order.serial, reason)

    async def begin(self, live: LiveCase, order: StartCalled, id: CaseId, flow: Flow) -> None:
        """Start a case whose end is the end of the caller's item. If the caller is run again, the called case takes
        over from the one that the same item called then; if there was none, its jobs say that."""
        earlier = await self._earlier(live, order)
        document = CaseDocument(
            id=id,
            flow=flow.name,
            digest=self._flows.digest(flow),
            inputs=order.inputs,
            parent=live.id,
            parent_serial=order.serial,
            parent_item=order.item,
            owner=live.document.owner,
            rerun_of=earlier or live.document.rerun_of,
        )
        await self._manager.begin(document, flow, await self._manager.jobs_of(earlier) if earlier else {})

    async def _earlier(self, live: LiveCase, order: StartCalled) -> CaseId | None:
        if live.document.rerun_of is None:
            return None
        if live.earlier_calls is None:
            called = await self._manager.called_by(live.document.rerun_of)
            live.earlier_calls = {item: document.id for item, document in called.items()}
        return live.earlier_calls.get(order.item)

    async def cancel(self, live: LiveCase, order: CancelCalled, _again: bool) -> None:
        if (known := live.states.get(order.serial)) is not None:
            live.move(order.serial, known[0], known[1], "cancelled")
        reason = order.reason or GONE_ON
        self._soon.do(self._cancel(CaseId(f"{live.id}.{order.serial}"), reason))

    async def _cancel(self, case: CaseId, reason: str) -> None:
        try:
            await self._manager.command(case, Cancel(reason=reason))
        except (NotFound, Stale):
            pass  # it is over already


def demand_shallow(live: LiveCase, order: StartCalled) -> None:
    """Calls within calls end somewhere: a flow that calls itself for ever would fill the memory. Each level adds a
    dot to the id of the case."""
    if live.id.count(".") >= LEVELS_MAX:
        raise Mistake(
            f"{order.item} would be a call {LEVELS_MAX} levels deep; does a flow call itself without end?"
            " Let a condition stop it, or make a loop of it"
        )


def outcome_of(document: CaseDocument) -> Outcome:
    """What a called case leaves to its caller."""
    if document.status == "completed":
        return Outcome(outputs=document.outputs)
    if document.fault is not None:
        return Outcome(fault=document.fault)
    words = f"the called case {document.id} was {document.status}"
    return Outcome(fault=Fault(name="cancelled", category=Category.CANCELLED, message=words))
