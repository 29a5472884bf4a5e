"""The moment by which every job of this pilot must have stopped, unless the server renews the lease.

It is in eight bytes of shared memory: a slot knows the latest value even when its agent is dead, and a renewal is one
memory write. The clock runs on while the machine sleeps, so a laptop that wakes up after its leases ended stops its
jobs at once."""

import time
from pathlib import Path

from mendflow.pilot.slot.shared_numbers import map_numbers

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    """Milliseconds since boot, including time asleep."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def wall_ms() -> int:
    """Wall-clock time, for the measures of jobs."""
    return time.time_ns() // 1_000_000


def margin_ms(lease_ms: int) -> int:
    """How long before the end of a lease the slots kill their jobs: enough for a slow machine, never a large part of
    the lease."""
    return min(max(lease_ms // 10, 500), lease_ms // 3)


class LeaseClock:
    """`stop_at` is when slots kill what they run; 0 means that no lease was granted yet."""

    def __init__(self, path: Path) -> None:
        self._moment = map_numbers(path, 1)

    @property
    def stop_at(self) -> int:
        return self._moment[0]

    def renew(self, *, sent_at: int, lease_ms: int) -> None:
        """The server has answered a request that was sent at `sent_at`. A late answer never shortens the lease."""
        stop_at = sent_at + lease_ms - margin_ms(lease_ms)
        if stop_at > self.stop_at:
            self._moment[0] = stop_at

    def clear(self) -> None:
        self._moment[0] = 0

    def is_over(self, now: int) -> bool:
        return now >= self.stop_at
