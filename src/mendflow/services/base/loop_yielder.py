"""Long work on the event loop, in small pieces.

Whoever goes through many documents cannot know how long each takes: one may be large, and a condition on it expensive.
So it asks after each whether others have waited for long enough. Those who have long work take turns: each round of the
loop does one piece of one of them, so that whoever has short work waits for one piece, however many do long work. The
turns go round among those for whom it is done, not among the pieces of work: who asks for much does not get more."""

import asyncio
import time
from collections import deque
from collections.abc import Hashable
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from mendflow.core.pieces import Pieces, PiecewiseWork
from mendflow.services.base.reading_cost import who_pays

T = TypeVar("T")

HELD_S: Final = 0.01
"""So long the loop is held at most, but for the last piece of work."""


class LoopYielder:
    """Counts the processor's time of one piece of work after the other."""

    def __init__(self) -> None:
        self._since_s = time.thread_time()

    async def pause(self) -> None:
        """Let others go first, if this has taken long since they last could."""
        if time.thread_time() - self._since_s < HELD_S:
            return
        await _turns_of(asyncio.get_running_loop()).wait(who_pays())
        self._since_s = time.thread_time()


async def done_in_pieces(pieces: Pieces[T]) -> T:
    """Do work that pauses now and then, and let others go first meanwhile."""
    work, yielder = PiecewiseWork(pieces), LoopYielder()
    for _ in work:
        await yielder.pause()
    return work.result


class _LoopTurns:
    """Who waits to go on with long work on one loop."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def wait(self, key: Hashable) -> None:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._admit)
        turn = loop.create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        await turn

    def _admit(self) -> None:
        """Let one go on in the next round, and go behind the others with the rest of the same key."""
        while self._waiting:
            key = next(iter(self._waiting))
            turns = self._waiting.pop(key)
            turn = turns.popleft()
            if turns:
                self._waiting[key] = turns
            if not turn.done():  # it was cancelled otherwise
                turn.set_result(None)
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._admit)


_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopTurns]] = WeakKeyDictionary()


def _turns_of(loop: asyncio.AbstractEventLoop) -> _LoopTurns:
    found = _turns.get(loop)
    if found is None:
        found = _turns[loop] = _LoopTurns()
    return found
