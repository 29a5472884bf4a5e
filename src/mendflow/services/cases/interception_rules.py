"""Which points there are: what of an order, an outcome or a timer is told to the exception service before it counts.

    case-pre    before anything of a case starts         item-pre   before an order for an item goes out
    case-post   before the end of a case is told         item-post  before an outcome that is good counts
    abort       before a failed task, call or staging counts; failed jobs are told of by the proxy
    timeout     before a task that has reached its deadline is taken back

Each is a question that answers whether the thing was put aside. Where a flow has no rules, the answer is no at the
price of one look-up."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from mendflow.core.engine import find_item, item_order, live_items
from mendflow.core.engine.messages import (
    ContinueLater,
    EndCase,
    OfferTask,
    Order,
    StageFiles,
    StartCalledCase,
    SubmitJob,
)
from mendflow.core.engine.state import InstancePhase, Item, JobItem, TimedItem
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import MetaScheduler
from mendflow.services.cases.interception_points import InterceptedTypes, InterceptionPoints
from mendflow.services.cases.live_case import LiveCase, name_of
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.stores.contract import Store

OUTGOING: Final = frozenset({SubmitJob, OfferTask, StartCalledCase, StageFiles})
PARALLEL_MAX: Final = 1_000
"""How many items in parallel to one that timed out are asked about."""

Send = Callable[[LiveCase, Any, bool], Awaitable[None]]
Go = Callable[[], Awaitable[None]]
Facts = Callable[[], dict[str, Value]]


class InterceptionRules:
    def __init__(self, interception_points: InterceptionPoints, meta: MetaScheduler, store: Store) -> None:
        self._interception_points = interception_points
        self._meta = meta
        self._store = store

    def points(self, live: LiveCase) -> InterceptedTypes:
        """The points at which the case's flow has rules."""
        return self._interception_points.watched[live.document.flow]

    def forget(self, live: LiveCase) -> None:
        self._interception_points.forget(live)

    # Before

    async def before_item(self, live: LiveCase, order: Any, again: bool, send: Send) -> bool:
        """Before an order for an item goes out. An item passes this point once, however many orders it gives: a job
        whose files were staged has passed it."""
        instance = live.case.instances.get(live.case.index.serials.get(order.serial, 0))
        if type(order) is SubmitJob and isinstance(instance, JobItem) and instance.sources:
            return False
        if again and await self._was_sent(live, order):
            return False
        item = order.spec.item if type(order) is SubmitJob else order.item
        facts = partial(_job_facts, live.owned(order.spec)) if type(order) is SubmitJob else None
        go = partial(_send, live, order, again, send)
        self._interception_points.ask(
            live, ExceptionType.ITEM_PRE, go, serial=order.serial, item=item, patient=True, facts=facts
        )
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

    def beginning(self, live: LiveCase, order: ContinueLater, go: Go) -> bool:
        """Before anything of a case starts."""
        root = live.case.instances.get(live.case.root)
        if root is None or root.phase is not InstancePhase.NEW or ExceptionType.CASE_PRE not in self.points(live):
            return False
        self._interception_points.ask(live, ExceptionType.CASE_PRE, go, patient=True)
        return True

    # After

    def ending(self, live: LiveCase, order: EndCase, go: Go) -> bool:
        """Before the end of a completed case is published."""
        if order.status != "completed" or ExceptionType.CASE_POST not in self.points(live):
            return False
        outputs = order.outputs
        facts: Facts = partial(dict, outcome={"ok": True, "outputs": outputs})
        self._interception_points.ask(live, ExceptionType.CASE_POST, go, patient=True, facts=facts)
        return True

    def completing(self, live: LiveCase, serial: int, outcome: Outcome, go: Go) -> bool:
        """Before a good outcome counts."""
        instance = live.case.instances.get(live.case.index.serials.get(serial, 0))
        if not isinstance(instance, Item) or (isinstance(instance, JobItem) and instance.staging):
            return False
        facts: Facts = partial(dict, outcome=outcome_facts(outcome))
        self._interception_points.ask(live, ExceptionType.ITEM_POST, go, serial=serial, item=instance.item, facts=facts)
        return True

    def failing(self, live: LiveCase, serial: int, outcome: Outcome, go: Go) -> bool:
        """Before the failure of a task, a call or a staging counts."""
        fault = outcome.fault
        instance = live.case.instances.get(live.case.index.serials.get(serial, 0))
        if fault is None or fault.category is Category.CANCELLED or not isinstance(instance, Item):
            return False
        if self._interception_points.service is None:
            return False
        facts: Facts = partial(dict, outcome=outcome_facts(outcome))
        self._interception_points.ask(
            live, ExceptionType.ABORT, go, serial=serial, item=instance.item, facts=facts, fault=fault
        )
        return True

    def before_timeout(self, live: LiveCase, timer: int, go: Go) -> bool:
        """Before a user task that has reached its deadline is withdrawn. The rules of the items that run in parallel
        are asked too."""
        instance = live.case.instances.get(live.case.index.serials.get(timer, 0))
        if not isinstance(instance, TimedItem) or instance.phase is not InstancePhase.RUNNING or not instance.serial:
            return False
        self._interception_points.ask(
            live,
            ExceptionType.TIMEOUT,
            go,
            serial=instance.serial,
            item=instance.item,
            facts=partial(dict, timed_out=instance.item),
        )
        self._interception_points.later(self.notify_parallel_items(live, instance.item, f"{live.id}/{instance.serial}"))
        return True

    async def notify_parallel_items(self, live: LiveCase, item: ItemId, stem: str) -> None:
        """Ask the rules of every item that runs in parallel with one that timed out."""
        service = self._interception_points.service
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
                task=name_of(each.item),
                serial=each.serial,
                facts={"timed_out": item},
            )
            await service.tell(event)


async def _send(live: LiveCase, order: Any, again: bool, send: Send) -> None:
    """Send the order with its current values: rules may have written values into its item. An order that is no longer
    wanted is not sent."""
    current = item_order(live.case, order.serial)
    if current is not None:
        await send(live, current, again)


def _job_facts(spec: JobSpec) -> dict[str, Value]:
    return {"job": job_facts_of(spec)}


def job_facts_of(spec: JobSpec) -> dict[str, Value]:
    """The requirements of a job, under the names of the root `job` of contexts."""
    asked: dict[str, Value] = msgspec.structs.asdict(spec.resources)
    asked |= {f"{name}_asked": asked.pop(name) for name in ("site", "system", "machine")}
    asked["hosts_asked"] = list(asked.pop("hosts"))
    asked["avoid_hosts"] = list(spec.resources.avoid_hosts)
    return {
        **asked,
        "command": spec.command or "",
        "expected_ms": spec.expected_ms,
        "priority": spec.priority,
        "owner": spec.owner,
        "retries": spec.retries,
    }


def outcome_facts(outcome: Outcome) -> dict[str, Value]:
    return {"ok": outcome.ok, "outputs": outcome.outputs, "exit_code": outcome.exit_code, "values": outcome.values}
