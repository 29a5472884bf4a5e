"""The frame of all charts: background, title, legend, value axis, and note.

The frame is laid out from the top down, and each part reports its height; the plot gets the rest."""

import msgspec

from mendflow.pages.charts.model import Chart, LineChart
from mendflow.pages.charts.scales import Axis
from mendflow.pages.charts.style import COLOURS, DASHES, STYLE, label, line, shorten_text, text_width, wrap_text
from mendflow.pages.formatting import escape_html

WIDTH, PLOT_HEIGHT, PAD = 760.0, 270.0, 20.0
KEY, ROW = 14.0, 20.0


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """The plot area, which maps values to positions."""

    left: float
    right: float
    top: float
    bottom: float
    axis: Axis

    def y(self, value: float) -> float:
        return self.bottom - self.axis.share(value) * (self.bottom - self.top)


class AxisFooter(msgspec.Struct, frozen=True):
    """What is below the base line, its height, and its grid lines."""

    svg: str
    height: float
    behind: str = ""


def plot_of(chart: Chart, axis: Axis) -> Plot:
    widest = max(text_width(word) for word in axis.words())
    left = PAD + widest + 8 + (18 if chart.y_label else 0)
    top = PAD + 28 + ROW * len(_legend_rows(chart)) + 18
    return Plot(left=left, right=WIDTH - PAD, top=top, bottom=top + PLOT_HEIGHT, axis=axis)


def frame_chart(chart: Chart, plot: Plot, middle: str, under: AxisFooter, description: str) -> str:
    """The whole file."""
    notes = wrap_text(chart.note, WIDTH - 2 * PAD, 3)
    below = plot.bottom + under.height
    words = label((plot.left + plot.right) / 2, below + 16, chart.x_label, "quiet", anchor="middle")
    below += 22 if chart.x_label else 0
    remarks = "".join(label(PAD, below + 22 + 16 * row, note, "quiet") for row, note in enumerate(notes))
    height = below + (10 + 16 * len(notes) if notes else 0) + PAD - 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{WIDTH:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH:.0f} {height:.0f}">\n<title>{escape_html(chart.title)}</title>\n'
        f"<desc>{escape_html(description)}</desc>\n<style>{STYLE}</style>\n"
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1:.0f}" height="{height - 1:.0f}" rx="14"/>\n'
        f"{label(PAD, PAD + 14, shorten_text(chart.title, WIDTH - 2 * PAD, 16), 'title')}\n{_legend(chart)}\n"
        f"{_values(chart, plot)}{under.behind}\n{middle}\n"
        f"{line('base', plot.left, plot.bottom, plot.right, plot.bottom)}\n"
        f"{under.svg}{words if chart.x_label else ''}{remarks}\n</svg>\n"
    )


def colour(index: int) -> int:
    return index % COLOURS


def dash(index: int) -> str:
    pattern = DASHES[index % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _values(chart: Chart, plot: Plot) -> str:
    parts = []
    for tick, word in zip(plot.axis.ticks, plot.axis.words(), strict=True):
        y = plot.y(tick)
        if tick:
            parts.append(line("grid", plot.left, y, plot.right, y))
        parts.append(label(plot.left - 8, y + 4, word, "quiet", anchor="end"))
    if chart.y_label:
        parts.append(label(PAD + 8, (plot.top + plot.bottom) / 2, chart.y_label, "quiet", anchor="middle", turn=True))
    return "".join(parts)


def _legend_rows(chart: Chart) -> list[list[tuple[int, str, float]]]:
    """Names with their positions, in as many rows as needed; a single one is in the title."""
    rows: list[list[tuple[int, str, float]]] = []
    x = WIDTH
    names = [each.name for each in chart.series]
    for index, name in enumerate(names if len(names) > 1 else ()):
        wide = KEY + 6 + text_width(name) + 16
        if x + wide > WIDTH - PAD:
            rows.append([])
            x = PAD
        rows[-1].append((index, name, x))
        x += wide
    return rows


def _legend(chart: Chart) -> str:
    parts = []
    for row, entries in enumerate(_legend_rows(chart)):
        middle = PAD + 34 + ROW * row
        for index, name, x in entries:
            parts.append(_key(chart, index, x, middle) + label(x + KEY + 6, middle + 4, name))
    return "".join(parts)


def _key(chart: Chart, index: int, x: float, middle: float) -> str:
    shade = colour(index)
    if isinstance(chart, LineChart):
        y = f"{middle:.1f}"
        return f'<line class="line s{shade}" x1="{x:.1f}" x2="{x + KEY + 2:.1f}" y1="{y}" y2="{y}"{dash(index)}/>'
    return (
        f'<rect class="f{shade}" x="{x:.1f}" y="{middle - KEY / 2:.1f}" width="{KEY:.0f}" height="{KEY:.0f}" rx="3"/>'
    )
