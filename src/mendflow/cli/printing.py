"""What goes to the terminal: tables that fit it, JSON for programs, and nothing that a job could have smuggled in."""

import os
import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mendflow.report.words import one_line

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
    "silent": "yellow",
    "reused": "cyan",
}
CELL_CHARS_MAX = 400
WIDTH_PIPED = 160
"""Tables that go into a file or a pipe need not fit a screen, only a reader."""


def console(*, err: bool = False) -> Console:
    """Plain text: no markup, no emoji, no guessing of colours from content."""
    return Console(stderr=err, markup=False, emoji=False, highlight=False)


def print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def say(text: str | Text = "", *, err: bool = False) -> None:
    console(err=err).print(text, soft_wrap=True)


def state_text(state: str) -> Text:
    return Text(state, style=STYLES.get(state, ""))


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], *, fold: int = -1) -> None:
    """A table without lines. All columns keep their content whole but the one to fold, which gives way."""
    cells = [[cell if isinstance(cell, Text) else Text(one_line(cell, CELL_CHARS_MAX)) for cell in row] for row in rows]
    made = console()
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDTH_PIPED
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, head in enumerate(heads):
        width = max([len(head), *(row[index].cell_len for row in cells)])
        gives_way = index == fold % len(heads)
        table.add_column(head, no_wrap=True, overflow="ellipsis", min_width=None if gives_way else width)
    for row in cells:
        table.add_row(*row)
    made.print(table)
