"""A lock that one process holds on a file's neighbour, so that two servers never share one file by mistake.

The kernel gives the lock back when its holder dies, however it dies; so a lock that is held has a living holder,
whose name stands in the lock file."""

import fcntl
import os
import socket
from pathlib import Path

from mendflow.core.model.errors import StoreUnavailable


class FileLock:
    """`what` is the sort of place that is guarded: another of it helps whoever comes second."""

    def __init__(self, guarded: Path, what: str = "file") -> None:
        self._guarded = guarded
        self._what = what
        self._path = guarded.with_name(guarded.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it. Raises OSError if the lock file itself cannot be had."""
        assert self._fd is None, "the lock is ours already"
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(fd)
            raise StoreUnavailable(
                f"{self._guarded} is in use by {holder}: stop that server, or give this one another {self._what}",
                path=str(self._guarded),
                holder=holder,
            ) from None
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._sign()

    def release(self) -> None:
        """The lock file stays: removing it would let a third process lock a file that nobody sees any more."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _sign(self) -> None:
        """The holder's name is for people; a full disk must not keep a server from starting over it."""
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        except OSError:
            return
