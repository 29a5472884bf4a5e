"""What is written to a disk of this machine lasts when it is synced; and what is said when it cannot be written."""

import errno
import os
from pathlib import Path

from mendflow.core.model.errors import StoreUnavailable


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, last."""
    fd = os.open(path, os.O_RDONLY)
    try:
        make_durable(fd)
    finally:
        os.close(fd)


def make_durable(fd: int) -> None:
    os.fsync(fd)


def unavailable(error: OSError, folder: Path) -> StoreUnavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"{folder}: the disk is full; free some space, nothing was stored")
    return StoreUnavailable(f"{folder}: {error.strerror}")
