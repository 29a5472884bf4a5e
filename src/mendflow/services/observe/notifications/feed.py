"""The feed: all notifications in one stream, for clients that were away.

All servers append to it, each at the end that it finds; so there is one order, a notification's serial is its position,
and a client that continues after the last serial that it has read misses none."""

from collections.abc import Sequence
from typing import Final

import msgspec

from mendflow.core.model.alerts import Notification
from mendflow.stores.contract import Append, Store, WriteDone

NOTIFICATION_STREAM: Final = "notifications"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Notification).decode


class NotificationLog:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._length = 0

    async def add(self, notifications: Sequence[Notification]) -> int:
        """Append these; returns the serial of the first, when they are written. After an error they may be there or
        not: appended again they have the same ids."""
        entries = [_encode(each) for each in notifications]
        while True:
            [result] = await self._store.write([Append(NOTIFICATION_STREAM, entries, self._length)])
            self._length = result.version if isinstance(result, WriteDone) else result.actual
            if isinstance(result, WriteDone):
                return self._length - len(entries) + 1

    async def length(self) -> int:
        return await self._store.length(NOTIFICATION_STREAM)

    async def after(self, serial: int | None, limit: int) -> list[Notification]:
        """Those after a serial, the oldest first; without a serial, the newest."""
        start = max(0, await self._store.length(NOTIFICATION_STREAM) - limit) if serial is None else serial
        entries = await self._store.read(NOTIFICATION_STREAM, start, limit)
        return [msgspec.structs.replace(_decode(entry), serial=place) for place, entry in enumerate(entries, start + 1)]
