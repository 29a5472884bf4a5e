"""Every sentence of the paper about its figures 7 to 12, held against runs of ours.

The runs are made once, for all claims together, and only those that claims look at."""

from collections.abc import Iterator

import msgspec
import pytest

from mendflow.sim.paper.claims import CLAIMS
from mendflow.sim.paper.claims.judging import Claim, Results
from mendflow.sim.paper.experiments import needed, run_all
from mendflow.sim.paper.figures import DRAWN
from mendflow.sim.paper.samples import Sample
from mendflow.sim.paper.settings import Setup

FEW = (1, 2)
MORE = (1, 2, 3)
"""For figure 12: its runs are short, and what it says of W3 is about one pair of files in forty."""


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    hits = needed([12])
    return [*run_all(hits, MORE), *run_all([each for each in needed(DRAWN) if each not in hits], FEW)]


@pytest.fixture(scope="module")
def results(samples: list[Sample]) -> Results:
    return Results(samples)


def test_every_run_completes(samples: list[Sample]) -> None:
    assert {sample.status for sample in samples} == {"completed"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.id))
def test_what_the_paper_states_is_seen_here(claim: Claim, results: Results) -> None:  # PJ-10
    found = claim.look(results)
    assert found.holds, f"figure {claim.figure}: {claim.sentence}\nhere: {found.seen}"


def test_every_figure_has_claims_and_every_claim_a_number_of_its_own() -> None:
    assert {claim.figure for claim in CLAIMS} == set(DRAWN)
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def exchanged(samples: list[Sample], other: dict[str, str]) -> Iterator[Sample]:
    """The same runs, told as if they had been made with other schemes or submissions."""
    for sample in samples:
        setup = sample.setup
        changed = Setup(
            setup.workflow,
            setup.condition,
            other.get(setup.scheme, setup.scheme),
            other.get(setup.submission, setup.submission),  # type: ignore[arg-type]  # one of the same three words
        )
        yield msgspec.structs.replace(sample, setup=changed)


def test_claims_do_not_hold_of_runs_that_are_told_the_wrong_way_round(samples: list[Sample]) -> None:
    """What no result could contradict would be no claim."""
    same = [sample for sample in samples if sample.setup.submission == "running"]
    swaps = (
        (same, {"C3": "none", "none": "C3", "C2w": "C2", "C2": "C2w", "C1": "C2w"}),
        (same, {"C3": "C1", "C1": "C3", "C2w": "C2", "C2": "C2w", "global": "C3"}),
        (same, {"C1": "C2", "C2": "C1", "C2w": "C3", "C3": "C2w"}),
        (same, {"C1": "C3", "C3": "C2", "C2": "C2w", "C2w": "C1"}),
    )
    upset: set[str] = set()
    for runs, swap in swaps:
        told = Results(exchanged(list(runs), swap))
        upset |= {
            claim.id for claim in CLAIMS if all(map(told.__contains__, claim.needs)) and not claim.look(told).holds
        }
    assert {"8.1", "8.3", "8.5", "8.6", "9.1", "9.4", "10.1", "10.3", "11.1"} <= upset
    assert {"12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.7", "12.8"} <= upset
