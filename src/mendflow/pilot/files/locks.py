"""Locks that say who lives: the kernel gives them back however their holder ends. The holder's pid stands in them."""

import fcntl
import os
import time
from pathlib import Path

PROBED_S = 0.01
TRIES = 5
"""Whoever looks whether a lock is held has it for the blink of an eye, so one refusal says nothing."""


def hold(path: Path) -> int | None:
    """Take a lock; it is held until the returned descriptor is closed or this process dies. None if another has it."""
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
        os.pwrite(descriptor, name, 0)  # over the last holder's, so that a full disk does not matter
        os.ftruncate(descriptor, len(name))
    except OSError:
        os.ftruncate(descriptor, 0)  # nobody's name is better than a wrong one
    return descriptor


def holder(path: Path) -> str | None:
    """What the holder of a lock wrote into it; None if nobody holds it."""
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
