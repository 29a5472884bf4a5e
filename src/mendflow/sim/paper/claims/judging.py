"""How a sentence of the paper is held against what we see.

A claim is a sentence, the figure that it is about, and a function of our results. The function answers with what is
seen, as a sentence, and with whether that is what the paper states. Where the paper says "much", "severely" or
"almost", the function says how much we take that to mean."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from mendflow.sim.paper.samples import Sample, Summary, summary
from mendflow.sim.paper.settings import Setup


class Finding(msgspec.Struct, frozen=True):
    """Whether what is seen is what the paper states, and what is seen."""

    holds: bool
    seen: str


class Results:
    """Samples by their setup, with what is asked of them."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._of: dict[Setup, list[Sample]] = {}
        for sample in samples:
            self._of.setdefault(sample.setup, []).append(sample)

    def __contains__(self, setup: Setup) -> bool:
        return setup in self._of

    def setups(self) -> list[Setup]:
        return list(self._of)

    def of(self, setup: Setup) -> Sequence[Sample]:
        return self._of[setup]

    def told(self, setup: Setup, what: str) -> Summary:
        """Mean and deviation of one number of a run, by its name in Sample."""
        return summary([getattr(sample, what) for sample in self._of[setup]])

    def mean(self, setup: Setup, what: str) -> float:
        return self.told(setup, what).mean


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """`needs` are the setups that it looks at."""

    id: str
    figure: int
    sentence: str
    needs: tuple[Setup, ...]
    look: Callable[[Results], Finding]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A claim, and what became of it."""

    id: str
    figure: int
    sentence: str
    holds: bool
    seen: str


def states(id: str, sentence: str, *, needs: tuple[Setup, ...]) -> Callable[[Callable[[Results], Finding]], Claim]:
    """The function below looks whether this sentence holds. The number of its figure stands before the dot."""
    figure = int(id.partition(".")[0])
    return lambda look: Claim(id=id, figure=figure, sentence=sentence, needs=needs, look=look)


def judge(claims: Iterable[Claim], results: Results) -> list[Judged]:
    """What became of those claims whose runs are there."""
    return [_judged(claim, claim.look(results)) for claim in claims if all(setup in results for setup in claim.needs)]


def _judged(claim: Claim, found: Finding) -> Judged:
    return Judged(id=claim.id, figure=claim.figure, sentence=claim.sentence, holds=found.holds, seen=found.seen)


def minutes(seconds: float) -> str:
    """Seconds as people say them."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def percent(part: float) -> str:
    return f"{100 * part:.0f} %"
