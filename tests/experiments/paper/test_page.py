"""The page about the experiments: written by hand around tables that a run has made."""

import pytest

from bench.paper.page import between, refreshed
from bench.paper.variants import VARIANTS, Variant
from experiments.paper.claims import CLAIMS
from experiments.paper.claims.judging import JudgedClaim
from experiments.paper.figures import FIGURES_BY_NUMBER
from experiments.paper.report import PaperReport
from tests.shape.source import ROOT

PAGE = ROOT / "docs/understand/experiments.md"


def judged(id: str, *, holds: bool, open: bool = False) -> JudgedClaim:
    return JudgedClaim(
        id=id,
        figure=int(id.partition(".")[0]),
        sentence=f"sentence {id}",
        holds_if=f"rule {id}",
        holds=holds,
        seen=f"seen {id}",
        open=open,
    )


def test_the_page_has_every_claim_every_figure_and_every_variant() -> None:  # PJ-10
    text = PAGE.read_text(encoding="utf-8")
    assert [claim.id for claim in CLAIMS if f'| {claim.id} | "{claim.sentence}" |' not in text] == []
    assert [claim.id for claim in CLAIMS if f"| {claim.holds_if}" not in text] == []
    assert [
        number for number in FIGURES_BY_NUMBER if not (PAGE.parent / f"experiments/figure-{number}.svg").is_file()
    ] == []
    assert [name for name in VARIANTS if f"| {name} |" not in text] == []


def test_only_what_stands_between_marks_is_replaced() -> None:
    text = "before\n<!-- it -->\nold\n<!-- end of it -->\nafter\n"
    assert between(text, "it", "new") == "before\n<!-- it -->\n\nnew\n<!-- end of it -->\nafter\n"
    with pytest.raises(AssertionError, match="no place for that"):
        between(text, "that", "new")


def test_what_does_not_hold_is_told_as_it_is() -> None:
    text = "".join(f"<!-- {mark} -->\n<!-- end of {mark} -->\n" for mark in ("claims", "variants"))
    report = PaperReport(claims=(judged("7.1", holds=True), judged("12.1", holds=False)), runs=12, seconds=1.0)
    variants = {
        "slow": Variant((7,), (judged("7.1", holds=False),)),
        "quick": Variant((8,), (judged("8.1", holds=False, open=True),)),
    }
    told = refreshed(text, report, seeds=3, variants=variants)
    assert "1 of 2 claims hold, with 3 seeds and 12 runs in all." in told
    assert '| 12.1 | "sentence 12.1" | seen 12.1 | rule 12.1 | not seen |' in told
    assert "| slow | 7 | 7.1: seen 7.1 |" in told
    assert "| quick | 8 | 8.1 (open): seen 8.1 |" in told
