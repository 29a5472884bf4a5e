"""A file that arrives: beside its place first, under `.part`, then in it.

The digest is of what lies on the disk here. A second thread reads it right behind the one that writes, and the disk is
told to begin while more comes, so neither costs time of its own; and what an earlier try has left is hashed in the same
way: going on from there is no special case."""

import hashlib
import os
import threading
from collections.abc import Callable
from typing import Final, Protocol

from mendflow.transfer.errors import TransferFailed

PART: Final = ".part"
ALONGSIDE_BYTES: Final = 4 << 20
"""A file that is no larger is hashed when it is there: a thread would cost more."""

READ_BYTES: Final = 1 << 20
WRITE_BACK_BYTES: Final = 16 << 20
"""So much is given to the disk at a time."""


class TransferSource(Protocol):
    """Something to copy from. `size` is -1 if it is not known; `identity` changes when the content does, as far as that
    can be told without reading it."""

    size: int
    identity: str

    def send(self, descriptor: int, offset: int, grown: Callable[[int], None]) -> None:
        """Write all from `offset` on, and say after each piece how large the file is now. One that cannot begin in the
        middle raises `CannotResume`."""
        ...


class GrowingDigest:
    """The SHA-256 of a file that still grows at its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sha256 = hashlib.sha256()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._hashed = self._grown = 0
        self._over = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def grown(self, size: int) -> None:
        assert size >= self._hashed, "what was hashed already was written again"
        with self._changed:
            self._grown = size
            self._changed.notify()
        if self._thread is None and size > ALONGSIDE_BYTES:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    def digest(self) -> str:
        """When nothing more comes."""
        self.close()
        if self._error is not None:
            raise self._error
        self._read_to(self._grown)
        return self._sha256.hexdigest()

    def close(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._over or self._grown > self._hashed)
                    if self._over:
                        return
                    size = self._grown
                self._read_to(size)
        except (OSError, TransferFailed) as error:
            self._error = error

    def _read_to(self, size: int) -> None:
        while self._hashed < size and not (self._over and self._thread is threading.current_thread()):
            got = os.preadv(self._descriptor, [self._buffer[: size - self._hashed]], self._hashed)
            if not got:
                raise TransferFailed("what was written here is no longer there", passing=True)
            self._sha256.update(self._buffer[:got])
            self._hashed += got


def arrive(
    origin: TransferSource,
    target: str,
    *,
    size: int = -1,
    resume: bool = True,
    mode: int = 0o600,
    durable: bool = True,
    wanted: Callable[[], bool] = lambda: True,
) -> tuple[str, int]:
    """Bring the file beside its place: its digest and its size. If `durable`, it is on the disk when this returns.
    `move_into_place` lets it be seen. `size` is what it must have, where that is known."""
    descriptor = os.open(target + PART, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    digesting = GrowingDigest(descriptor)
    try:
        offset = _begin(descriptor, size if size >= 0 else origin.size, resume)
        digesting.grown(offset)
        reached = given = offset

        def grown(now: int) -> None:
            nonlocal reached, given
            if not wanted():
                raise TransferFailed("it is no longer wanted", passing=True)
            reached = now
            digesting.grown(now)
            if durable and now - given >= WRITE_BACK_BYTES:
                _write_back(descriptor, given, now)
                given = now

        if offset != size or not offset:
            origin.send(descriptor, offset, grown)
        os.ftruncate(descriptor, reached)
        if durable:
            os.fsync(descriptor)  # while the other thread still reads
        return digesting.digest(), reached
    finally:
        digesting.close()
        os.close(descriptor)


def _write_back(descriptor: int, start: int, end: int) -> None:
    """Let the disk begin with what was written last, without waiting for it. That the pages are not needed is not what
    is meant: those on their way to the disk stay, and it is the one word that every Linux takes for "begin"."""
    os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


def _begin(descriptor: int, size: int, resume: bool) -> int:
    """How much there is already. More than there can be is nothing."""
    there = os.fstat(descriptor).st_size
    if not resume or (size >= 0 and there > size):
        os.ftruncate(descriptor, 0)
        return 0
    return there


def move_into_place(target: str, *, durable: bool = True) -> None:
    """Let the file be seen, whole, in one step; one that outlives a crash of the machine, if `durable`."""
    os.replace(target + PART, target)
    if durable:
        sync_folder(os.path.dirname(target))


def sync_folder(folder: str) -> None:
    """What was renamed in a folder is so after a crash of the machine too."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(target: str) -> None:
    """Forget what was brought so far."""
    try:
        os.unlink(target + PART)
    except FileNotFoundError:
        pass
