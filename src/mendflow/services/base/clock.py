"""The server's clock: the wall clock at the start, plus what the monotonic clock has counted since.

So a wall clock that jumps, forward or back, has no effect while the process lives. The meter measures durations that
are promised to other servers: it never jumps, and continues while the machine sleeps."""

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
    """An id of the meter `steady_ms`: two processes with the same id read the same meter, whenever they run. Empty
    where that cannot be known."""
    try:
        boot = _BOOT.read_text().strip()
        return f"{boot} {os.readlink(_TIME) if os.path.lexists(_TIME) else ''}".strip()
    except OSError:
        return ""


def wall_ms() -> Instant:
    """The wall clock, as it is now: it may jump."""
    return time.time_ns() // 1_000_000


class SystemClock:
    def __init__(self) -> None:
        self._offset_ms = wall_ms() - time.monotonic_ns() // 1_000_000

    def now(self) -> Instant:
        return time.monotonic_ns() // 1_000_000 + self._offset_ms

    def catch_up(self, instant: Instant) -> None:
        self._offset_ms += max(0, instant - self.now())

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
