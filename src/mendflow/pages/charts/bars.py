"""Grouped bars, each with its value above it and a whisker for the deviation.

The bars share the width of their group; a value is printed only where it does not overlap its neighbour, and is always
in the tooltip."""

from mendflow.pages.charts.frame import AxisFooter, Plot, colour, frame_chart, plot_of
from mendflow.pages.charts.model import BarChart, BarSeries
from mendflow.pages.charts.scales import axis, value_text, value_with_error
from mendflow.pages.charts.style import label, text_width, wrap_text
from mendflow.pages.charts.tables import description
from mendflow.pages.formatting import escape_html

BAR_WIDTH_MAX, GAP = 54.0, 3.0
GROUP_SHARE = 0.78
LABEL_SIZE = 10.5
HEADROOM = 1.06
"""The value above the highest whisker needs room below the top of the axis."""


def draw_bars(chart: BarChart) -> str:
    plot = plot_of(chart, axis(_highest(chart), chart.unit))
    middle = "\n".join(_bars(chart, plot, index, each) for index, each in enumerate(chart.series))
    return frame_chart(chart, plot, middle, _group_names(chart, plot), description(chart))


def _highest(chart: BarChart) -> float:
    """The top of the axis. Shares of at most 1 need no mark above 100 %, whatever the whiskers."""
    bars = [
        (value, each.error(at)) for each in chart.series for at, value in enumerate(each.values) if value is not None
    ]
    high = max((value + error for value, error in bars), default=0.0) * HEADROOM
    if chart.unit == "share" and all(value <= 1 for value, _ in bars):
        high = min(high, 1.0)
    return max(high, chart.top)


def _group_width(chart: BarChart, plot: Plot) -> float:
    return (plot.right - plot.left) / len(chart.groups)


def _bars(chart: BarChart, plot: Plot, number: int, series: BarSeries) -> str:
    count, room = len(chart.series), _group_width(chart, plot)
    thick = min(room * GROUP_SHARE / count, BAR_WIDTH_MAX)
    parts = []
    for index, value in enumerate(series.values):
        x = plot.left + room * (index + 0.5) + thick * (number - count / 2)
        if value is None:
            parts.append(label(x + thick / 2, plot.bottom - 5, "–", "none", anchor="middle"))
            continue
        title = f"{chart.groups[index]}, {series.name}: {value_with_error(value, series.error(index), chart.unit)}"
        y = plot.y(value)
        parts.append(
            f'<g><title>{escape_html(title)}</title><rect class="f{colour(number)}" x="{x + GAP / 2:.1f}" y="{y:.1f}" '
            f'width="{max(thick - GAP, 1):.1f}" height="{plot.bottom - y:.1f}" rx="2"/>'
            f"{_whisker(plot, x + thick / 2, thick, value, series.error(index))}</g>"
        )
        word = value_text(value, chart.unit)
        if text_width(word, LABEL_SIZE) <= thick + 6:
            above = plot.y(value + series.error(index)) - 5
            parts.append(label(x + thick / 2, above, word, "value", anchor="middle"))
    return "".join(parts)


def _whisker(plot: Plot, x: float, thick: float, value: float, error: float) -> str:
    if not error:
        return ""
    high, low, half = plot.y(value + error), plot.y(max(value - error, 0.0)), min(thick * 0.2, 6)
    caps = "".join(f"M{x - half:.1f} {y:.1f}H{x + half:.1f}" for y in (high, low))
    path = f"M{x:.1f} {high:.1f}V{low:.1f}{caps}"
    return f'<path class="halo" d="{path}"/><path class="whisker" d="{path}"/>'


def _group_names(chart: BarChart, plot: Plot) -> AxisFooter:
    room = _group_width(chart, plot)
    names = [wrap_text(group, room - 6, 3) for group in chart.groups]
    parts = [
        label(plot.left + room * (index + 0.5), plot.bottom + 18 + 15 * row, text, anchor="middle")
        for index, rows in enumerate(names)
        for row, text in enumerate(rows)
    ]
    return AxisFooter("".join(parts), 10 + 15 * max(len(rows) for rows in names))
