"""Called cases: a case that calls a flow by its name, a flow that was sent along, or one that the rules choose.

The id of a called case is its caller's id and the call's serial, so an order that is repeated finds it. When it ends,
the call ends."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.engine import StaleAnswer, item_order
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import Cancel, CancelCalledCase, StartCalledCase
from mendflow.core.model.domains import ANY_DOMAIN
from mendflow.core.model.errors import NotFound, RequestError, StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.projects import CASES_PER_START
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.case_trees import LiveCaseTable
from mendflow.services.base.cluster import first_case_of
from mendflow.services.base.contracts import SubmissionFailed
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.domain_checks import demand_domains
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows, demand_no_message
from mendflow.services.cases.live_case import ITEM_KIND, CaseDocument, ItemDocument, LiveCase

NOT_CALLED = "callFailed"
"""The fault of a call that started no case."""

CALLER_WENT_ON = "the case that called it went on without it"

Finished = Callable[[CaseId, int, Outcome], Coroutine[Any, Any, None]]


LEVELS_MAX = 100


class WorkletAwaited(Exception):
    """No rule chose a worklet for the call: it waits until a person does."""


class WaitingCalls(Protocol):
    """Starts calls that waited for a person to choose their worklet."""

    def begin_waiting(self, case: CaseId, serial: int) -> None: ...


class CallSelector(Protocol):
    """Chooses the worklet for a call that leaves it to the rules."""

    async def select(self, live: LiveCase, order: StartCalledCase) -> Flow:
        """Raises WorkletAwaited if no rule holds, and a RequestError if the chosen flow does not exist."""
        ...

    def not_begun(self, case: CaseId, serial: int, reason: str) -> None:
        """The call started no case after all: if a worklet was chosen for it, close that decision."""
        ...


class FarCalls(Protocol):
    """Calls whose cases run in another domain."""

    async def take_up(self, key: str) -> bool:
        """Whether the call of this case id was sent before; if it is over, its case is told again."""
        ...

    async def send(self, live: LiveCase, order: StartCalledCase, domain: str, flow: Flow | None) -> None:
        """Send the flow, or, if it is none of ours, the name of one of that domain. Raises a RequestError."""
        ...

    def withdraw(self, live: LiveCase, serial: int, reason: str) -> bool:
        """Whether the call is in another domain; it is stopped there."""
        ...


class CallRouter(Protocol):
    """Says where a call goes that says something of domains."""

    async def domain_for_call(self, live: LiveCase, order: StartCalledCase) -> str:
        """The name of the domain; empty: it stays here. Raises `SubmissionFailed` if it cannot go where it says."""
        ...


class CalledCases:
    """`live` are the cases of this server; one tree of them has `cases_max` at most."""

    def __init__(
        self,
        manager: FlowManager,
        flows: Flows,
        ledger: Ledger,
        finished: Finished,
        hub: Hub,
        live: LiveCaseTable[LiveCase],
        cases_max: int = CASES_PER_START,
    ) -> None:
        self._manager = manager
        self._live = live
        self._cases_max = cases_max
        self._flows = flows
        self._finished = finished
        self._hub = hub
        self._ledger = ledger
        self._background = BackgroundTasks(ledger)
        hub.provide(WaitingCalls, self)
        self.unsent: set[tuple[CaseId, int]] = set()  # calls that could not go to the domain that they name

    async def stop(self) -> None:
        await self._background.stop()

    async def resume(self, cases: Iterable[LiveCase]) -> None:
        """After these cases were loaded: cancel called cases whose callers went on without them, if a crash came in
        between."""
        for called in cases:
            document = called.document
            if document.parent is None or document.parent_item is None or not document.live:
                continue
            caller = self._manager.live.get(document.parent)
            if caller is None or document.parent_serial not in caller.case.index.serials:
                await self._cancel(called.id, CALLER_WENT_ON)

    async def start(self, live: LiveCase, order: StartCalledCase, reissued: bool) -> None:
        live.move(order.serial, item_name(order.item), "call", "running")
        id = CaseId(f"{live.id}.{order.serial}")
        far = self._hub.provider(FarCalls) if order.domain and reissued else None
        if far is not None and await far.take_up(id):
            return
        if reissued and (document := await self._manager.document(id)) is not None:
            if not document.live:
                self._background.start(self._finished(live.id, order.serial, outcome_of(document)))
                return
            if id in self._manager.live:
                return
        self._background.start(self._begin(live, order, id))

    def begin_waiting(self, case: CaseId, serial: int) -> None:
        """A worklet was chosen for a call that waited for that; if the call is over, nothing happens."""
        live = self._manager.live.get(case)
        order = item_order(live.case, serial) if live is not None else None
        if live is not None and isinstance(order, StartCalledCase):
            self._background.start(self._begin(live, order, CaseId(f"{case}.{serial}")))

    async def _begin(self, live: LiveCase, order: StartCalledCase, id: CaseId) -> None:
        try:
            demand_call_depth(live, order)
            if order.domain and await self._sent_away(live, order):
                return
            flow = await self._flow(live, order)
            demand_no_message(flow)
            demand_domains(flow, self._hub)
            if live.id in self._manager.live and order.serial in live.case.index.serials:
                with self.place(id, order.item):
                    await self.begin(live, order, id, flow)
            else:
                self._not_begun(live, order, "the call was given up before its case began")
        except StoreUnavailable:
            raise  # not an error of the call
        except WorkletAwaited:
            pass  # whoever chooses the worklet starts the call
        except RequestError as error:
            self._not_begun(live, order, error.message)
            fault = Fault(name=NOT_CALLED, category=Category.INPUT, message=error.message)
            await self._finished(live.id, order.serial, Outcome(fault=fault))
        except SubmissionFailed as error:
            self.unsent.add((live.id, order.serial))
            self._not_begun(live, order, error.fault.message)
            await self._finished(live.id, order.serial, Outcome(fault=error.fault))

    async def _sent_away(self, live: LiveCase, order: StartCalledCase) -> bool:
        """Whether the call goes to another domain, as it says; one that may go to any may stay here."""
        router, far, domain = self._hub.provider(CallRouter), self._hub.provider(FarCalls), order.domain
        if router is not None:
            domain = await router.domain_for_call(live, order)
        elif domain == ANY_DOMAIN:
            domain = ""
        if not domain:
            return False
        if far is None:
            raise NotFound(not_connected(domain))
        by_name = order.flow is None and order.name
        known = self._flows.of_project(order.name, live.document.project) if by_name else None
        if order.flow is None and not order.name:
            flow: Flow | None = await self._flow(live, order)
        else:
            flow = order.flow or (known.flow if known is not None else None)
        await far.send(live, order, domain, flow)
        return True

    async def _flow(self, live: LiveCase, order: StartCalledCase) -> Flow:
        if order.flow is not None:
            return order.flow
        selects = self._hub.provider(CallSelector)
        if order.name or selects is None:
            return (await self._flows.find(order.name, live.document.project))[0]
        return await selects.select(live, order)

    def _not_begun(self, live: LiveCase, order: StartCalledCase, reason: str) -> None:
        selects = self._hub.provider(CallSelector)
        if selects is not None:
            selects.not_begun(live.id, order.serial, reason)

    @contextmanager
    def place(self, id: CaseId, what: str) -> Iterator[None]:
        """Bound the cases of a tree: a flow that calls itself many times at once would fill the memory. Nothing of a
        call beyond the bound is written."""
        if self._live.in_tree(id) >= self._cases_max and id not in self._live:
            raise RequestError(
                f"{what} would be one case more than the {self._cases_max:,} that {first_case_of(id)} may have at"
                " once, with all that they call; does a flow call itself without end? Let a condition stop it, call"
                " fewer at once (max-parallel), or the server's owner raises it: mendflow serve --cases-per-start N"
            )
        self._live.reserve(id)
        try:
            yield
        finally:
            self._live.release(id)

    async def begin(self, live: LiveCase, order: StartCalledCase, id: CaseId, flow: Flow) -> None:
        """Start a case whose end is the end of the caller's item. If the caller is a re-run, the called case reuses the
        results of the one that the same item called then; if there was none, its jobs record that as the reason."""
        earlier = await self._earlier_call(live, order)
        document = CaseDocument(
            id=id,
            flow=flow.name,
            digest=self._flows.digest(flow),
            inputs=order.inputs,
            parent=live.id,
            parent_serial=order.serial,
            parent_item=order.item,
            parent_element=element_of(live.case, order.serial),
            owner=live.document.owner,
            project=live.document.project,
            rerun_of=earlier or live.document.rerun_of,
            cache="none" if live.runs_again(order.serial) else live.document.cache,
        )
        await self._manager.begin(document, flow, await self._manager.reader.jobs_of(earlier) if earlier else [])

    async def _earlier_call(self, live: LiveCase, order: StartCalledCase) -> CaseId | None:
        if live.document.rerun_of is None:
            return None
        if live.earlier_calls is None:
            called = await self._manager.reader.cases_called_by(live.document.rerun_of)
            live.earlier_calls = {item: document.id for item, document in called.items()}
        return live.earlier_calls.get(order.item)

    async def cancel(self, live: LiveCase, order: CancelCalledCase, _reissued: bool) -> None:
        if (known := live.states.get(order.serial)) is not None:
            live.move(order.serial, known[0], known[1], "cancelled")
        self._background.start(self._end_call(live, order))

    async def _end_call(self, live: LiveCase, order: CancelCalledCase) -> None:
        """End the called case. If it had just ended by itself, its caller does not use what it gave: the call counts as
        cancelled."""
        id, reason = CaseId(f"{live.id}.{order.serial}"), order.reason or CALLER_WENT_ON
        far = self._hub.provider(FarCalls)
        if far is not None and far.withdraw(live, order.serial, reason):
            return
        if await self._cancel(id, reason):
            return
        called = await self._manager.document(id)
        if called is None or called.parent_item is None or called.live or called.status == "cancelled":
            return
        key = f"{live.id}/{called.parent_item}"
        if key in live.noted:
            return  # it was ended by force, and counts as what it was ended as
        noted = ItemDocument(
            case=live.id,
            item=called.parent_item,
            name=item_name(called.parent_item),
            kind="call",
            serial=order.serial,
            state="cancelled",
            place=live.place,
            created_at=called.started_at,
            ended_at=called.ended_at,
            reason=f"case {called.id} had {called.status}, but {reason}",
            element=called.parent_element,
        )
        live.noted.add(key)
        self._ledger.touch(ITEM_KIND, key, noted, last=not live.document.live)

    async def _cancel(self, case: CaseId, reason: str) -> bool:
        """False if it is over already."""
        try:
            await self._manager.command(case, Cancel(reason=reason))
            return True
        except (NotFound, StaleAnswer):
            return False


def demand_call_depth(live: LiveCase, order: StartCalledCase) -> None:
    """Bound the depth of calls: a flow that calls itself for ever would fill the memory. Each level adds a dot to the
    id of the case."""
    if live.id.count(".") >= LEVELS_MAX:
        raise RequestError(
            f"{order.item} would be a call {LEVELS_MAX} levels deep; does a flow call itself without end?"
            " Let a condition stop it, or make a loop of it"
        )


def outcome_of(document: CaseDocument) -> Outcome:
    """The outcome of a called case, for its caller."""
    if document.status == "completed":
        return Outcome(outputs=document.outputs)
    if document.fault is not None:
        return Outcome(fault=document.fault)
    words = f"the called case {document.id} was {document.status}"
    return Outcome(fault=Fault(name="cancelled", category=Category.CANCELLED, message=words))
