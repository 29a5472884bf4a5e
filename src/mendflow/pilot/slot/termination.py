"""SIGTERM, which a batch system sends to all processes of a pilot: was a job ended by that?"""

import os
import signal
import time
from typing import Final

from mendflow.pilot.slot.monitor import now_ms

TERMINATED_MS: Final = 60_000
"""A job that fails this soon after its slot got SIGTERM got SIGTERM too."""

TERMINATED_TOGETHER_MS: Final = 200
"""A batch system signals the processes of a pilot one after the other; this is the longest delay between the first and
the last."""


class Termination:
    """When this process last got SIGTERM."""

    def __init__(self) -> None:
        self._at = -TERMINATED_MS

    def note(self) -> None:
        self._at = now_ms()

    def has_ended(self, status: int) -> bool:
        """Whether a process that ended in this way was ended by it. One that ends when all processes get SIGTERM was,
        even with exit code 0: a script continues when the command that it waits for is killed."""
        if signal.SIGTERM in (os.WTERMSIG(status), os.WEXITSTATUS(status) - 128):
            self._wait()
        return now_ms() - self._at < (TERMINATED_MS if status else TERMINATED_TOGETHER_MS)

    def _wait(self) -> None:
        """The job got SIGTERM, not from us: wait a moment whether this process gets it too."""
        until = now_ms() + TERMINATED_TOGETHER_MS
        while now_ms() < until and now_ms() - self._at >= TERMINATED_MS:
            time.sleep(0.005)
