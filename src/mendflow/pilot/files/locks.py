"""File locks that show whether a process lives: the kernel releases them however the holder ends. They contain the
holder's pid."""

import fcntl
import os
import time
from pathlib import Path

PROBED_S = 0.01
TRIES = 5
"""A process that tests a lock holds it for an instant, so one failed try proves nothing."""


def hold(path: Path) -> int | None:
    """Take a lock; it is held until the returned descriptor is closed or this process dies. None if another holds
    it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(PROBED_S)
                continue
            os.close(descriptor)
            return None
        break
    name = str(os.getpid()).encode()
    try:
        os.pwrite(descriptor, name, 0)  # overwrite the last holder's pid in place: works on a full disk
        os.ftruncate(descriptor, len(name))
    except OSError:
        os.ftruncate(descriptor, 0)  # no pid is better than a wrong one
    return descriptor


def holder(path: Path) -> str | None:
    """The text that the holder wrote into the lock; None if nobody holds it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return None
