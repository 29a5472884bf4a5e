"""What a scenario found: one sentence, a table for people, and a figure.

Numbers come from several seeds. A table shows their mean and, after a sign, their standard deviation."""

from collections.abc import Callable, Sequence

import msgspec

from mendflow.sim.charts.model import BarSeries
from mendflow.sim.charts.pages import Figure, Table
from mendflow.sim.paper.samples import summary

Tell = Callable[[str], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario is played: with which seeds, and with how many jobs where it can be any number; 0: as it says."""

    seeds: tuple[int, ...]
    jobs: int = 0
    tell: Tell = lambda _: None


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """`sentence` is what one should know of it; `numbers` are what it says, by name, for programs."""

    sentence: str
    numbers: dict[str, float]
    table: Table
    figures: tuple[Figure, ...] = ()


def bars(name: str, values: Sequence[Sequence[float]]) -> BarSeries:
    """A series of bars from the numbers of each group."""
    told = [summary(each) for each in values]
    return BarSeries(name=name, values=tuple(each.mean for each in told), errors=tuple(each.deviation for each in told))


def mean(values: Sequence[float]) -> float:
    return summary(values).mean


def share(values: Sequence[float]) -> str:
    told = summary(values)
    return f"{told.mean:.1%} ± {told.deviation:.1%}"


def minutes(values: Sequence[float]) -> str:
    told = summary(values)
    return f"{told.mean / 60:.1f} ± {told.deviation / 60:.1f} min"


def number(values: Sequence[float]) -> str:
    told = summary(values)
    return f"{told.mean:,.0f} ± {told.deviation:,.0f}"
