"""Delivers something to one address: retries with growing waits, for a bounded time.

Each address has a small number of concurrent deliveries, so a dead one delays nothing but itself. Waits double from a
second to ten minutes, with random jitter, so that what failed together is not retried together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import Clock

SENDS_PER_ADDRESS_MAX: Final = 4
FIRST_WAIT_MS: Final = 1_000
LONGEST_WAIT_MS: Final = 600_000
PATIENCE_MS: Final = 24 * 3_600_000

Attempt = Callable[[], Awaitable[str | None]]
"""One try: empty if it was accepted, else why not; None if nobody wants it any more."""


def wait_ms(tries: int, chance: float) -> int:
    """How long to wait after so many failed tries; `chance` is between 0 and 1."""
    longest = min(FIRST_WAIT_MS << min(tries - 1, 20), LONGEST_WAIT_MS)
    return int(longest * (0.5 + chance / 2))


class _AddressSlots:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(SENDS_PER_ADDRESS_MAX)
        self.users = 0


class RetryingSender:
    def __init__(self, clock: Clock, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._slots_by_address: dict[str, _AddressSlots] = {}

    async def deliver(
        self, to: str, attempt: Attempt, *, tries: int, until: Instant, failed: Callable[[int], Awaitable[None]]
    ) -> str:
        """Retry until it is delivered, nobody wants it any more, or the time is over: then return why it last failed.
        `failed` is called after each failed try."""
        why: str | None = "it was not tried in time"
        while True:
            if tries:
                await self._clock.sleep(wait_ms(tries, self._chance()))
                if self._clock.now() >= until:
                    return why or ""
            async with self._slot(to):
                why = await attempt()
            if not why:
                return ""
            tries += 1
            await failed(tries)

    @asynccontextmanager
    async def _slot(self, to: str) -> AsyncIterator[None]:
        lanes = self._slots_by_address.setdefault(to, _AddressSlots())
        lanes.users += 1
        try:
            async with lanes.free:
                yield
        finally:
            lanes.users -= 1
            if not lanes.users:
                self._slots_by_address.pop(to, None)
