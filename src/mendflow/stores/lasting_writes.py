"""What is written to a disk of this machine lasts when it is synced; and what is said when it cannot be written."""

import asyncio
import errno
import hashlib
import os
from pathlib import Path
from typing import BinaryIO, Final

from mendflow.core.model.errors import StoreUnavailable

BATCH_BYTES: Final = 1 << 19
"""So much is hashed and written at once, in a thread."""


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
        what = "the disk is full; free some space, nothing was stored"
        return StoreUnavailable(f"{folder}: {what}", told=f"of the server {what}")
    return StoreUnavailable(f"{folder}: {error.strerror}")


class HashedWriter:
    """Writes what comes to a file, and hashes it on the way. A little is written at once by whoever has it. Of more,
    each batch is hashed and written in a thread: while many send large files, the event loop only passes them on."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self.bytes = 0

    async def take(self, chunk: bytes) -> None:
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        self.bytes += len(chunk)
        if self._waiting_bytes < BATCH_BYTES:
            return
        written = asyncio.ensure_future(asyncio.to_thread(self.flush))
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await asyncio.wait([written])  # nothing is written any more when whoever sends it is gone
            raise

    def flush(self) -> None:
        """Write what waits."""
        batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for chunk in batch:
            self._out.write(chunk)
            self._digest.update(chunk)

    def digest(self) -> str:
        """That of everything that was written."""
        return self._digest.hexdigest()
