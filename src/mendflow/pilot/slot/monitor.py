"""Monitors one running attempt: its time, its memory, and orders to cancel or suspend it.

Suspended time does not count. Memory is measured often while the attempt is young or has a limit, and less and less
often otherwise."""

import signal
import time
from collections.abc import Callable

from mendflow.core.model.jobs import Measurements
from mendflow.pilot.slot.faults import StopReason
from mendflow.pilot.slot.messages import SlotWork
from mendflow.pilot.slot.processes import proportional_bytes, resident_bytes, send, used_cpu_ms
from mendflow.pilot.slot.reports import ReportReader

FIRST_LOOK_MS = 5
LOOK_MS_MAX = 500
LOOK_MS_BOUNDED = 40
CANCEL_GRACE_MS = 2_000
HEARTBEAT_MS = 1_000


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class AttemptMonitor:
    """`list_pids` tells the processes of the attempt as they are now, `list_all` also those that run it, such as the
    runtime of its container: they stop and continue with it, but are not its own."""

    def __init__(
        self, work: SlotWork, list_pids: Callable[[], list[int]], list_all: Callable[[], list[int]] | None = None
    ) -> None:
        self.work = work
        self._started_ns = time.monotonic_ns()
        self.started = self._started_ns // 1_000_000
        self.next_heartbeat = self.started + HEARTBEAT_MS
        self.started_at = time.time_ns() // 1_000_000
        self.peak_bytes = 0
        self.memory_bytes = 0
        self.seen_cpu_ms = 0  # at the last heartbeat
        self.end: StopReason | None = None
        self.reports: ReportReader | None = None  # created once the attempt is old enough to have reports
        self._list_pids = list_pids
        self._list_all = list_all or list_pids
        self._cpu_before_ms = 0 if work.command else -1  # a warm worker has used some already; known at the first look
        self._interval = FIRST_LOOK_MS
        self._next_look = self.started + FIRST_LOOK_MS
        self._still_since = 0
        self._still_ms = 0
        self._kill_at = 0

    @property
    def suspended(self) -> bool:
        return self._still_since > 0

    @property
    def is_cancelling(self) -> bool:
        return self._kill_at > 0

    def ran_ms(self, now: int) -> int:
        still = now - self._still_since if self.suspended else 0
        return now - self.started - self._still_ms - still

    def ran_us(self) -> int:
        still_ms = self._still_ms + (now_ms() - self._still_since if self.suspended else 0)
        return max(1, (time.monotonic_ns() - self._started_ns) // 1000 - still_ms * 1000)

    def due(self) -> int:
        """When the attempt must be checked again."""
        due = self._kill_at or self._next_look
        if self.work.wall_ms and not self.suspended:
            due = min(due, self.started + self._still_ms + self.work.wall_ms)
        return due

    def look(self, now: int) -> StopReason | None:
        """Why the attempt must be killed now, if it must."""
        if self._kill_at:
            return StopReason.CANCELLED if now >= self._kill_at else None
        if self.work.wall_ms and self.ran_ms(now) >= self.work.wall_ms:
            return StopReason.TIME
        if now >= self._next_look:
            slowest = LOOK_MS_BOUNDED if self.work.memory_bytes else LOOK_MS_MAX
            self._interval = min(self._interval * 2, slowest)
            self._next_look = now + self._interval
            if self._over_memory():
                return StopReason.MEMORY
        return None

    def _over_memory(self) -> bool:
        pids = self._list_pids()
        used = resident_bytes(pids)
        if self._cpu_before_ms < 0:
            self._cpu_before_ms = used_cpu_ms(pids)
        if self.work.memory_bytes and used > self.work.memory_bytes:
            # Forked processes share pages; only what they really use together counts.
            used = proportional_bytes(pids) or used
        self.memory_bytes = used
        self.peak_bytes = max(self.peak_bytes, used)
        return bool(self.work.memory_bytes) and used > self.work.memory_bytes

    def heartbeat(self, *, reaped_s: float) -> Measurements:
        """The measures so far. `reaped_s` is the CPU time of its processes that have ended after losing their
        parents."""
        now, cpu_ms = now_ms(), 0
        self.next_heartbeat = now + HEARTBEAT_MS
        if self._cpu_before_ms >= 0:
            cpu_ms = used_cpu_ms(self._list_pids()) + round(reaped_s * 1000) - self._cpu_before_ms
        self.seen_cpu_ms = max(0, cpu_ms)
        return Measurements(
            started_at=self.started_at,
            cpu_ms=self.seen_cpu_ms,
            peak_bytes=self.peak_bytes,
            memory_bytes=self.memory_bytes,
            ran_ms=self.ran_ms(now),
        )

    def suspend(self) -> None:
        if not self.suspended and not self._kill_at:
            self._still_since = now_ms()
            for _ in range(3):  # again, for processes that were forked meanwhile
                send(self._list_all(), signal.SIGSTOP)

    def resume(self) -> None:
        if self.suspended:
            self._still_ms += now_ms() - self._still_since
            self._still_since = 0
            send(self._list_all(), signal.SIGCONT)

    def cancel(self) -> None:
        """Send SIGTERM to all processes; kill them after a grace period."""
        if self._kill_at:
            return
        send(self._list_pids(), signal.SIGTERM)
        send(self._list_all(), signal.SIGCONT)
        self._kill_at = now_ms() + CANCEL_GRACE_MS
