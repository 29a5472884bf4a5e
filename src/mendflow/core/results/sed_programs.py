"""Programs for sed: which of them only change lines, and so read no file but their input."""

import re

from mendflow.lazy import lazy_pattern

_COMMAND = lazy_pattern(
    r"""
    (?:(?:\d+|\$|/(?:\\.|[^/\\\n])+/I?)(?:,\s*(?:\d+|\$|\+\d+|/(?:\\.|[^/\\\n])+/I?))?\s*!?\s*)?   # which lines
    (?:
        [sy](?P<mark>[^\s\w\\])(?:\\.|(?!(?P=mark))[^\\])*(?P=mark)(?:\\.|(?!(?P=mark))[^\\])*(?P=mark)[gpiImM0-9]*
      | [pdDnNgGhHxPlqQ=]\d*
      | [{}] | :\s*\w+ | [bt](?:\s*\w+)?
    )""",
    re.VERBOSE | re.DOTALL,
)
_GAP = lazy_pattern(r"[\s;]*")


def only_changes_lines(script: str) -> bool:
    """Whether a program for sed only changes, prints and drops lines: then it reads no other file."""
    at = 0
    while True:
        gap = _GAP.match(script, at)
        at = gap.end() if gap else at
        if at == len(script):
            return True
        command = _COMMAND.match(script, at)
        if command is None or command.end() == at:
            return False
        at = command.end()
