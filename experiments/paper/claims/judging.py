"""How a sentence of the paper is held against what we see.

A claim is a sentence, the figure that it is about, and a function of our results. The function answers with what is
seen, as a sentence, and with whether that is what the paper states. Where the paper says "much", "severely" or
"almost", the claim says how much we take that to mean, and every row of our tables has it beside what is seen. Some
claims are about what is so on the average: where one file in eighty makes the difference, or the one job that fails
most often. These do not fail with a few runs only: they stay open."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from experiments.paper.samples import Sample, SampleSummary, summary
from experiments.paper.settings import Setup

SEVERAL: Final = 5
"""So many seeds are enough for chance to even out in what claims look at."""


class ClaimFinding(msgspec.Struct, frozen=True):
    """Whether what is seen is what the paper states, and what is seen. It holds `weakly` if only the mildest reading of
    the sentence is true."""

    holds: bool
    seen: str
    weakly: bool = False


class SampleSet:
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

    def told(self, setup: Setup, what: str) -> SampleSummary:
        """Mean and deviation of one number of a run, by its name in Sample."""
        return summary([getattr(sample, what) for sample in self._of[setup]])

    def mean(self, setup: Setup, what: str) -> float:
        return self.told(setup, what).mean


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """`needs` are the setups that it looks at, `holds_if` says by what it is judged, and `runs` how many of each setup
    it takes before it can be said not to hold."""

    id: str
    figure: int
    sentence: str
    holds_if: str
    needs: tuple[Setup, ...]
    runs: int
    look: Callable[[SampleSet], ClaimFinding]


class JudgedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim, and what became of it. It is `open` if it does not hold in runs that are too few to tell."""

    id: str
    figure: int
    sentence: str
    holds_if: str
    holds: bool
    seen: str
    open: bool = False
    weakly: bool = False

    @property
    def verdict(self) -> str:
        if self.holds:
            return "weakly" if self.weakly else "yes"
        return "open" if self.open else "not seen"


def claim_test(
    id: str, sentence: str, *, holds_if: str, needs: tuple[Setup, ...], runs: int = 1
) -> Callable[[Callable[[SampleSet], ClaimFinding]], Claim]:
    """The function below looks whether this sentence holds. The number of its figure stands before the dot."""
    figure = int(id.partition(".")[0])
    return lambda look: Claim(
        id=id, figure=figure, sentence=sentence, holds_if=holds_if, needs=needs, runs=runs, look=look
    )


def judge_claims(claims: Iterable[Claim], results: SampleSet) -> list[JudgedClaim]:
    """What became of those claims whose runs are there."""
    return [_judged(claim, results) for claim in claims if all(setup in results for setup in claim.needs)]


def _judged(claim: Claim, results: SampleSet) -> JudgedClaim:
    found = claim.look(results)
    enough = all(len(results.of(setup)) >= claim.runs for setup in claim.needs)
    return JudgedClaim(
        id=claim.id,
        figure=claim.figure,
        sentence=claim.sentence,
        holds_if=claim.holds_if + (f" (takes {claim.runs} seeds)" if claim.runs > 1 else ""),
        holds=found.holds,
        seen=found.seen,
        open=not found.holds and not enough,
        weakly=found.holds and found.weakly,
    )


def summary_text(judged: Sequence[JudgedClaim]) -> str:
    """How many hold, and which are open."""
    held = f"{sum(each.holds for each in judged)} of {len(judged)} claims hold"
    weak = [each.id for each in judged if each.weakly]
    held += f", {', '.join(weak)} of them weakly" if weak else ""
    still = [each.id for each in judged if each.open]
    return held + (f"; {', '.join(still)} cannot be told with less than {SEVERAL} seeds" if still else "")


def minutes(seconds: float) -> str:
    """Seconds as people say them."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def percent(part: float) -> str:
    return f"{100 * part:.0f} %"
