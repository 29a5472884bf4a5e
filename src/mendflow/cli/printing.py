"""What goes to the terminal: tables that fit it, JSON for programs, and nothing that a job could have smuggled in."""

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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    count = len(heads)
    for index, head in enumerate(heads):
        gives_way = index == fold % count
        table.add_column(
            head, no_wrap=True, overflow="ellipsis" if gives_way else "fold", ratio=1 if gives_way else None
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else one_line(cell, 400) for cell in row))
    made = console()
    if not made.is_terminal and "COLUMNS" not in made._environ:
        made.width = WIDTH_PIPED
    made.print(table)
