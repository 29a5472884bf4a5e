"""A chart as a whole SVG file."""

from mendflow.sim.charts.bars import drawn_bars
from mendflow.sim.charts.lines import drawn_lines
from mendflow.sim.charts.model import Bars, Chart


def drawn(chart: Chart) -> str:
    return drawn_bars(chart) if isinstance(chart, Bars) else drawn_lines(chart)
