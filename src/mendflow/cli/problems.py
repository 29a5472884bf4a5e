"""Prints the problems of a flow file: the message, the line, and a caret under the place."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from rich.text import Text

from mendflow.cli.printing import say
from mendflow.core.model.errors import Problem
from mendflow.pages.formatting import plain_text

LINE_CHARS_MAX = 160
FILE_BYTES_MAX = 20_000_000


def show_problems(problems: Sequence[Problem]) -> None:
    """Print all of them to standard error."""
    for problem in problems:
        say(Text(plain_text(str(problem)), style="bold"), err=True)
        line = _line(problem.file, problem.line)
        if line is None:
            continue
        number = f"{problem.line:>5}"
        before = min(max(problem.column - 1, 0), len(line))
        cut = max(before - LINE_CHARS_MAX + 40, 0)
        shown = line[cut : cut + LINE_CHARS_MAX].replace("\t", " ")
        say(f"{number} | {shown}", err=True)
        if problem.column:
            say(f"{' ' * len(number)} | {' ' * (before - cut)}^", err=True)


def _line(file: str, number: int) -> str | None:
    lines = _lines(file) if file and number > 0 else ()
    return plain_text(lines[number - 1]) if 0 < number <= len(lines) else None


@lru_cache(maxsize=4)
def _lines(file: str) -> tuple[str, ...]:
    """The file's lines, or none if it cannot be read now: problems are then printed without them."""
    path = Path(file)
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return ()
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()
