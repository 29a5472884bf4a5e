"""What an attempt prints: all of it in one file, up to a bound, and its end in memory.

In the file each byte stands at the place at which it was printed. When it has grown beyond its bound, its middle is
given back to the file system, and the bytes around it stay where they are: so the file itself says what was left out,
to whoever reads it, also while it grows and after a crash. A job that prints without end costs the pilot a fixed amount
of disk and memory."""

import ctypes
import gzip
import hashlib
import os
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from mendflow.core.model.text_masks import TextMask
from mendflow.pilot.bounds import LOG_BYTES_MAX

SHIPPED_BYTES: Final = 16 * 1024
"""So much of the end of a log travels with the result, as text; a text that is no longer is nowhere else."""

BLOCK_BYTES: Final = 4096
STEP_BYTES: Final = 4 << 20
"""By how much a log grows before more of its middle is given back."""

TAIL_BYTES: Final = 1 << 20
"""How much of the end is kept in memory where a file system cannot give back the middle of a file."""

CHUNK_BYTES: Final = 1 << 20
LEVEL: Final = 1
"""Of the compression: logs repeat themselves, and a higher level takes several times as long for a few percent."""

_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
if _libc is not None:
    _libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)


def left_out_line(count: int) -> bytes:
    return b"\n[mendflow: %d bytes were left out here]\n" % count


def is_stored(size: int, tail: bytes) -> bool:
    """Whether a log is to be stored as a file, because the text that travels with the result is not all of it: it is
    longer, or it is no text, of which a byte would be lost. `tail` is what travels."""
    if size > SHIPPED_BYTES:
        return True
    try:
        tail.decode()
    except UnicodeDecodeError:
        return True
    return False


class LogTail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.seen = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self.seen += len(data)
        self._buffer += data[-self.limit :]
        if len(self._buffer) > 2 * self.limit:
            del self._buffer[: -self.limit]

    def content(self) -> bytes:
        return bytes(self._buffer[-self.limit :])

    def text(self) -> str:
        """The tail as text, from the start of a line if something was cut."""
        content = self.content()
        if self.seen > len(content):
            content = content.partition(b"\n")[2] or content
        return content.decode(errors="replace")


class LogFile:
    """The output of a job in a file, which is created with the first output."""

    def __init__(self, path: str, *, bytes_max: int = LOG_BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._step = min(STEP_BYTES, max(bytes_max // 8, BLOCK_BYTES))
        self._file = -1
        self._rest: LogTail | None = None  # what comes when the file takes no more
        self._next_cut = bytes_max + self._step
        self.seen = 0
        self.made = False

    def feed(self, data: bytes) -> None:
        self.seen += len(data)
        if self._rest is not None:
            self._rest.feed(data)
            return
        self._write(data)
        if self.seen >= self._next_cut:
            self._cut()

    def _cut(self) -> None:
        self._next_cut = self.seen + self._step
        if self._file >= 0 and not give_back_middle(self._file, self.seen, self._bytes_max):
            self._rest = LogTail(min(TAIL_BYTES, self._bytes_max // 2))

    def close(self) -> None:
        if self._rest is not None:
            tail = self._rest.content()
            if cut := self._rest.seen - len(tail):
                self._write(left_out_line(cut))
            self._write(tail)
        if self._file >= 0:
            if self._rest is None and self.seen > self._bytes_max:
                give_back_middle(self._file, self.seen, self._bytes_max)
            os.close(self._file)
            self._file = -1

    def add_last(self, data: bytes) -> None:
        """Add to a log that was closed, unless it was too long for its file."""
        if self._rest is None:
            self.feed(data)
            self.close()

    def _write(self, data: bytes) -> None:
        # A log that cannot be written (a full disk) must not harm the job: the result still contains its tail.
        left = memoryview(data)
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                self.made = True
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            self._rest = self._rest or LogTail(min(TAIL_BYTES, self._bytes_max // 2))
            self._rest.feed(bytes(left))


def give_back_middle(descriptor: int, size: int, bytes_max: int) -> bool:
    """Leave no more than so many bytes of a log: the first half of them from its beginning, the other from its end.
    False if this file system cannot do that."""
    start = -(-(bytes_max // 2) // BLOCK_BYTES) * BLOCK_BYTES
    end = (size - bytes_max // 2) // BLOCK_BYTES * BLOCK_BYTES
    if end <= start:
        return True
    if _libc is None:
        return False
    done: int = _libc.fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, end - start)
    return done == 0


class LogExtent(NamedTuple):
    """What there is of a log: `size` bytes were printed, and those from `gap_start` to `gap_end` were left out."""

    size: int
    gap_start: int
    gap_end: int

    @property
    def left_out(self) -> int:
        return self.gap_end - self.gap_start


def extent_of(descriptor: int) -> LogExtent:
    size = os.fstat(descriptor).st_size
    start = end = size
    if size > 2 * BLOCK_BYTES and hasattr(os, "SEEK_HOLE"):
        try:
            start = min(size, os.lseek(descriptor, 0, os.SEEK_HOLE))
            end = os.lseek(descriptor, start, os.SEEK_DATA) if start < size else size
        except OSError:
            start = end = size
    return LogExtent(size, start, end)


def read_log(path: str, offset: int, bytes_max: int) -> tuple[int, bytes, int]:
    """What was printed from `offset` on, without a gap: where it begins, which is later if what was there is left out,
    so many bytes of it, and how many were printed in all."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        extent = extent_of(descriptor)
        if extent.gap_start <= offset < extent.gap_end:
            offset = extent.gap_end
        end = extent.gap_start if offset < extent.gap_start else max(extent.size, offset)
        return offset, os.pread(descriptor, min(bytes_max, end - offset), offset), max(extent.size, offset)
    finally:
        os.close(descriptor)


def log_end(path: str) -> tuple[str, bool]:
    """The end of a log as it travels with a result, and whether all of it is to be stored; nothing if there is none."""
    try:
        with open(path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            tail = LogTail(SHIPPED_BYTES)
            tail.seen = max(0, size - SHIPPED_BYTES)
            log.seek(tail.seen)
            tail.feed(log.read(SHIPPED_BYTES))
    except OSError:
        return "", False
    return tail.text(), is_stored(size, tail.content())


class PackedLog(NamedTuple):
    """A log that was compressed into a file: what that is, and what it is of."""

    sha256: str
    bytes: int
    extent: LogExtent


def pack_log(path: str, target: str) -> PackedLog:
    """Compress a log that is over. What was left out is left out, without a word: the extent tells."""
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        extent = extent_of(source)
        with open(target, "wb") as packed, gzip.GzipFile("", "wb", LEVEL, packed, mtime=0) as out:
            for chunk in _chunks(source, extent):
                out.write(chunk)
    finally:
        os.close(source)
    with open(target, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return PackedLog(digest, file.tell(), extent)


def _chunks(descriptor: int, extent: LogExtent) -> Iterator[bytes]:
    for start, end in ((0, extent.gap_start), (extent.gap_end, extent.size)):
        while start < end and (chunk := os.pread(descriptor, min(CHUNK_BYTES, end - start), start)):
            start += len(chunk)
            yield chunk


def read_masked(path: str, offset: int, bytes_max: int, mask: TextMask) -> tuple[int, bytes, int]:
    """As `read_log`, of a log that still grows and is not masked itself: what may be the beginning of a masked text is
    left for the next time."""
    begin, data, size = read_log(path, max(0, offset - mask.margin), bytes_max + 2 * mask.margin)
    data = mask.mask_bytes(data)
    data = data[: mask.whole(data)]
    skip = max(0, offset - begin)
    return max(begin, offset), data[skip : skip + bytes_max], size
