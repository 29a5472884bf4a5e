"""A file that is being fetched: under PATH.part first, then renamed.

The digest is computed from the local disk. A second thread hashes right behind the writer, and the disk is told to
start writing back meanwhile, so neither adds time; a partial file of an earlier try is hashed in the same way."""

import hashlib
import os
import threading
from collections.abc import Callable
from typing import Final, Protocol

from mendflow.transfer.errors import TransferFailed

PART: Final = ".part"
ALONGSIDE_BYTES: Final = 4 << 20
"""Smaller files are hashed at the end: a thread would cost more."""

READ_BYTES: Final = 1 << 20
WRITE_BACK_BYTES: Final = 16 << 20
"""So much is written back at a time."""


class TransferSource(Protocol):
    """A source to copy from. `size` is -1 if unknown; `identity` changes with the content, as far as that is known
    without reading it."""

    size: int
    identity: str

    def send(self, descriptor: int, offset: int, grown: Callable[[int], None]) -> None:
        """Write everything from `offset` on, and report the file's size after each piece. Raises `CannotResume` if it
        cannot start in the middle."""
        ...


class GrowingDigest:
    """The SHA-256 of a file that still grows."""

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
        """Call this when the file is complete."""
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
    """Fetch the file to PATH.part; returns its digest and size. If `durable`, it is on disk when this returns.
    `move_into_place` renames it. `size` is the required size, if known."""
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
    """Let the disk start with what was written last, without waiting. POSIX_FADV_DONTNEED would also drop the pages;
    those being written stay, and it is the one call that starts write-back on every Linux."""
    os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


def _begin(descriptor: int, size: int, resume: bool) -> int:
    """The size of the partial file; 0 if it is larger than possible."""
    there = os.fstat(descriptor).st_size
    if not resume or (size >= 0 and there > size):
        os.ftruncate(descriptor, 0)
        return 0
    return there


def move_into_place(target: str, *, durable: bool = True) -> None:
    """Rename the complete file into place; if `durable`, it survives a crash of the machine."""
    os.replace(target + PART, target)
    if durable:
        sync_folder(os.path.dirname(target))


def sync_folder(folder: str) -> None:
    """Make renames in a folder survive a crash of the machine."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(target: str) -> None:
    """Drop the partial file."""
    try:
        os.unlink(target + PART)
    except FileNotFoundError:
        pass
