"""Lines over an axis, straight or as steps, with a band for the deviation.

However many points there are, only visible ones are drawn: for each pixel column the first, the lowest, the highest and
the last, so that no peak is lost."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise

from mendflow.pages.charts.frame import AxisFooter, Plot, colour, dash, frame_chart, plot_of
from mendflow.pages.charts.model import LineChart, LineSeries, Point
from mendflow.pages.charts.scales import Axis, axis
from mendflow.pages.charts.style import label, line
from mendflow.pages.charts.tables import description
from mendflow.pages.formatting import escape_html

COLUMNS_A_PIXEL = 2


def draw_lines(chart: LineChart) -> str:
    shown = [each for each in chart.series if each.points]
    high = max(y + each.error(at) for each in shown for at, (_, y) in enumerate(each.points))
    end = max(each.points[-1][0] for each in shown) or 1.0
    plot, along = plot_of(chart, axis(max(high, chart.top), chart.unit)), axis(end, chart.x_unit)
    across = _XAxis(plot, end)
    middle = [_band(plot, across, index, each, chart.steps) for index, each in enumerate(chart.series) if each.errors]
    middle += [_line(plot, across, index, each, chart.steps) for index, each in enumerate(chart.series) if each.points]
    return frame_chart(chart, plot, "\n".join(middle), _marks(plot, across, along), description(chart))


class _XAxis:
    """Positions along the axis: it ends with the data, at a tick or not, since time does not stop at round numbers."""

    def __init__(self, plot: Plot, end: float) -> None:
        self._plot = plot
        self.end = end

    def x(self, value: float) -> float:
        return self._plot.left + (self._plot.right - self._plot.left) * value / self.end


def _marks(plot: Plot, across: _XAxis, along: Axis) -> AxisFooter:
    words, behind = [], []
    for tick, word in zip(along.ticks, along.words(), strict=True):
        if tick > across.end:
            break
        x = across.x(tick)
        behind.append(line("grid", x, plot.top, x, plot.bottom) if tick else "")
        words.append(label(x, plot.bottom + 18, word, "quiet", anchor="end" if x > plot.right - 12 else "middle"))
    return AxisFooter("".join(words), 24, "".join(behind))


def _line(plot: Plot, across: _XAxis, index: int, series: LineSeries, steps: bool) -> str:
    shown = _seen((across.x(x), plot.y(y)) for x, y in series.points)
    return (
        f'<path class="line s{colour(index)}" d="{_path(shown, steps)}"{dash(index)}>'
        f"<title>{escape_html(series.name)}</title></path>"
    )


def _band(plot: Plot, across: _XAxis, index: int, series: LineSeries, steps: bool) -> str:
    def edge(of: Callable[[float, float], float]) -> list[Point]:
        both = zip(series.points, series.errors, strict=True)
        return list(_seen((across.x(x), plot.y(max(of(y, error), 0.0))) for (x, y), error in both))

    over, below = edge(lambda y, error: y + error), edge(lambda y, error: y - error)
    back = _path(reversed(_cornered(below) if steps else below), False).replace("M", "L", 1)
    return f'<path class="band f{colour(index)}" d="{_path(over, steps)}{back}z"/>'


def _cornered(points: list[Point]) -> list[Point]:
    """The corners of steps as separate points."""
    corners = [(after[0], before[1]) for before, after in pairwise(points)]
    return [each for pair in zip(points, [*corners, points[-1]], strict=True) for each in pair]


def _seen(points: Iterable[Point]) -> Iterator[Point]:
    for _, column in groupby(points, key=lambda point: int(point[0] * COLUMNS_A_PIXEL)):
        there = list(column)
        if len(there) <= 4:
            yield from there
            continue
        heights = [y for _, y in there]
        kept = {0, heights.index(min(heights)), heights.index(max(heights)), len(there) - 1}
        yield from (there[at] for at in sorted(kept))


def _path(points: Iterable[Point], steps: bool) -> str:
    parts: list[str] = []
    for x, y in points:
        parts.append(f"M{x:.1f} {y:.1f}" if not parts else f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
    return "".join(parts)
