"""The scenarios' results, for eyes: as text and as a page."""

from collections.abc import Sequence
from typing import Final

import msgspec

from bench.recovery.play import PlayResult, play, without_failures
from bench.recovery.scenario import Scenario
from bench.recovery.strategies import NONE, STRATEGIES, Strategy

PAGE: Final = "docs/understand/failure-scenarios.md"


class Row(msgspec.Struct, frozen=True):
    """A scenario, how it goes in fair weather, and what each strategy made of it."""

    scenario: Scenario
    baseline: PlayResult
    by: dict[str, PlayResult]

    def lost_s(self, strategy: Strategy) -> float:
        """Seconds beyond what the work takes in fair weather; of a case that failed, all its seconds."""
        result = self.by[strategy.name]
        return result.seconds - self.baseline.seconds if result.recovered else result.seconds

    def extra(self, strategy: Strategy) -> int:
        return max(0, self.by[strategy.name].attempts - self.scenario.jobs)  # none was begun of what nobody takes


class StrategySummary(msgspec.Struct, frozen=True):
    recovered: int
    curable: int
    extra: int
    lost_s: float
    hopeless_s: float
    hopeless_extra: int
    hopeless: int


def measure(scenarios: Sequence[Scenario], strategies: Sequence[Strategy] = STRATEGIES) -> list[Row]:
    return [
        Row(one, play(without_failures(one), NONE), {strategy.name: play(one, strategy) for strategy in strategies})
        for one in scenarios
    ]


def summary(rows: Sequence[Row], strategy: Strategy) -> StrategySummary:
    """Over curable scenarios: how many were cured, at what price. Over the others: how soon that was known."""
    cured = [row for row in rows if row.by[strategy.name].recovered]
    hopeless = [row for row in rows if not row.scenario.curable]
    return StrategySummary(
        recovered=len(cured),
        curable=len(rows) - len(hopeless),
        extra=sum(row.extra(strategy) for row in cured),
        lost_s=sum(row.lost_s(strategy) for row in cured),
        hopeless_s=sum(row.lost_s(strategy) for row in hopeless),
        hopeless_extra=sum(row.extra(strategy) for row in hopeless),
        hopeless=len(hopeless),
    )


def compared(rows: Sequence[Row], one: Strategy, other: Strategy) -> str:
    """What two strategies cost where both of them help."""
    both = [row for row in rows if row.by[one.name].recovered and row.by[other.name].recovered]

    def cost(strategy: Strategy) -> str:
        extra, lost_s = sum(row.extra(strategy) for row in both), sum(row.lost_s(strategy) for row in both)
        return f"{strategy.name} {extra} extra attempts and {lost_s:,.0f} s"

    return f"Where both help, in {len(both)} scenarios, they cost in all: {cost(one)}, {cost(other)}."


def cells(row: Row, strategies: Sequence[Strategy]) -> list[str]:
    one = row.scenario
    told = [one.name, one.category.value, one.stage.value, one.pattern.value]
    for strategy in strategies:
        result = row.by[strategy.name]
        word = "well" if result.recovered else "failed" if result.over else "not over"
        told += [word, f"+{row.extra(strategy)}", f"{row.lost_s(strategy):,.0f}"]
    return told


def heads(strategies: Sequence[Strategy]) -> list[str]:
    each = [head for strategy in strategies for head in (strategy.name, "attempts", "s lost")]
    return ["scenario", "category", "stage", "handed over", *each]


def summed(rows: Sequence[Row], strategies: Sequence[Strategy]) -> list[list[str]]:
    lines = [
        [
            "strategy",
            "recovered",
            "extra attempts for each recovery",
            "seconds lost for each recovery",
            "hopeless ones: extra attempts",
            "hopeless ones: seconds until told",
        ]
    ]
    for strategy in strategies:
        found = summary(rows, strategy)
        cured, lost = max(1, found.recovered), max(1, found.hopeless)
        lines.append(
            [
                strategy.name,
                f"{found.recovered} of {found.curable} ({found.recovered / found.curable:.0%})",
                f"{found.extra / cured:.1f}",
                f"{found.lost_s / cured:,.0f}",
                f"{found.hopeless_extra / lost:.1f}",
                f"{found.hopeless_s / lost:,.0f}",
            ]
        )
    return lines


def text(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    shown.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(shown)


def ruled(lines: Sequence[Sequence[str]]) -> list[str]:
    first, *others = [f"| {' | '.join(line)} |" for line in lines]
    return [first, "|" + "---|" * len(lines[0]), *others]
