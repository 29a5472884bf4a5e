"""Every sentence of the paper about its figures 7 to 12, held against runs of ours.

The runs are made once, for all claims together, and only those that claims look at."""

from collections.abc import Iterator

import msgspec
import pytest

from experiments.paper.claims import CLAIMS
from experiments.paper.claims.judging import SEVERAL, Claim, SampleSet, judge_claims, summary_text
from experiments.paper.experiments import run_all, setups_needed
from experiments.paper.figures import FIGURES_BY_NUMBER
from experiments.paper.samples import Sample
from experiments.paper.settings import Setup
from tests.made_once import made_once

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

FEW = (1, 2)
MORE = tuple(range(1, SEVERAL + 1))
"""For figure 12: its runs are short, and what it says of W3 is about one pair of files in forty."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    return made_once(tmp_path_factory, "samples", make_samples)


def make_samples() -> list[Sample]:
    hits = setups_needed([12])
    return [
        *run_all(hits, MORE),
        *run_all([each for each in setups_needed(FIGURES_BY_NUMBER) if each not in hits], FEW),
    ]


def seen(samples: list[Sample], seeds: tuple[int, ...]) -> SampleSet:
    """What is compared has the same seeds."""
    return SampleSet(sample for sample in samples if sample.seed in seeds)


def test_every_run_completes(samples: list[Sample]) -> None:
    assert {sample.status for sample in samples} == {"completed"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.id))
def test_what_the_paper_states_is_seen_here(claim: Claim, samples: list[Sample]) -> None:  # PJ-10
    found = claim.look(seen(samples, MORE if claim.figure == 12 else FEW))
    assert found.holds, f"figure {claim.figure}: {claim.sentence}\nhere: {found.seen}"


@pytest.mark.parametrize("seed", FEW)
def test_no_claim_fails_of_a_single_run_by_chance(seed: int, samples: list[Sample]) -> None:
    judged = judge_claims(CLAIMS, seen(samples, (seed,)))
    assert len(judged) == len(CLAIMS)
    assert [each.id for each in judged if each.verdict == "not seen"] == []


def test_what_a_few_runs_cannot_tell_stays_open(samples: list[Sample]) -> None:
    """With the third seed no two files of a merge lie on one host."""
    few = judge_claims(CLAIMS, seen(samples, (3,)))
    assert [each.id for each in few if not each.holds] == ["12.4", "12.8"]
    assert {each.verdict for each in few} == {"yes", "open"}
    assert "12.4, 12.8 cannot be told with less than 5 seeds" in summary_text(few)
    enough = judge_claims(
        CLAIMS, SampleSet(msgspec.structs.replace(each, seed=n) for n in range(5) for each in samples if each.seed == 3)
    )
    assert [each.verdict for each in enough if each.id in ("12.4", "12.8")] == ["not seen", "not seen"]


def test_claims_that_only_their_mildest_reading_makes_true_are_said_to_hold_weakly(
    samples: list[Sample],
) -> None:  # PJ-10
    few = judge_claims([each for each in CLAIMS if each.figure != 12], seen(samples, FEW))
    hits = judge_claims([each for each in CLAIMS if each.figure == 12], seen(samples, MORE))
    weak = [each.id for each in (*few, *hits) if each.verdict == "weakly"]
    assert "10.1" in weak and set(weak) <= {"10.1", "12.4", "12.8"}  # of figure 12 with some seeds only
    told = [msgspec.structs.replace(each, weakly=each.id in ("12.4", "12.8")) for each in hits]
    assert "12.4, 12.8 of them weakly" in summary_text(told)


def test_every_claim_says_by_what_it_is_judged() -> None:
    assert [claim.id for claim in CLAIMS if not claim.holds_if] == []
    assert {claim.runs for claim in CLAIMS} == {1, SEVERAL}


def test_every_figure_has_claims_and_every_claim_a_number_of_its_own() -> None:
    assert {claim.figure for claim in CLAIMS} == set(FIGURES_BY_NUMBER)
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
        told = SampleSet(exchanged(list(runs), swap))
        upset |= {
            claim.id for claim in CLAIMS if all(map(told.__contains__, claim.needs)) and not claim.look(told).holds
        }
    assert {"8.1", "8.3", "8.5", "8.6", "9.1", "9.4", "10.1", "10.3", "11.1"} <= upset
    assert {"12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.7", "12.8"} <= upset
