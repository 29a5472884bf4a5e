"""Several figures as files and as one page: each drawing with a paragraph, and its data."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from mendflow.pages.charts.drawing import draw_chart
from mendflow.pages.charts.model import Chart, LineChart
from mendflow.pages.charts.style import STYLE
from mendflow.pages.charts.tables import csv_of, rows_of
from mendflow.pages.document import document, figure
from mendflow.pages.formatting import escape_html

CELL_CHARS_MAX = 48


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with the name of its files, and a text about it."""

    name: str
    chart: Chart
    text: str = ""


class ChartTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rows for people, with formatted cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""


def write_figures(folder: Path, figures: Iterable[Figure]) -> list[Path]:
    """Each figure as NAME.svg and its data as NAME.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for each in figures:
        for ending, text in (("svg", draw_chart(each.chart)), ("csv", csv_of(each.chart))):
            path = folder / f"{each.name}.{ending}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def page(
    title: str,
    intro: str,
    figures: Sequence[Figure],
    tables: Sequence[ChartTable] = (),
    numbers: Sequence[tuple[str, str]] = (),
) -> str:
    """Everything as one page. `numbers` are the headline figures: a value and its label."""
    head = f"<header><h1>{escape_html(title)}</h1>{_paragraph(intro)}"
    if numbers:
        head += f'<div class="figures">{"".join(figure(value, escape_html(word)) for value, word in numbers)}</div>'
    body = "".join(map(_table, tables)) + "".join(map(_figure, figures))
    return document(title, f"{head}</header><main>{body}</main>", more_styles=(STYLE,))


def _figure(each: Figure) -> str:
    data = (
        ""
        if isinstance(each.chart, LineChart)
        else f"<details><summary>Data</summary>{_rows(*rows_of(each.chart))}</details>"
    )
    drawing = draw_chart(each.chart).replace('class="chart"', 'class="chart bare"', 1)
    scroll = f'<div class="scroll">{drawing}</div>'
    return f'<section id="{escape_html(each.name)}">{scroll}{_paragraph(each.text)}{data}</section>'


def _table(table: ChartTable) -> str:
    inner = f'<div class="scroll">{_rows(table.heads, *table.rows)}</div>'
    return f"<section><h2>{escape_html(table.title)}</h2>{_paragraph(table.text)}{inner}</section>"


def _rows(heads: Sequence[str], *rows: Sequence[str]) -> str:
    """Columns of numbers and names do not wrap, those with sentences do."""
    texts = [any(len(row[at]) > CELL_CHARS_MAX for row in rows) for at in range(len(heads))]
    top = "".join(f"<th>{escape_html(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row, texts))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, is_text: bool) -> str:
    return f'<td class="remark">{escape_html(text)}</td>' if is_text else f"<td>{escape_html(text)}</td>"


def _paragraph(text: str) -> str:
    return "".join(f"<p>{escape_html(part)}</p>" for part in text.split("\n\n") if part)
