"""What a chart shows, independent of how it is drawn.

A `BarChart` compares a few numbers, each with a deviation. A `LineChart` follows numbers along an axis, mostly time.
Every value has a unit."""

import math
from itertools import pairwise
from typing import Literal

import msgspec

Unit = Literal["number", "seconds", "time", "share", "bytes"]
"""How a value is printed: 1,200 | 1,200 (the label names seconds) | 20 m | 40 % (of 0.4) | 1.2 kB."""
Point = tuple[float, float]


class BarSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One colour of a bar chart: a value for each group (None if there is none), and a deviation for each."""

    name: str
    values: tuple[float | None, ...]
    errors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        assert not self.errors or len(self.errors) == len(self.values), f"{self.name}: an error for each value"
        assert all(value is None or (math.isfinite(value) and value >= 0) for value in self.values), self.name
        assert all(math.isfinite(error) and error >= 0 for error in self.errors), self.name

    def error(self, index: int) -> float:
        return self.errors[index] if self.errors else 0.0


class BarChart(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of bars, one bar of each series in each group."""

    title: str
    groups: tuple[str, ...]
    series: tuple[BarSeries, ...]
    y_label: str = ""
    x_label: str = ""
    unit: Unit = "number"
    note: str = ""
    """A sentence under the chart: what the bars are means of, what the whiskers are."""
    top: float = 0.0
    """The axis goes at least this high."""

    def __post_init__(self) -> None:
        assert self.groups and self.series, f"{self.title}: a chart without bars"
        assert all(len(each.values) == len(self.groups) for each in self.series), (
            f"{self.title}: a value for each group"
        )


class LineSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One line: points with ascending x, and optionally the deviation at each, drawn as a band."""

    name: str
    points: tuple[Point, ...]
    errors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        assert not self.errors or len(self.errors) == len(self.points), f"{self.name}: an error for each point"
        assert all(math.isfinite(x) and math.isfinite(y) and y >= 0 for x, y in self.points), self.name
        assert all(one[0] <= other[0] for one, other in pairwise(self.points)), self.name

    def error(self, index: int) -> float:
        return self.errors[index] if self.errors else 0.0


class LineChart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over one axis. `steps` is for values that hold until they change, such as the number of running jobs."""

    title: str
    series: tuple[LineSeries, ...]
    x_label: str = ""
    y_label: str = ""
    x_unit: Unit = "time"
    unit: Unit = "number"
    steps: bool = False
    note: str = ""
    top: float = 0.0

    def __post_init__(self) -> None:
        assert any(each.points for each in self.series), f"{self.title}: a chart without points"


Chart = BarChart | LineChart
