"""Closes the memory of this process to others of the same account.

Linux lets every process of an account read the memory and the first environment of the others, and trace them. A
process that says it is not to be dumped is left out of that: only root may look into it. What it starts by `exec` may
be looked into again, so jobs and debuggers of jobs work as ever."""

import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def hide_memory() -> bool:
    """Whether nobody but root can read the memory of this process from now on."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
