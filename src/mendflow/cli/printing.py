"""Terminal output: tables that fit, JSON for programs, and no control characters from jobs."""

import os
import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from mendflow.lazy import lazy_pattern
from mendflow.pages.formatting import one_line, plain_text

STYLES = {
    "completed": "green",
    "done": "green",
    "mended": "yellow",
    "failed": "red",
    "cancelled": "red",
    "lost": "red",
    "running": "blue",
    "active": "green",
    "claimed": "blue",
    "suspended": "yellow",
    "held": "yellow",
    "stopped": "yellow",
    "silent": "yellow",
    "cached": "cyan",
}
CELL_CHARS_MAX, WHOLE_CHARS_MAX = 400, 4000
LINE_CHARS_MAX = 200
GAP, FOLDED_MIN = 2, 8
_UNESCAPED = lazy_pattern(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
WIDTH_PIPED = 160
"""Width of tables that go to a file or a pipe."""


def console(*, err: bool = False) -> Console:
    """Plain text: no markup, no emoji, no automatic highlighting."""
    return Console(stderr=err, markup=False, emoji=False, highlight=False)


def print_json(value: object) -> None:
    sys.stdout.write(json_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n")


def json_text(encoded: str) -> str:
    """The same JSON without what a terminal would obey. The encoder has left control characters beyond ASCII as they
    are."""
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def say(text: str | Text = "", *, err: bool = False) -> None:
    """What a job has printed may be in any sentence, so none goes to the terminal as it is."""
    console(err=err).print(plain_text(text) if isinstance(text, str) else text, soft_wrap=True)


def print_answer(json: bool, value: object, sentence: str | Text) -> None:
    """Print a result: the value as JSON, or a sentence."""
    if json:
        print_json(value)
    else:
        say(sentence)


def print_output(lines: Iterable[str]) -> None:
    """The end of what a job printed."""
    for line in lines:
        console().print(Text(f"    | {plain_text(line)[:LINE_CHARS_MAX]}", style="dim"), soft_wrap=True)


def state_text(state: str) -> Text:
    return Text(state, style=STYLES.get(state, ""))


def table_width() -> int:
    made = console()
    return made.width if made.is_terminal or "COLUMNS" in os.environ else WIDTH_PIPED


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Text]], *, fold: int = -1, whole: bool = False
) -> None:
    """A table without lines. All columns are printed in full except the one to fold, which is cut, or, if `whole`,
    wrapped."""
    most = WHOLE_CHARS_MAX if whole else CELL_CHARS_MAX
    cells = [[Text(head, style="dim") for head in heads]]
    cells += [[cell if isinstance(cell, Text) else Text(one_line(cell, most)) for cell in row] for row in rows]
    made, wide = console(), table_width()
    widths = [max(row[index].cell_len for row in cells) for index in range(len(heads))]
    others = sum(widths) - widths[fold] + GAP * (len(heads) - 1)
    widths[fold] = min(widths[fold], max(wide - others, FOLDED_MIN))
    for row in cells:
        for one in _lines(made, row, fold % len(row), widths[fold]) if whole else [row]:
            for cell, width in zip(one, widths, strict=True):
                cell.truncate(width, overflow="ellipsis", pad=True)
            line = Text(" " * GAP).join(one)
            line.rstrip()
            made.print(line, soft_wrap=True)


def _lines(made: Console, row: list[Text], fold: int, width: int) -> list[list[Text]]:
    """Split a row whose cell is too wide into several; the other cells are in the first."""
    first, *more = row[fold].wrap(made, width) or [Text()]
    below = [[part if at == fold else Text() for at in range(len(row))] for part in more]
    return [[first if at == fold else cell for at, cell in enumerate(row)], *below]
