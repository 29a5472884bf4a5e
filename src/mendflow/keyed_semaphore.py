"""A semaphore for each key: of each who asks for something that takes long, so many are served at once, and the others
in their order."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class KeyedSemaphore:
    """`at_once` is for each key; whoever asks for nothing any more is forgotten."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._semaphores: dict[Hashable, asyncio.Semaphore] = {}
        self._asking: Counter[Hashable] = Counter()  # those that are served, and those that wait

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncIterator[None]:
        """Wait until it is the turn of one more of this key."""
        semaphore = self._semaphores.setdefault(key, asyncio.Semaphore(self._at_once))
        self._asking[key] += 1
        try:
            async with semaphore:
                yield
        finally:
            self._asking[key] -= 1
            if not self._asking[key]:
                del self._asking[key], self._semaphores[key]
