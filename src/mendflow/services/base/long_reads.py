"""Texts that users give, and that take long to read: flow files, rule files, descriptions of many jobs.

They are read in one thread that does nothing else, one of each who asks at a time: a long one takes seconds, and
neither the event loop nor whatever else the server does in threads waits for it. Its time is what it costs whoever
asks, as reading from a store is."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.services.base.reading_cost import who_pays

T = TypeVar("T")

SHORT_CHARS: Final = 10_000
"""A text of so many characters is read at once by whoever has it: that takes a few milliseconds."""


class LongReads:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long-reads")
        self._turns = KeyedSemaphore(1)

    async def do(self, read: Callable[[], T]) -> T:
        """Read when it is the turn of whoever asks. What it raises arrives."""
        payer, clock = who_pays(), _ThreadClock()
        async with self._turns.of(payer):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, clock.timed, read)
            finally:
                if payer is not None:
                    payer(clock.took_s)


class _ThreadClock:
    """What a call took of the processor's time of its thread."""

    took_s = 0.0

    def timed(self, call: Callable[[], T]) -> T:
        begun = time.thread_time()
        try:
            return call()
        finally:
            self.took_s = time.thread_time() - begun
