"""What a scenario found: one sentence, a table for people, and a figure.

Numbers come from several seeds. A table shows their mean and, after a sign, their standard deviation;
of a single seed there is none."""

from collections.abc import Callable, Sequence

import msgspec

from experiments.paper.samples import summary
from mendflow.pages.charts.model import BarSeries
from mendflow.pages.charts.pages import ChartTable, Figure

Tell = Callable[[str], None]


class ScenarioPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario is played: with which seeds, and with how many jobs where it can be any number; 0: as it says."""

    seeds: tuple[int, ...]
    jobs: int = 0
    tell: Tell = lambda _: None


class MachineCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario cost this machine this time."""

    sentence: str
    numbers: dict[str, float]
    table: ChartTable


class ScenarioFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`sentence` is what one should know of it; `numbers` are what it says, by name, for programs. What was `measured`
    of this machine is kept apart: all else is the same whenever the seed is."""

    sentence: str
    numbers: dict[str, float]
    table: ChartTable
    figures: tuple[Figure, ...] = ()
    measured: MachineCost | None = None


def bars(name: str, values: Sequence[Sequence[float]]) -> BarSeries:
    """A series of bars from the numbers of each group."""
    told = [summary(each) for each in values]
    return BarSeries(name=name, values=tuple(each.mean for each in told), errors=tuple(each.deviation for each in told))


def seed_note(seeds: Sequence[int]) -> str:
    """What bars and whiskers are, for the note under a chart."""
    return f"Mean of {len(seeds)} seeds; whiskers are a standard deviation." if len(seeds) > 1 else "One seed."


def mean(values: Sequence[float]) -> float:
    return summary(values).mean


def share(values: Sequence[float]) -> str:
    return _spread(values, lambda value: f"{value:.1%}")


def minutes(values: Sequence[float]) -> str:
    return _spread(values, lambda seconds: f"{seconds / 60:.1f}") + " min"


def number(values: Sequence[float]) -> str:
    return _spread(values, lambda value: f"{value:,.0f}")


def _spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    told = summary(values)
    return f"{text(told.mean)} ± {text(told.deviation)}" if told.runs > 1 else text(told.mean)
