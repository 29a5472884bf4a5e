"""How much memory, or time, to ask for: learned from the finished runs of jobs of the same name.

Until three runs are known a job is a scout: it asks for three quarters of its bound, because people ask for more than
is needed, and once a run is known for no more than what it would be raised to after a failure; or for nothing if it has
no bound. After that, each of a few plain estimates (the largest use so far; the
largest of runs with a similar input; a line over the size of the input) with each of a few margins is one strategy. Of
every finished run it is worked out what each strategy would have wasted on it, failed attempts included, before the run
is learned from; the strategy that has wasted least is asked. All of it is arithmetic on at most 100 runs."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

RUNS_MAX: Final = 100
"""So many runs are remembered: the latest."""

SCOUTS: Final = 3
"""A spread can be seen from three runs on; before that they say too little, also because short runs end first."""

SCOUT_SHARE: Final = 0.75
"""What a scout asks for of its bound."""

RAISE: Final = 2.5
"""After a failure so many times as much. Less means further failures, and each costs a whole attempt."""

FORGET: Final = 0.95
"""What a strategy wasted counts so much less with each further run: what jobs need changes over time."""

REACH: Final = 2.0
"""A line is believed up to so many times the largest use so far."""

NEAREST_MIN: Final = 2

Basis = Literal["largest", "similar input", "line over input", "bound"]
Strategy = tuple[Basis, float]


class SizeTraits(msgspec.Struct, frozen=True, kw_only=True):
    """How an amount is learned: the margins that are tried over an estimate, `usual_margin` while nothing speaks for
    another, and `headroom`, which is added always."""

    margins: tuple[float, ...]
    usual_margin: float
    headroom: int


MEMORY: Final = SizeTraits(margins=(0.02, 0.05, 0.1, 0.2, 0.4), usual_margin=0.1, headroom=64 * 1024 * 1024)
TIME: Final = SizeTraits(margins=(0.5, 1.0, 2.0), usual_margin=1.0, headroom=60_000)
"""The same job takes longer on a busy or slow machine, and a limit of time costs nobody anything: margins are wide."""


class FinishedRun(msgspec.Struct, frozen=True):
    """A run that succeeded: the size of its inputs, what it used of the amount, its bound (0: none), and the weight of
    what it wastes: of memory how long it ran."""

    input_bytes: int
    used: int
    bound: int = 0
    weight: float = 1.0


class SizeAnswer(msgspec.Struct, frozen=True):
    """What to ask for (0: nothing), and why."""

    amount: int
    basis: Basis | Literal["scout", "raised"]
    margin: float = 0.0
    runs: int = 0


class SizeModel:
    """What is known of one amount of the jobs of one name."""

    def __init__(self, traits: SizeTraits = MEMORY, runs: Iterable[FinishedRun] = ()) -> None:
        self.traits = traits
        self.runs: deque[FinishedRun] = deque(maxlen=RUNS_MAX)
        self.wasted: dict[Strategy, float] = {}
        self.scout_failed = False
        for run in runs:
            self.learn(run)

    @property
    def largest(self) -> int:
        return max((run.used for run in self.runs), default=0)

    def ask(self, input_bytes: int, bound: int = 0) -> SizeAnswer:
        """For a first attempt: never more than the bound."""
        known = len(self.runs)
        if known < SCOUTS:
            return SizeAnswer(self._scout(bound), "scout", runs=known)
        found = self._candidates(input_bytes, bound)
        best = min(found, key=self._rank)
        return SizeAnswer(found[best], best[0], best[1], known)

    def ask_more(self, last: int, bound: int = 0) -> SizeAnswer:
        """After an attempt that failed with `last`: always more than that, and no more than the bound unless the bound
        has failed too."""
        return SizeAnswer(self._raised(last, bound), "raised", runs=len(self.runs))

    def note_failure(self) -> None:
        """An attempt had too little. While too few runs are known, later jobs ask for all that they may."""
        self.scout_failed = self.scout_failed or len(self.runs) < SCOUTS

    def learn(self, run: FinishedRun) -> None:
        """Charge every strategy with what it would have wasted on the run, then remember the run."""
        if self.runs:
            for strategy, amount in self._candidates(run.input_bytes, run.bound).items():
                wasted = self._waste(amount, run)
                self.wasted[strategy] = FORGET * self.wasted.get(strategy, 0.0) + wasted
        self.runs.append(run)

    def _scout(self, bound: int) -> int:
        if not bound or self.scout_failed:
            return bound
        share = int(SCOUT_SHARE * bound)
        if not self.runs:
            return share
        known = self._with_margin(self.largest)
        return min(bound, max(known, min(share, int(RAISE * known))))

    def _candidates(self, input_bytes: int, bound: int) -> dict[Strategy, int]:
        """The request of every strategy."""
        found: dict[Strategy, int] = {("bound", 0.0): bound} if bound else {}
        for basis, estimate in estimates(self.runs, input_bytes).items():
            for margin in self.traits.margins:
                wanted = int(estimate * (1 + margin)) + self.traits.headroom
                found[basis, margin] = min(wanted, bound) if bound else wanted
        return found

    def _rank(self, strategy: Strategy) -> tuple[float, float]:
        """Least waste first; of equals the plainest."""
        basis, margin = strategy
        return self.wasted.get(strategy, 0.0), abs(margin - self.traits.usual_margin) + (basis != "largest")

    def _with_margin(self, estimate: int) -> int:
        return int(estimate * (1 + self.traits.usual_margin)) + self.traits.headroom

    def _raised(self, last: int, bound: int) -> int:
        wanted = max(int(RAISE * last) + 1, self._with_margin(self.largest))
        return min(wanted, bound) if bound > last else wanted

    def _waste(self, amount: int, run: FinishedRun) -> float:
        wasted, bound = 0, max(run.bound, run.used) if run.bound else 0
        while amount < run.used:
            wasted += amount
            amount = self._raised(amount, bound)
        return (wasted + amount - run.used) * run.weight


def estimates(runs: Sequence[FinishedRun], input_bytes: int) -> dict[Basis, float]:
    """What a job with that input may use, by each of the plain ways to tell."""
    largest = max(run.used for run in runs)
    if len(runs) < SCOUTS:
        return dict.fromkeys(("largest", "similar input", "line over input"), largest)
    nearest = sorted(runs, key=lambda run: abs(run.input_bytes - input_bytes))
    count = max(NEAREST_MIN, round(math.sqrt(len(runs))))
    return {
        "largest": largest,
        "similar input": max(run.used for run in nearest[:count]),
        "line over input": min(line_above(runs, input_bytes), REACH * largest),
    }


def line_above(runs: Sequence[FinishedRun], input_bytes: int) -> float:
    """The line through input size and use, never falling, moved up until no run is above it."""
    count = len(runs)
    middle = sum(run.input_bytes for run in runs) / count
    use = sum(run.used for run in runs) / count
    spread = sum((run.input_bytes - middle) ** 2 for run in runs)
    together = sum((run.input_bytes - middle) * (run.used - use) for run in runs)
    slope = max(0.0, together / spread) if spread > 0 else 0.0
    return max(0.0, slope * input_bytes + max(run.used - slope * run.input_bytes for run in runs))
