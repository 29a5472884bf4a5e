"""The server's clock: the wall clock once, at the start, and from then on what the monotonic clock has counted.

So a wall clock that jumps, forward or back, moves nothing while the process lives. Beside it a meter, for lengths of
time that are promised to other servers: it tells no time of day, never jumps, and goes on while the machine sleeps."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from mendflow.core.model.ids import Instant

Meter = Callable[[], int]
"""Milliseconds since some moment, the same for as long as the process lives."""

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TIME = "/proc/self/ns/time"


def steady_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def steady_name() -> str:
    """Which meter `steady_ms` is: two processes for which it is the same read the same one, whenever they live. Empty
    where that cannot be known."""
    try:
        boot = _BOOT.read_text().strip()
        return f"{boot} {os.readlink(_TIME) if os.path.lexists(_TIME) else ''}".strip()
    except OSError:
        return ""


class SystemClock:
    def __init__(self) -> None:
        self._offset_ms = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000

    def now(self) -> Instant:
        return time.monotonic_ns() // 1_000_000 + self._offset_ms

    def catch_up(self, instant: Instant) -> None:
        self._offset_ms += max(0, instant - self.now())

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
