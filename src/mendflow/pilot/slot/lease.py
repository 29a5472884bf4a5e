"""The moment by which every job of this pilot must have stopped, unless the server renews.

It lies in eight mapped bytes that all processes of the pilot see: a slot knows the latest moment even when its agent is
dead, and a renewal costs one store to memory. Counted by the clock that goes on while the machine sleeps, so a laptop
that wakes up after its leases ended stops its jobs at once."""

import mmap
import os
import struct
import time
from pathlib import Path

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_MOMENT = struct.Struct("=q")


def boot_ms() -> int:
    """Milliseconds since the machine started, time asleep included."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def wall_ms() -> int:
    """The time of day, which slots tell people the measures of their jobs by."""
    return time.time_ns() // 1_000_000


def margin_ms(lease_ms: int) -> int:
    """How long before a lease ends the killing begins: enough for a slow machine, never a large part of the lease."""
    return min(max(lease_ms // 10, 500), lease_ms // 3)


class LeaseClock:
    """`stop_at` is when the slots kill what they run; zero means that no lease was ever granted."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < _MOMENT.size:
                os.truncate(descriptor, _MOMENT.size)
            self._map = mmap.mmap(descriptor, _MOMENT.size)
        finally:
            os.close(descriptor)

    @property
    def stop_at(self) -> int:
        return int(_MOMENT.unpack_from(self._map, 0)[0])

    def renew(self, *, sent_at: int, lease_ms: int) -> None:
        """The server answered a request that was sent at `sent_at`. An answer that comes late shortens nothing."""
        stop_at = sent_at + lease_ms - margin_ms(lease_ms)
        if stop_at > self.stop_at:
            _MOMENT.pack_into(self._map, 0, stop_at)

    def clear(self) -> None:
        _MOMENT.pack_into(self._map, 0, 0)

    def is_over(self, now: int) -> bool:
        return now >= self.stop_at
