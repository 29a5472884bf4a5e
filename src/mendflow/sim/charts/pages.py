"""Several figures as files and as one page: each drawing with a paragraph, and its data for those who want to count."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from mendflow.pages.document import document, figure
from mendflow.pages.words import escaped
from mendflow.sim.charts.drawing import drawn
from mendflow.sim.charts.model import Chart, Lines
from mendflow.sim.charts.style import STYLE
from mendflow.sim.charts.tables import csv_of, rows_of

CELL_CHARS_MAX = 48


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with the name of its files, and what there is to say about it."""

    name: str
    chart: Chart
    text: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows for people, each cell ready to be read."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""


def write_figures(folder: Path, figures: Iterable[Figure]) -> list[Path]:
    """Each figure as NAME.svg and its data as NAME.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for each in figures:
        for ending, text in (("svg", drawn(each.chart)), ("csv", csv_of(each.chart))):
            path = folder / f"{each.name}.{ending}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def page(
    title: str,
    intro: str,
    figures: Sequence[Figure],
    tables: Sequence[Table] = (),
    numbers: Sequence[tuple[str, str]] = (),
) -> str:
    """All of it as one page. `numbers` are what one looks for first: a value and what it is."""
    head = f"<header><h1>{escaped(title)}</h1>{_paragraph(intro)}"
    if numbers:
        head += f'<div class="figures">{"".join(figure(value, escaped(word)) for value, word in numbers)}</div>'
    body = "".join(map(_table, tables)) + "".join(map(_figure, figures))
    return document(title, f"{head}</header><main>{body}</main>", more_styles=(STYLE,))


def _figure(each: Figure) -> str:
    data = (
        ""
        if isinstance(each.chart, Lines)
        else f"<details><summary>Data</summary>{_rows(*rows_of(each.chart))}</details>"
    )
    drawing = drawn(each.chart).replace('class="chart"', 'class="chart bare"', 1)
    return (
        f'<section id="{escaped(each.name)}"><div class="scroll">{drawing}</div>{_paragraph(each.text)}{data}</section>'
    )


def _table(table: Table) -> str:
    inner = f'<div class="scroll">{_rows(table.heads, *table.rows)}</div>'
    return f"<section><h2>{escaped(table.title)}</h2>{_paragraph(table.text)}{inner}</section>"


def _rows(heads: Sequence[str], *rows: Sequence[str]) -> str:
    """Columns of numbers and names stay on one line, those with sentences do not."""
    texts = [any(len(row[at]) > CELL_CHARS_MAX for row in rows) for at in range(len(heads))]
    top = "".join(f"<th>{escaped(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row, texts))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, is_text: bool) -> str:
    return f'<td class="remark">{escaped(text)}</td>' if is_text else f"<td>{escaped(text)}</td>"


def _paragraph(text: str) -> str:
    return "".join(f"<p>{escaped(part)}</p>" for part in text.split("\n\n") if part)
