"""Long work on the event loop, in small pieces.

Whoever goes through many documents cannot know how long each takes: one may be large, and a condition on it expensive.
So it asks after each whether others have waited for long enough."""

import asyncio
import time
from collections.abc import Generator
from typing import Final, TypeVar

T = TypeVar("T")

HELD_S: Final = 0.02
"""So long the loop is held at most, but for the last piece of work."""


class LoopYielder:
    """Counts the processor's time of one piece of work after the other."""

    def __init__(self) -> None:
        self._since_s = time.thread_time()

    async def pause(self) -> None:
        """Let others go first, if this has taken long since they last could."""
        if time.thread_time() - self._since_s < HELD_S:
            return
        await asyncio.sleep(0)
        self._since_s = time.thread_time()


async def done_in_pieces(work: Generator[None, None, T]) -> T:
    """Do work that pauses now and then, and let others go first meanwhile."""
    yielder = LoopYielder()
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
        await yielder.pause()
