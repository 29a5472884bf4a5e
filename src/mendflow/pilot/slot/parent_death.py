"""The kernel kills a job when its slot dies, however the slot dies and whoever else is dead already.

A pipe in which nothing is ever written: the slot holds its only end for writing, the job inherits the end for reading.
That end is set to signal the job's process group with SIGKILL when something happens to the pipe, and the one thing
that can happen is that the slot's end is closed, which the kernel does when the slot is gone. Once it is made, holding
another job by it costs one call. It holds a group as long as one process of the job keeps the descriptor that it
inherited; what closes all descriptors and leaves the group is found by its signs (process_tags.py)."""

import fcntl
import os
import resource
import signal
import sys
from typing import Any

_F_SETSIG = 10
_O_ASYNC = 0o20000
HIGH = 247
"""The descriptor in the job: far from those that scripts give numbers to."""


class KillOnParentDeath:
    def __init__(self) -> None:
        self._job_end = -1
        if sys.platform != "linux":
            return
        self._job_end, self._our_end = os.pipe()
        fcntl.fcntl(self._job_end, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(self._job_end, fcntl.F_SETFL, fcntl.fcntl(self._job_end, fcntl.F_GETFL) | _O_ASYNC)
        self._inherit = [(os.POSIX_SPAWN_DUP2, self._job_end, _number())]

    def file_actions(self) -> list[tuple[Any, ...]]:
        """What to add when a process is started that is to be held."""
        return self._inherit if self._job_end >= 0 else []

    def hold(self, group: int) -> None:
        """From now on this process group dies with us, and the one that was held before does not."""
        if self._job_end < 0:
            return
        try:
            fcntl.fcntl(self._job_end, fcntl.F_SETOWN, -group)
        except OSError:
            return  # it is over already


def _number() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HIGH if soft == resource.RLIM_INFINITY else min(HIGH, soft - 1)
