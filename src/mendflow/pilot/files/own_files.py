"""Opens what an attempt has left, and nothing that a link in its folder leads to elsewhere.

That a path leads into the folder was looked at before, by its slot. A process that has outlived its job may put a link
there afterwards. So it is looked at again once it is open: the kernel tells what was opened, whatever is there now."""

import errno
import os
import stat
from io import BufferedReader
from typing import Final

from mendflow.pilot.slot.processes import HAS_PROC
from mendflow.transfer.client_programs import OPENED_FILES

_PLAIN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_own(path: str, attempts: str) -> BufferedReader:
    """A plain file of an attempt, open for reading; `attempts` is the folder with those of all attempts. Raises
    OSError."""
    descriptor = os.open(path, _PLAIN)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file any more", path)
        if HAS_PROC and not _is_inside(os.readlink(f"/proc/self/fd/{descriptor}"), path, attempts):
            raise OSError(errno.ELOOP, "it is a link that leads out of the job's folder", path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def opened_path(file: BufferedReader) -> str:
    """A path that leads to this open file, as long as it is open, whatever is at its own path meanwhile."""
    path = f"{OPENED_FILES}{file.fileno()}"
    return path if HAS_PROC and os.path.exists(path) else str(file.name)


def _is_inside(opened: str, path: str, attempts: str) -> bool:
    """Whether what was opened belongs to the attempt that the path names."""
    real = os.path.realpath(attempts)
    for top in (real, attempts):
        if path.startswith(top + os.sep):
            own = os.path.join(real, path[len(top) + 1 :].partition(os.sep)[0])
            return opened == own or opened.startswith(own + os.sep)
    return False
