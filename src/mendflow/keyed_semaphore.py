"""A semaphore for each key: of each who asks for something that takes long, so many are served at once, and the others
in their order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any


class KeyedSemaphore:
    """`at_once` is how many of a key are served at once, or a function that says it of a key, which is asked when
    somebody asks and when one was served; one is always served. Whoever asks for nothing any more is forgotten."""

    def __init__(self, at_once: int | Callable[[Any], int]) -> None:
        self._at_once = at_once
        self._turns: dict[Hashable, _Turns] = {}

    def __len__(self) -> int:
        """How many keys there are for which somebody asks."""
        return len(self._turns)

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncIterator[None]:
        """Wait until it is the turn of one more of this key."""
        turns = self._turns.setdefault(key, _Turns())
        how_many = partial(self._how_many, key)
        try:
            await turns.wait(how_many)
            try:
                yield
            finally:
                turns.pass_on(how_many)
        finally:
            if not turns.served and self._turns.get(key) is turns:
                del self._turns[key]

    def _how_many(self, key: Hashable) -> int:
        return self._at_once if isinstance(self._at_once, int) else self._at_once(key)


class _Turns:
    """How many of a key are served, and those that wait. While one waits, one is served."""

    def __init__(self) -> None:
        self.served = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, at_once: Callable[[], int]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit(at_once)
        if turn.done():
            return
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.pass_on(at_once)
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def pass_on(self, at_once: Callable[[], int]) -> None:
        """One was served, or wants its turn no more."""
        self.served -= 1
        self._admit(at_once)

    def _admit(self, at_once: Callable[[], int]) -> None:
        while self._waiting and (not self.served or self.served < at_once()):
            turn = self._waiting.popleft()
            if not turn.done():
                self.served += 1
                turn.set_result(None)
