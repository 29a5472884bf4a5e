"""Reads the values that a running job reports: JSON objects, one per line, in the file `$MENDFLOW_REPORT`.

The latest value of each name counts, so only new lines are read, and a reader that falls behind may skip some. A job
may put anything in the file's place: only a plain file is read, and the first invalid line is mentioned in the log, all
are skipped."""

import os
import stat

import msgspec

from mendflow.core.model.values import Value, check_value
from mendflow.pilot.files.work_folder import remove_tree

LINE_BYTES_MAX = 16 * 1024
VALUES_BYTES_MAX = 16 * 1024
"""Limit for all values of a job together: they are sent with its heartbeat."""

READ_BYTES_MAX = 256 * 1024
_PLAIN_FILE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class BadReport(ValueError):
    """A line that is not a valid report; the message says why."""


class ReportReader:
    """The reports of one attempt. `values` has the latest value of each name."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = (0, 0)  # modification time and size when the file was last read to its end
        self._at = 0
        self._begun = b""  # an incomplete last line
        self._complaint: str | None = None
        self._complained = False
        self.values: dict[str, Value] = {}

    def look(self, *, over: bool = False) -> bool:
        """Read new lines; True if a value has changed. When the job is `over`, the last line needs no newline."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        mark = (status.st_mtime_ns, status.st_size)
        changed = False
        if mark != self._seen:
            if status.st_size <= self._at:  # the file was rewritten
                self._at, self._begun = 0, b""
            changed = self._take(self._new(status.st_size))
            if self._at >= status.st_size:
                self._seen = mark
        if over and self._begun:
            changed |= self._take(b"\n")
        return changed

    def _new(self, size: int) -> bytes:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | _PLAIN_FILE)
        except OSError:
            self._complain("it is not a plain file")
            self._at = size
            return b""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._complain("it is not a plain file")
                self._at = size
                return b""
            if size - self._at > READ_BYTES_MAX:
                self._complain("it grew faster than it was read, and some lines were skipped")
                self._at, self._begun = size - READ_BYTES_MAX, b""
                data = os.pread(descriptor, READ_BYTES_MAX, self._at)
                self._at += len(data)
                return data.partition(b"\n")[2]
            data = os.pread(descriptor, READ_BYTES_MAX, self._at)
            self._at += len(data)
            return data
        finally:
            os.close(descriptor)

    def take_all(self, content: bytes) -> None:
        """Read the whole file after the job's end; what was read before gives the same values."""
        self._begun = b""
        self._take(content + b"\n")

    def _take(self, data: bytes) -> bool:
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > LINE_BYTES_MAX:
            # one byte more than a line may have, to detect that it is too long
            self._begun = self._begun[: LINE_BYTES_MAX + 1]
        changed = False
        for line in lines:
            if line.strip():
                try:
                    changed |= self._merge(parse(line))
                except BadReport as error:
                    self._complain(str(error))
        return changed

    def _merge(self, found: dict[str, Value]) -> bool:
        merged = self.values | found
        if merged == self.values:
            return False
        if len(msgspec.json.encode(merged)) > VALUES_BYTES_MAX:
            raise BadReport(f"all values together have more than {VALUES_BYTES_MAX} bytes")
        self.values = merged
        return True

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            self._complaint = f"[mendflow: skipped a line of $MENDFLOW_REPORT: {reason}]\n"

    def complaint(self) -> bytes:
        """The line for the job's log, once."""
        text, self._complaint = self._complaint, None
        return text.encode() if text else b""


def parse(line: bytes) -> dict[str, Value]:
    """The values in one line."""
    if len(line) > LINE_BYTES_MAX:
        raise BadReport(f"a line has more than {LINE_BYTES_MAX} bytes")
    shown = line[:80].decode(errors="replace")
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadReport(f"expected a JSON object, found {shown!r}") from None
    except RecursionError:
        raise BadReport("a value is nested too deep") from None
    if not isinstance(found, dict):
        raise BadReport(f"expected a JSON object, found {shown!r}")
    if why := check_value(found):
        raise BadReport(why)
    return found


def take_report(path: str) -> bytes:
    """The reports of a call from its worker's file, which is emptied; of a very long one, the end."""
    try:
        descriptor = os.open(path, os.O_RDWR | _PLAIN_FILE)
    except OSError:
        _remove(path)
        return b""
    try:
        size = os.fstat(descriptor).st_size
        content = os.pread(descriptor, READ_BYTES_MAX, max(0, size - READ_BYTES_MAX))
        os.ftruncate(descriptor, 0)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return content if size <= READ_BYTES_MAX else content.partition(b"\n")[2]


def _remove(path: str) -> None:
    """Remove whatever a call has put there."""
    try:
        os.unlink(path)
    except OSError:
        remove_tree(path)
