"""What the administrator should know, kept in a stream: failures of forgotten jobs, lost pilots, refused reports."""

import msgspec

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.views import Happening
from mendflow.services.contracts import Clock
from mendflow.services.happenings import Happenings
from mendflow.services.ledger import Ledger
from mendflow.stores.contract import Store

NOTICES = "notices"
NO_CASE = CaseId("")
_decode = msgspec.json.Decoder(Happening).decode


class Notices:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, happenings: Happenings) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._happenings = happenings
        self._position = 0

    async def start(self) -> None:
        self._position = await self._store.length(NOTICES)

    def post(self, message: str, *, case: CaseId = NO_CASE, item: ItemId | None = None) -> None:
        now = self._clock.now()
        notice = Happening(serial=self._position + 1, at=now, kind="notice", case=case, item=item, message=message)
        self._ledger.append(NOTICES, self._position, msgspec.json.encode(notice))
        self._position += 1
        self._happenings.tell(now, "notice", case, item, message=message)

    async def latest(self, limit: int) -> list[Happening]:
        """The newest notices, newest first."""
        await self._ledger.settled()
        length = await self._store.length(NOTICES)
        entries = await self._store.read(NOTICES, max(0, length - limit), limit)
        return [_decode(entry) for entry in reversed(entries)]
