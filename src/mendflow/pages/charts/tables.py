"""The figures of a chart in words and rows: for screen readers, and for further processing."""

import csv
import io

from mendflow.pages.charts.model import BarChart, Chart, LineChart
from mendflow.pages.charts.scales import value_with_error

CSV_DIGITS = 9


def rows_of(chart: Chart) -> list[tuple[str, ...]]:
    """Heads first. Of bars a row for each bar, of lines one for each point."""
    if isinstance(chart, BarChart):
        return [("group", "series", "mean", "deviation"), *_bar_rows(chart)]
    heads = (chart.x_label or "x", "series", chart.y_label or "y", "deviation")
    return [heads, *_point_rows(chart)]


def csv_of(chart: Chart) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows_of(chart))
    return text.getvalue()


def description(chart: Chart) -> str:
    """What the chart shows, in a few sentences."""
    if isinstance(chart, LineChart):
        ends = [
            f"{each.name}: {len(each.points)} points,"
            f" highest {value_with_error(max(y for _, y in each.points), 0.0, chart.unit)}"
            for each in chart.series
            if each.points
        ]
        return f"Lines of {chart.y_label or 'values'} over {chart.x_label or 'x'}. " + ". ".join(ends) + "."
    groups = [
        f"{group}: "
        + ", ".join(
            f"{each.name} {value_with_error(each.values[at], each.error(at), chart.unit)}" for each in chart.series
        )
        for at, group in enumerate(chart.groups)
    ]
    return f"Bars of {chart.y_label or 'values'}. " + ". ".join(groups) + "."


def number_text(value: float | None) -> str:
    """A number for programs: only significant digits, so that the same run gives the same bytes."""
    return "" if value is None else f"{value:.{CSV_DIGITS}g}"


def _bar_rows(chart: BarChart) -> list[tuple[str, ...]]:
    return [
        (group, each.name, number_text(each.values[at]), number_text(each.error(at)) if each.errors else "")
        for at, group in enumerate(chart.groups)
        for each in chart.series
    ]


def _point_rows(chart: LineChart) -> list[tuple[str, ...]]:
    return [
        (number_text(x), each.name, number_text(y), number_text(each.errors[at]) if each.errors else "")
        for each in chart.series
        for at, (x, y) in enumerate(each.points)
    ]
