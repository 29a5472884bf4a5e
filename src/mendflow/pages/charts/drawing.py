"""A chart as a whole SVG file."""

from mendflow.pages.charts.bars import draw_bars
from mendflow.pages.charts.lines import draw_lines
from mendflow.pages.charts.model import BarChart, Chart


def draw_chart(chart: Chart) -> str:
    return draw_bars(chart) if isinstance(chart, BarChart) else draw_lines(chart)
