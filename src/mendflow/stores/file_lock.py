"""A lock on a file beside the guarded one, so that two servers never use the same file by mistake.

The kernel releases the lock however its holder dies; so a held lock has a live holder, named in the lock file."""

import fcntl
import os
import socket
from pathlib import Path

from mendflow.core.model.errors import StoreUnavailable


class FileLock:
    """`what` says what is guarded, for the advice to use another one."""

    def __init__(self, guarded: Path, what: str = "file") -> None:
        self._guarded = guarded
        self._what = what
        self._path = guarded.with_name(guarded.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise with its holder. Raises OSError if the lock file cannot be opened."""
        assert self._fd is None, "this process already holds the lock"
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
        """Release the lock. The lock file stays: removing it would let a third process lock a file that no other
        sees."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _sign(self) -> None:
        """Write the holder's name, for people; ignores a full disk, which must not keep a server from starting."""
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        except OSError:
            return
