"""Ends of items that people see in lists, though no job or user task of theirs tells of it: they were skipped, failed
before they were started, were ended by force, or are no work of anybody."""

from mendflow.core.engine.messages import ItemDone, ItemEnded, ItemFailed, ItemSkipped
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import ItemId, item_name
from mendflow.core.model.views import ItemState
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases import forced_items
from mendflow.services.cases.facts import RecoveryHooks
from mendflow.services.cases.live_case import ITEM_KIND, ItemDocument, LiveCase


class ItemEnds:
    """Writes the documents of such items; each method carries out one kind of order."""

    def __init__(
        self, ledger: Ledger, clock: Clock, events: EventStream, hub: Hub, background: BackgroundTasks
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._hub = hub
        self._background = background

    async def skipped(self, live: LiveCase, order: ItemSkipped, reissued: bool) -> None:
        self._note(live, order, "cancelled" if order.cancelled else "skipped", reason=order.reason)

    async def done(self, live: LiveCase, order: ItemDone, reissued: bool) -> None:
        """Write the item's document for lists of items; it is not work, so it is not counted, unless it was mended."""
        name, id, at = item_name(order.item), f"{live.id}/{order.item}", self._clock.now()
        if order.kind == "invoke" and order.fault is None and not reissued:
            live.count_call(order.item, name)
        state: ItemState = "completed" if order.fault is None else "failed"
        done = ItemDocument(
            case=live.id, item=order.item, name=name, kind=order.kind, serial=0, state=state, place=live.place
        )
        done.ended_at, done.outputs, done.fault = at, order.outputs, order.fault
        live.noted.add(id)
        self._ledger.touch(ITEM_KIND, id, done)
        message = order.fault.message if order.fault else ""
        self._events.tell(at, "item", live.id, order.item, state=state, message=message)

    async def forced(self, live: LiveCase, order: ItemEnded, reissued: bool) -> None:
        """It was ended by force."""
        noted = forced_items.record_end(live, order, self._clock.now())
        if noted is not None:
            id = f"{live.id}/{noted.item}"
            live.noted.add(id)
            self._ledger.touch(ITEM_KIND, id, noted)
            self._events.tell(noted.ended_at, "item", live.id, noted.item, noted.state, noted.reason)

    async def failed_early(self, live: LiveCase, order: ItemFailed, reissued: bool) -> None:
        self._note(live, order, "failed", fault=order.fault)
        recovery = self._hub.provider(RecoveryHooks) if order.early else None
        if recovery is not None:
            self._background.start(recovery.item_failed_early(live, order))

    def _note(
        self,
        live: LiveCase,
        order: ItemSkipped | ItemFailed,
        state: ItemState,
        *,
        reason: str = "",
        fault: Fault | None = None,
    ) -> None:
        """Write a document for an item that was never started, or whose result is not used, so that people see it."""
        now, name = self._clock.now(), item_name(order.item)
        serial = order.serial if isinstance(order, ItemSkipped) else 0
        live.tally.move(name, order.kind, live.take_back(serial), state)
        noted = ItemDocument(
            case=live.id,
            item=order.item,
            name=name,
            kind=order.kind,
            serial=serial,
            state=state,
            place=live.place,
            created_at=now,
            ended_at=now,
            reason=reason,
            fault=fault,
            element=order.element,
        )
        live.noted.add(f"{live.id}/{order.item}")
        self._ledger.touch(ITEM_KIND, f"{live.id}/{order.item}", noted)
        message = fault.message if fault else reason
        self._events.tell(now, "item", live.id, ItemId(order.item), state=state, message=message)
