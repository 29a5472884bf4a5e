"""Timers of all cases in one heap. A cancelled timer stays in the heap and is ignored when its time comes."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.contracts import Clock

log = logging.getLogger("mendflow.runtime")

Fire = Callable[[CaseId, int], Awaitable[None]]
_LONGEST_SLEEP_MS = 60_000


class Timers:
    def __init__(self, clock: Clock, fire: Fire) -> None:
        self._clock = clock
        self._fire = fire
        self._heap: list[tuple[Instant, CaseId, int]] = []
        self._live: dict[tuple[CaseId, int], Instant] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="timers")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    def set(self, case: CaseId, serial: int, at: Instant) -> None:
        self._live[(case, serial)] = at
        heapq.heappush(self._heap, (at, case, serial))
        if self._heap[0][0] == at:
            self._changed.set()

    def drop(self, case: CaseId, serial: int) -> None:
        self._live.pop((case, serial), None)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            for case, serial in self._due():
                await self._fire_safely(case, serial)
                await asyncio.sleep(0)  # what follows from a timer may set one that is due at once, and so on for ever
            wait_ms = min(self._heap[0][0] - self._clock.now(), _LONGEST_SLEEP_MS) if self._heap else _LONGEST_SLEEP_MS
            try:
                # Not wait_for: before Python 3.12 it may swallow the cancellation that ends this loop.
                async with asyncio.timeout(max(wait_ms, 0) / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _fire_safely(self, case: CaseId, serial: int) -> None:
        try:
            await self._fire(case, serial)
        except StoreUnavailable:
            raise  # everything is loaded again
        except Exception:  # an error of one timer must not stop those of all cases
            log.exception(
                "timer %s of %s has fired, and what follows from it failed", serial, case, extra={"case": case}
            )

    def _due(self) -> list[tuple[CaseId, int]]:
        now = self._clock.now()
        due = []
        while self._heap and self._heap[0][0] <= now:
            at, case, serial = heapq.heappop(self._heap)
            if self._live.get((case, serial)) == at:
                del self._live[(case, serial)]
                due.append((case, serial))
        return due
