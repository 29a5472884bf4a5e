"""Where the log of a server goes, and in which form: lines of text, or one JSON object in each line; to standard error,
or to a file that is continued in a new one when it is large, and that is opened again when somebody has moved it."""

import logging
import os
import sys
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.log_lines import escaped, escaped_lines, message_of
from mendflow.server.request_mark import current_mark

log = logging.getLogger("mendflow.server")

LogForm = Literal["text", "json"]
LEVELS: Final = ("debug", "info", "warning", "error")


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is empty for standard error. A file of `bytes_max` is continued in a new one, and `kept` old ones stay; 0
    bytes: it grows."""

    form: LogForm = "text"
    file: str = ""
    level: str = "warning"
    bytes_max: int = 100_000_000
    kept: int = 5


USUAL_LOG: Final = LogOptions()


class _Fields(logging.Formatter):
    """What is known of a line besides its message: the request that was answered meanwhile, and the case."""

    def context(self, record: logging.LogRecord) -> dict[str, str]:
        mark = current_mark()
        found = {
            "request": mark.request if mark is not None else "",
            "case": str(getattr(record, "case", "") or (mark.case if mark is not None else "")),
            "who": mark.who if mark is not None else "",
        }
        return {name: value for name, value in found.items() if value}

    def instant(self, record: logging.LogRecord) -> str:
        """In UTC, to the millisecond."""
        seconds, ms = divmod(int(record.created * 1000), 1000)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03}Z"

    def error(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] is not None else ""


class JsonLines(_Fields):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self.context(record),
        }
        if error := self.error(record):
            line["error"] = error
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextLines(_Fields):
    def format(self, record: logging.LogRecord) -> str:
        known = " ".join(f"{name}={escaped(value)}" for name, value in self.context(record).items())
        told = message_of(record)
        line = f"{self.instant(record)} {record.levelname} {record.name}: {told}{f' [{known}]' if known else ''}"
        return f"{line}\n  {escaped_lines(error)}" if (error := self.error(record)) else line


class ReopenedFile(RotatingFileHandler):
    """For its owner alone to read: messages tell names of cases, flows and people."""

    def __init__(self, path: Path, bytes_max: int, kept: int) -> None:
        super().__init__(path, maxBytes=bytes_max, backupCount=kept, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def reopen(self) -> str:
        """Open the file anew under its name; what is wrong if that cannot be, and then the old one is written on."""
        self.acquire()
        try:
            before, self.stream = self.stream, self._open()
        except OSError as error:
            return f"the log file {self.baseFilename} cannot be opened again: {error.strerror}"
        finally:
            self.release()
        if before is not None:
            before.close()
        return ""


class LogOutput:
    """The log of this process from here on."""

    def __init__(self, options: LogOptions) -> None:
        """Refused if the file cannot be written."""
        self._file: ReopenedFile | None = None
        if options.file:
            path = Path(options.file).absolute()
            try:
                self._file = ReopenedFile(path, options.bytes_max, options.kept)
            except OSError as error:
                raise InvalidRequest(
                    f"--log-file {path} cannot be written: {error.strerror}; name a file in a folder that this account"
                    " can write to"
                ) from error
        self._handler: logging.Handler = self._file or logging.StreamHandler(sys.stderr)
        self._handler.setFormatter(JsonLines() if options.form == "json" else TextLines())
        root = logging.getLogger()
        self._before = root.level
        root.addHandler(self._handler)
        root.setLevel(options.level.upper())

    @property
    def has_file(self) -> bool:
        return self._file is not None

    def reopen(self) -> None:
        """Go on in the file that has the name now: whoever rotates logs has moved the old one away."""
        if self._file is None:
            return
        if flaw := self._file.reopen():
            log.error("%s; the one before is written on", flaw)
        else:
            log.warning("the log file was opened again")

    def close(self) -> None:
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._before)
        self._handler.close()
