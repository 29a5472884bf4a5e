"""Two kinds of the same work, measured in pairs.

Both halves of a pair run right after each other, who begins changes from pair to pair, and what counts is the ratio
within each: whatever makes the machine slow for a while makes both halves slow. The middle of all ratios is the answer,
and drawing as many pairs again and again from those that were measured says how far it can be trusted."""

import random
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

DRAWS = 2_000
SURE = 0.95


class Pair(NamedTuple):
    """The same measure of one round of each kind; the less the better."""

    without: float
    with_it: float

    @property
    def share(self) -> float:
        """How much of what it takes is the cost; the same share of the throughput is lost."""
        return 1 - self.without / self.with_it

    @property
    def more(self) -> float:
        return self.with_it - self.without


class MedianEstimate(NamedTuple):
    """The middle of many, and between which bounds it lies as far as can be told."""

    value: float
    low: float
    high: float


def median_estimate(found: Sequence[float]) -> MedianEstimate:
    """The same each time for the same numbers: chance has a seed."""
    chance = random.Random(len(found))
    drawn = sorted(statistics.median(chance.choices(found, k=len(found))) for _ in range(DRAWS))
    outside = round(DRAWS * (1 - SURE) / 2)
    return MedianEstimate(statistics.median(found), drawn[outside], drawn[-1 - outside])


def pair(one: Callable[[bool], tuple[float, ...]], number: int) -> tuple[Pair, ...]:
    """One round of each kind, and of each thing that `one` measures a pair."""
    first = number % 2 == 0
    found = {kind: one(kind) for kind in (first, not first)}
    return tuple(Pair(*both) for both in zip(found[False], found[True], strict=True))
