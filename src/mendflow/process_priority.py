"""Work that gives way to everything else on the machine."""

import os
from contextlib import suppress


def give_way(id: int, niceness: int) -> None:
    """Let a process give way to this one, and on Linux a thread: each has its own niceness there. It may have ended."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, id, os.getpriority(os.PRIO_PROCESS, os.getpid()) + niceness)
