"""Items that were ended by force: they count as what they were ended as, whatever became of their job or user task.

When an item is ended by force its order is cancelled, so its job is cancelled, or had failed before; or there was no
order yet. A document of the item, under the serial of the cancelled order, says what the item counts as."""

from typing import Final

from mendflow.core.engine.messages import ItemEnded
from mendflow.core.model.ids import Instant
from mendflow.core.model.views import ItemView
from mendflow.services.cases.live_case import ItemDocument, LiveCase

_FORCED_WORDS: Final = {"completed": "force-completed", "failed": "force-failed", "cancelled": "removed"}
_REPORTED_STATES: Final = ("cancelled", "running", "waiting", "suspended")


def record_end(live: LiveCase, order: ItemEnded, now: Instant) -> ItemDocument | None:
    """Count the item, and return the document to write. An item that was removed while it was under way needs none."""
    if order.state == "cancelled" and live.state_counted(order.serial) in _REPORTED_STATES:
        return None
    live.tally.move(order.name, order.kind, live.take_back(order.serial), "" if order.is_reported else order.state)
    word = _FORCED_WORDS[order.state]
    by = f" by {order.by.rpartition('/')[0]}" if order.by else ""
    return ItemDocument(
        case=live.id,
        item=order.item,
        name=order.name,
        kind=order.kind,
        serial=order.serial,
        state=order.state,
        place=live.place,
        created_at=now,
        ended_at=now,
        fault=order.fault,
        outputs=order.outputs,
        reason=order.reason or f"{word}{by}",
        element=order.element,
    )


def was_forced(item: ItemView) -> bool:
    """Whether the item was forced to complete or to fail."""
    return item.reason.startswith((_FORCED_WORDS["completed"], _FORCED_WORDS["failed"]))
