"""What is logged, as lines of text. A message may name anything: an address that somebody has asked for, what a job has
printed. Nothing in it tells a terminal anything, and no line of the log begins with it: what has control characters is
shown as a program would write it."""

import logging
from collections.abc import Mapping
from typing import Final

from mendflow.lazy import lazy_pattern

_CONTROLS: Final = lazy_pattern(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tabs, other ends of lines, and what turns the direction of text."""


def escaped(text: str) -> str:
    """The text in one line, with control characters as in a program: `\\x1b`, `\\n`."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def escaped_lines(text: str) -> str:
    """The same of a text of several lines. All but the first are indented."""
    return "\n  ".join(escaped(line) for line in text.replace("\r\n", "\n").split("\n"))


def message_of(record: logging.LogRecord) -> str:
    """The message of a record. Its own lines stay, and what it names is in one each."""
    args = record.args
    if isinstance(args, Mapping):
        return escaped_lines(str(record.msg) % {name: _escaped_value(each) for name, each in args.items()})
    return escaped_lines(str(record.msg) % tuple(map(_escaped_value, args)) if args else str(record.msg))


def _escaped_value(value: object) -> object:
    return escaped(value) if isinstance(value, str) else value


class MessageLines(logging.Formatter):
    """Messages as they are, for whoever sits before the terminal, each after `begin`."""

    def __init__(self, begin: str = "") -> None:
        super().__init__()
        self._begin = begin

    def format(self, record: logging.LogRecord) -> str:
        line = f"{self._begin}{message_of(record)}"
        if not record.exc_info or record.exc_info[0] is None:
            return line
        return f"{line}\n  {escaped_lines(self.formatException(record.exc_info))}"


def log_to_terminal() -> None:
    """Messages that nobody has said where to write come to standard error: they are escaped there too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageLines())
