"""The events of a case for a listener that has missed some, made from the present state of the case: after a restart
nobody knows which events were sent last. Every present state is sent again; states that came and went in between are
not."""

from collections.abc import AsyncIterator

from mendflow.core.model.views import ITEM_END_STATES, ChangeEvent, ItemView
from mendflow.services.base.events import SERIALS_PER_MS, EventStream
from mendflow.services.cases.live_case import CaseDocument

SLACK_MS = 2_000
"""An item's times are by the clock of the pilot that ran it, and may be a little behind the server's."""


async def listen(
    stream: EventStream, document: CaseDocument, rows: AsyncIterator[ItemView], after: int, kind: str
) -> AsyncIterator[ChangeEvent]:
    """Events of one case from the given serial on; `rows` are its items. Ends with the case."""
    id, over = document.id, not document.live
    if after and not stream.covers_since(id, after) and kind in ("", "item"):
        async for event in _items_since(rows, after):
            yield event
    ended = stream.has_ended(id)
    async for event in stream.listen(id, after, kind=kind, over=over):
        yield event
    if over and not ended and kind in ("", "case"):
        yield _end_event(document, after)


async def _items_since(rows: AsyncIterator[ItemView], after: int) -> AsyncIterator[ChangeEvent]:
    """The state of each item that may have changed after this serial."""
    since = after // SERIALS_PER_MS - SLACK_MS
    async for row in rows:
        if row.state not in ITEM_END_STATES or max(row.ended_at, row.created_at) >= since:
            at = row.ended_at or row.created_at
            yield ChangeEvent(serial=after, at=at, kind="item", case=row.case, item=row.item, state=row.state)


def _end_event(document: CaseDocument, after: int) -> ChangeEvent:
    """The last event of any case."""
    return ChangeEvent(
        serial=max(after, document.ended_at * SERIALS_PER_MS),
        at=document.ended_at,
        kind="case",
        case=document.id,
        state=document.status,
        message=document.fault.message if document.fault is not None else "",
    )
