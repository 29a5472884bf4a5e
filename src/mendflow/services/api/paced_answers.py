"""Answers that many ask for and that cost something: made once for all who ask at the same time, and again only when
ten times as long has passed as it took. So they are fresh where they are cheap, and never more than a tenth of the
work."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar, cast

from mendflow.services.base.clock import Meter

PACE = 10
KEPT_MAX = 100

T = TypeVar("T")


class PacedAnswers(Generic[T]):
    """One answer for each key."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._made: dict[Hashable, tuple[T, int]] = {}  # the answer, and until when it is good
        self._under_way: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        known = self._made.get(key)
        if known is not None and self._meter() < known[1]:
            return known[0]
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._make(key, make))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return cast(T, await asyncio.shield(task))  # who stops waiting does not stop it for the others

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        begun = self._meter()
        answer = await make()
        ended = self._meter()
        self._made.pop(key, None)
        self._made[key] = answer, ended + PACE * (ended - begun)
        if len(self._made) > KEPT_MAX:
            del self._made[next(iter(self._made))]
        return answer
