"""Work on the event loop that somebody asks for and nobody waits for urgently: one piece at a time for each who asks,
and a rest after it, so that all of it takes a tenth of the loop's time at most."""

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.services.base.reading_cost import who_pays

T = TypeVar("T")

REST: Final = 9
"""After a piece of work the next one waits so many times as long as that took."""

RESTING_MAX: Final = 1_000


class ThrottledWork:
    def __init__(self) -> None:
        self._turns = KeyedSemaphore(1)
        self._free_at: dict[Hashable, float] = {}

    async def do(self, work: Callable[[], T]) -> T:
        """Do it when whoever asks has rested from the piece before."""
        loop, key = asyncio.get_running_loop(), who_pays()
        async with self._turns.of(key):
            await asyncio.sleep(max(0.0, self._free_at.pop(key, 0.0) - loop.time()))
            begun = time.thread_time()
            try:
                return work()
            finally:
                self._free_at[key] = loop.time() + REST * (time.thread_time() - begun)
                if len(self._free_at) > RESTING_MAX:
                    self._free_at = {each: at for each, at in self._free_at.items() if at > loop.time()}
