"""Bounded output of a job: the beginning and the end are kept, the bytes between are counted and dropped.

So a job that prints without end costs the pilot a fixed amount of disk and memory."""

import os

LOG_HEAD_BYTES = 4 << 20
LOG_TAIL_BYTES = 1 << 20
SHIPPED_BYTES = 16 * 1024


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
    """One stream in a file, which is created with the first output."""

    def __init__(self, path: str, *, head_bytes: int = LOG_HEAD_BYTES, tail_bytes: int = LOG_TAIL_BYTES) -> None:
        self._path = path
        self._left = head_bytes
        self._file = -1
        self._tail = LogTail(tail_bytes)
        self.seen = 0
        self.made = False

    def feed(self, data: bytes) -> None:
        self.seen += len(data)
        head = data[: self._left]
        if head:
            self._left -= len(head)
            self._write(head)
        if len(data) > len(head):
            self._tail.feed(data[len(head) :])

    def close(self) -> None:
        if self._tail.seen:
            tail = self._tail.content()
            if cut := self._tail.seen - len(tail):
                self._write(b"\n[mendflow: %d bytes were cut here]\n" % cut)
            self._write(tail)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        # A log that cannot be written (a full disk) must not harm the job: the result still contains its tail.
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                self.made = True
            os.write(self._file, data)
        except OSError:
            self._left = 0
