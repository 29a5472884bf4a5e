"""Messages for the administrator, in a stream: failures of forgotten jobs, lost pilots, refused reports."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.views import ChangeEvent
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

NOTICES = "notices"
NO_CASE = CaseId("")
ALERT_RAISED = "raised"
"""The state in an event that an alert was raised: the alert itself is a document."""
ALERT_CLOSED = "closed"
ALERT_SEEN = "seen"
"""The states in an event that an alert is over, or was acknowledged and lasts; its message is the alert's id."""
ALERT_CHANGES: Final = frozenset({ALERT_CLOSED, ALERT_SEEN})
PAGE = 500


class Notice(ChangeEvent, frozen=True):
    """What tells of no case is for members of the project, if it has one, and else for administrators alone."""

    project: str = ""


_decode = msgspec.json.Decoder(Notice).decode


class Notices:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, events: EventStream) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events

    async def start(self) -> None:
        self._ledger.reaches(NOTICES, await self._store.length(NOTICES))

    def post(
        self,
        message: str,
        *,
        case: CaseId = NO_CASE,
        item: ItemId | None = None,
        state: str = "",
        project: str = "",
        is_told: bool = True,
    ) -> None:
        """Unless it `is_told`, those who follow the changes hear that there is something, and not what."""
        now = self._clock.now()
        notice = Notice(0, now, "alert", case, item, state, message, project)
        self._ledger.add(NOTICES, msgspec.json.encode(notice))
        self._events.tell(now, "alert", case, item, state, message if is_told else "")

    def tell_changed(self, alert: str, *, is_open: bool, case: CaseId = NO_CASE, item: ItemId | None = None) -> None:
        """An alert is over, or was seen: who follows the changes shows that at once. It is nothing to keep."""
        self._events.tell(self._clock.now(), "alert", case, item, ALERT_SEEN if is_open else ALERT_CLOSED, alert)

    async def posted(self) -> None:
        """Return when what was posted is on disk."""
        await self._ledger.settled()

    async def latest(self, limit: int) -> list[Notice]:
        """The newest notices, newest first. Their serials are their positions in the stream."""
        await self._ledger.settled()
        return await self._before(await self._store.length(NOTICES), limit)

    async def messages(self, looked_at_max: int) -> AsyncIterator[Notice]:
        """Those that do not say that an alert was raised, newest first; of so many that were posted last."""
        await self._ledger.settled()
        end = await self._store.length(NOTICES)
        oldest = max(0, end - looked_at_max)
        while end > oldest:
            for each in await self._before(end, min(PAGE, end - oldest)):
                if each.state != ALERT_RAISED:
                    yield each
            end -= PAGE

    async def _before(self, end: int, limit: int) -> list[Notice]:
        start = max(0, end - limit)
        entries = await self._store.read(NOTICES, start, end - start)
        return [replace(_decode(entry), serial=place) for place, entry in enumerate(entries, start + 1)][::-1]
