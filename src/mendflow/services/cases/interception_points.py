"""Interception points: points in the life of cases and items at which the exception service may hold what is about to
happen.

    case-pre    before anything of a case starts         item-pre   before an order for an item goes out
    case-post   before the end of a case is told         item-post  before an outcome that is good counts
    abort       before a failed task, call or staging counts; failed jobs are told of by the proxy
    timeout     before a task that has reached its deadline is taken back

Where a flow has no rules for a point, passing it costs one look-up. Where it has some, the action is held, the service
is asked a moment later, and unless it says to hold, the action continues. Nothing of this is stored here: an order that
was not carried out, or an outcome that the case has not recorded, is repeated after a crash, comes to the same point
under the same id, and the service knows what it decided."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from mendflow.core.engine import find_item, item_of, item_order, live_items
from mendflow.core.engine.messages import (
    EndCase,
    OfferTask,
    Order,
    StageFiles,
    StartCalledCase,
    SubmitJob,
)
from mendflow.core.engine.state import InstancePhase, JobItem, TimedItem
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import CaseId, ItemId, JobId, item_name
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import MetaScheduler
from mendflow.services.base.engine_interfaces import InterfaceX
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.exception_facts import job_facts_of, outcome_facts
from mendflow.services.cases.intercepted_types import (
    InterceptedFlows,
    InterceptedTypes,
    NoInterception,
    RulesChanged,
    event_id,
)
from mendflow.services.cases.live_case import Interception, LiveCase
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.stores.contract import Store

OUTGOING: Final = frozenset({SubmitJob, OfferTask, StartCalledCase, StageFiles})
PARALLEL_MAX: Final = 1_000
"""How many items in parallel to one that timed out are asked about."""

Send = Callable[[LiveCase, Any, bool], Awaitable[None]]
Go = Callable[[], Awaitable[None]]
Facts = Callable[[], dict[str, Value]]


class InterceptionPoints:
    """`watched` are the types of exception that there are rules for, by flow."""

    def __init__(
        self, *, live: Mapping[CaseId, LiveCase], ledger: Ledger, hub: Hub, meta: MetaScheduler, store: Store
    ) -> None:
        self._live = live
        self._ledger = ledger
        self._hub = hub
        self._meta = meta
        self._store = store
        self.watched: InterceptedFlows = NoInterception()
        hub.subscribe(RulesChanged, self._rules_changed)
        self._cases: dict[str, CaseId] = {}
        self._background = BackgroundTasks(ledger)

    @property
    def _service(self) -> InterfaceX | None:
        """The service that decides at these points, if there is one."""
        return self._hub.provider(InterfaceX)

    def _rules_changed(self, change: RulesChanged) -> None:
        self.watched = change.watched

    async def stop(self) -> None:
        await self._background.stop()

    def points(self, live: LiveCase) -> InterceptedTypes:
        """The points at which the case's flow has rules."""
        return self.watched[live.document.flow]

    # Before

    async def before_item(self, live: LiveCase, order: Any, reissued: bool, send: Send) -> bool:
        """Before an order for an item goes out. An item passes this point once, however many orders it gives: a job
        whose files were staged has passed it."""
        instance = item_of(live.case, order.serial)
        if type(order) is SubmitJob and isinstance(instance, JobItem) and instance.needs_staging:
            return False
        if reissued and await self._was_sent(live, order):
            return False
        item = order.spec.item if type(order) is SubmitJob else order.item
        facts = partial(_job_facts, live.owned(order.spec)) if type(order) is SubmitJob else None
        go = partial(_send, live, order, reissued, send)
        self._hold(live, ExceptionType.ITEM_PRE, go, serial=order.serial, item=item, patient=True, facts=facts)
        return True

    async def _was_sent(self, live: LiveCase, order: Order) -> bool:
        """Whether a repeated order had gone out before: then it has passed the point already."""
        match order:
            case SubmitJob():
                try:
                    await self._meta.status(JobId(f"{live.id}/{order.serial}"))
                except NotFound:
                    return False
                return True
            case OfferTask():
                return await self._store.get(TASK_KIND, f"{live.id}/{order.serial}") is not None
            case StartCalledCase():
                return await self._store.get(CASE_KIND, f"{live.id}.{order.serial}") is not None
        return False

    def beginning(self, live: LiveCase, go: Go) -> bool:
        """Before anything of a case starts."""
        root = live.case.instances.get(live.case.root)
        if root is None or root.phase is not InstancePhase.NEW or ExceptionType.CASE_PRE not in self.points(live):
            return False
        self._hold(live, ExceptionType.CASE_PRE, go, patient=True)
        return True

    # After

    def ending(self, live: LiveCase, order: EndCase, go: Go) -> bool:
        """Before the end of a completed case is published."""
        if order.status != "completed" or ExceptionType.CASE_POST not in self.points(live):
            return False
        outputs = order.outputs
        facts: Facts = partial(dict, outcome={"ok": True, "outputs": outputs})
        self._hold(live, ExceptionType.CASE_POST, go, patient=True, facts=facts)
        return True

    def completing(self, live: LiveCase, serial: int, outcome: Outcome, go: Go) -> bool:
        """Before a good outcome counts."""
        instance = item_of(live.case, serial)
        if instance is None or (isinstance(instance, JobItem) and instance.staging):
            return False
        facts: Facts = partial(dict, outcome=outcome_facts(outcome))
        self._hold(live, ExceptionType.ITEM_POST, go, serial=serial, item=instance.item, facts=facts, outcome=outcome)
        return True

    def failing(self, live: LiveCase, serial: int, outcome: Outcome, go: Go) -> bool:
        """Before the failure of a task, a call or a staging counts."""
        fault = outcome.fault
        instance = item_of(live.case, serial)
        if fault is None or fault.category is Category.CANCELLED or instance is None:
            return False
        if self._service is None:
            return False
        facts: Facts = partial(dict, outcome=outcome_facts(outcome))
        self._hold(live, ExceptionType.ABORT, go, serial=serial, item=instance.item, facts=facts, fault=fault)
        return True

    def before_timeout(self, live: LiveCase, timer: int, go: Go) -> bool:
        """Before a user task that has reached its deadline is withdrawn. The rules of the items that run in parallel
        are asked too."""
        instance = item_of(live.case, timer)
        if not isinstance(instance, TimedItem) or instance.phase is not InstancePhase.RUNNING or not instance.serial:
            return False
        self._hold(
            live,
            ExceptionType.TIMEOUT,
            go,
            serial=instance.serial,
            item=instance.item,
            facts=partial(dict, timed_out=instance.item),
        )
        self._background.start(self.notify_parallel_items(live, instance.item, f"{live.id}/{instance.serial}"))
        return True

    async def notify_parallel_items(self, live: LiveCase, item: ItemId, stem: str) -> None:
        """Ask the rules of every item that runs in parallel with one that timed out."""
        service = self._service
        beside = [each for each in live_items(live.case) if each.item != item][:PARALLEL_MAX]
        for each in beside:
            if service is None or find_item(live.case, each.item) is None:
                continue
            event = ExceptionEvent(
                id=f"{stem}/{ExceptionType.TIMEOUT.value}/{each.item}",
                type=ExceptionType.TIMEOUT,
                case=live.id,
                flow=live.document.flow,
                item=each.item,
                task=item_name(each.item),
                serial=each.serial,
                facts={"timed_out": item},
            )
            await service.tell(event)

    # What is held

    def _hold(
        self,
        live: LiveCase,
        type: ExceptionType,
        go: Callable[[], Awaitable[None]],
        *,
        serial: int = 0,
        item: ItemId | None = None,
        patient: bool = False,
        facts: Callable[[], dict[str, Value]] | None = None,
        outcome: Outcome | None = None,
        **more: Any,
    ) -> None:
        """Hold an action until the service has decided about it."""
        event = ExceptionEvent(
            id=event_id(live.id, serial, type, reopened=live.document.reopened),
            type=type,
            case=live.id,
            flow=live.document.flow,
            item=item,
            task=item_name(item) if item else "",
            serial=serial,
            facts=facts() if facts is not None else {},
            **more,
        )
        live.held[event.id] = Interception(event.id, item, go, patient=patient, outcome=outcome)
        self._cases[event.id] = live.id
        self._background.start(self._ask(event))

    async def _ask(self, event: ExceptionEvent) -> None:
        service = self._service
        assert service is not None, "intercepted flows have a service to ask"
        with self._ledger.atomic():
            if not await service.tell(event):
                await self.release(event.id)

    async def release(self, event: str) -> None:
        """Continue an action that was held; if its item or case is suspended, as soon as that ends."""
        live = self._live.get(self._cases.get(event, CaseId("")))
        held = live.held.get(event) if live is not None else None
        if live is None or held is None:
            self._cases.pop(event, None)
            return
        held.released = True
        await self._go(live, held)

    def forget(self, live: LiveCase) -> None:
        """The case is over: drop the actions that it held."""
        for event in live.held:
            self._cases.pop(event, None)
        live.held.clear()

    async def recheck(self, live: LiveCase) -> None:
        """The case has changed: perhaps an action that was released can continue now."""
        for held in list(live.held.values()):
            if held.released:
                await self._go(live, held)

    async def _go(self, live: LiveCase, held: Interception) -> None:
        if held.patient and is_suspended(live, held.item):
            return
        if live.held.pop(held.event, None) is not None:
            self._cases.pop(held.event, None)
            await held.go()


async def _send(live: LiveCase, order: Any, reissued: bool, send: Send) -> None:
    """Send the order with its current values: rules may have written values into its item. An order that is no longer
    wanted is not sent."""
    current = item_order(live.case, order.serial)
    if current is not None:
        await send(live, current, reissued)


def _job_facts(spec: JobSpec) -> dict[str, Value]:
    return {"job": job_facts_of(spec)}


def is_suspended(live: LiveCase, item: ItemId | None) -> bool:
    """Whether the item, or the whole case, is suspended."""
    if live.case.over:
        return live.document.ending is not None and bool(live.document.ending.holders)
    if live.case.status == "suspended":
        return True
    found = find_item(live.case, item) if item else None
    return found is not None and found.suspended
