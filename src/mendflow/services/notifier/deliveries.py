"""Bringing a notification to one address: again and again with growing waits, for a bounded time.

Each address has few lanes, so one that is dead holds up nobody but itself. Waits double from a second to ten minutes,
and are spread by chance, so that what failed together does not come back together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from mendflow.core.model.alerts import Notification
from mendflow.core.model.ids import Instant
from mendflow.services.contracts import Clock
from mendflow.services.notifier.contract import Poster
from mendflow.services.notifier.signing import EVENT, KIND, SIGNATURE, signature

LANES: Final = 4
FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 600_000
PATIENCE_MS: Final = 24 * 3_600_000

_encode = msgspec.json.Encoder().encode


def wait_ms(tries: int, chance: float) -> int:
    """How long to wait after so many tries in vain; `chance` is between 0 and 1."""
    longest = min(FIRST_WAIT_MS << min(tries - 1, 20), LONGEST_WAIT_MS)
    return int(longest * (0.5 + chance / 2))


class _Lanes:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(LANES)
        self.users = 0


class Deliveries:
    def __init__(self, *, clock: Clock, poster: Poster, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._poster = poster
        self._chance = chance
        self.patience_ms = PATIENCE_MS
        self._lanes: dict[str, _Lanes] = {}

    async def once(self, url: str, secret: str, told: Notification) -> str:
        """One try; empty if it was taken."""
        body = _encode(told)
        headers = {"Content-Type": "application/json", EVENT: told.id, KIND: told.kind}
        if secret:
            headers[SIGNATURE] = signature(secret, body, self._clock.now())
        return await self._poster.post(url, body, headers)

    async def bring(
        self,
        url: str,
        told: Notification,
        *,
        tries: int,
        secret: Callable[[], str | None],
        failed: Callable[[int], Awaitable[None]],
    ) -> str:
        """Until it is taken, or nobody wants it any more (`secret` gives None), or the time is over: then why it failed
        last. `failed` is told of each try in vain."""
        until: Instant = told.at + self.patience_ms
        why = "it was not tried in time"
        while True:
            if tries:
                await self._clock.sleep(wait_ms(tries, self._chance()))
            known = secret()
            if known is None:
                return ""
            if tries and self._clock.now() >= until:
                return why
            async with self._lane(url):
                why = await self.once(url, known, told)
            if not why:
                return ""
            tries += 1
            await failed(tries)

    @asynccontextmanager
    async def _lane(self, url: str) -> AsyncIterator[None]:
        lanes = self._lanes.setdefault(url, _Lanes())
        lanes.users += 1
        try:
            async with lanes.free:
                yield
        finally:
            lanes.users -= 1
            if not lanes.users:
                self._lanes.pop(url, None)
