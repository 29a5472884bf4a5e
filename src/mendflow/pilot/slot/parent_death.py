"""Makes the kernel kill a job when its slot dies, however it dies and whoever else is dead.

A pipe to which nothing is ever written: the slot holds the only write end, the job inherits the read end. The read end
is set to send SIGKILL to the job's process group when something happens on the pipe, and the only thing that can happen
is that the kernel closes the write end because the slot is gone. The pipe is created once; binding another job costs
one system call. A group is bound as long as one of its processes keeps the inherited descriptor; a process that closes
all descriptors and leaves the group is found by its tags (process_tags.py)."""

import fcntl
import os
import resource
import signal
import sys
from typing import Any

_F_SETSIG = 10
_O_ASYNC = 0o20000
HIGH = 247
"""The descriptor in the job, far above those that scripts use."""


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
        """Actions for posix_spawn, so that the new process inherits the read end."""
        return self._inherit if self._job_end >= 0 else []

    def descriptors(self) -> tuple[int, ...]:
        """What a process that is started otherwise has to inherit."""
        return (self._job_end,) if self._job_end >= 0 else ()

    def close(self) -> None:
        """Nobody is bound any more."""
        if self._job_end >= 0:
            os.close(self._job_end)  # first, so that nothing happens on it
            os.close(self._our_end)
            self._job_end = -1

    def hold(self, group: int) -> None:
        """From now on this process group dies with us; the one that was bound before does not."""
        if self._job_end < 0:
            return
        try:
            fcntl.fcntl(self._job_end, fcntl.F_SETOWN, -group)
        except OSError:
            return  # it has ended already


def _number() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HIGH if soft == resource.RLIM_INFINITY else min(HIGH, soft - 1)
