"""Time that passes when nobody has anything to do.

A loop whose clock stands still while there is work, and jumps to the next timer when there is none. Services on it run
as they are: their sleeps, leases, levels and deadlines take no real time, and a run is the same each time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

from mendflow.core.model.ids import Instant

BEGINNING: Instant = 1_750_000_000_000
T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Where a real loop would wait for its next timer, this one moves the clock there. While a thread is at work it
    waits really: what the thread brings comes before any timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.threads:
            return super().select(None)
        ready = super().select(0)
        assert ready or timeout is not None, "nothing more can ever happen in this world"
        if not ready:
            self.now_s += max(0.0, timeout or 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def run_in_executor(  # type: ignore[override]  # the library types it as a method that gives a Future
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        self._jumping.threads += 1
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _: asyncio.Future[Any]) -> None:
        self._jumping.threads -= 1


class VirtualClock:
    """What the services are given for a clock."""

    def now(self) -> Instant:
        return BEGINNING + round(asyncio.get_running_loop().time() * 1000)

    def catch_up(self, instant: Instant) -> None:
        assert instant <= self.now(), "nobody has seen the future"

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a clock of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
