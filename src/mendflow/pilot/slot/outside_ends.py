"""Ends of attempts whose reason is outside them: somebody cancelled one, the whole pilot got SIGTERM, or the guard
killed it because the lease was over."""

import os
import signal

from mendflow.pilot.slot.faults import StopReason
from mendflow.pilot.slot.lease import LeaseClock, boot_ms
from mendflow.pilot.slot.monitor import AttemptMonitor
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.termination import Termination


class OutsideEnds:
    def __init__(self, lease: LeaseClock, reaper: Reaper) -> None:
        self._lease = lease
        self._lease_seen = 0  # the end of the lease when it was last read
        self._reaper = reaper
        self._termination = Termination()

    def on_terminate(self) -> None:
        """Handle SIGTERM, which a batch system sends to all processes of a pilot."""
        self._termination.note()

    def read_lease(self) -> None:
        self._lease_seen = self._lease.stop_at

    def is_killed_by_guard(self, pid: int) -> bool:
        """Whether the guard killed the attempt because this slot was stopped while the lease ended. Compares with the
        lease as it was before: an agent that woke up with us may have renewed it since, for other attempts."""
        status = self._reaper.ended.get(pid, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and boot_ms() >= self._lease_seen

    def stop_reason(self, monitor: AttemptMonitor, pid: int) -> StopReason | None:
        """Why the attempt ended, if it was cancelled or ended with its pilot."""
        if monitor.is_cancelling:
            return StopReason.CANCELLED
        return StopReason.LEFT if self._termination.has_ended(self._reaper.ended.get(pid, 0)) else None
