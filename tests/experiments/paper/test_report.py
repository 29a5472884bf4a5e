"""The whole of it: figures and data as files, the same for the same seed."""

import csv
from pathlib import Path

import pytest

from experiments.paper import paper
from experiments.paper.experiments import MATRIX, setups_needed
from mendflow.core.model.errors import InvalidRequest

FIGURES = (7,)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.full
def test_the_same_seed_gives_the_same_bytes_on_one_process_and_on_two(tmp_path: Path) -> None:  # PJ-10
    one = paper(seeds=1, folder=tmp_path / "one", jobs=1, figures=FIGURES)
    two = paper(seeds=1, folder=tmp_path / "two", jobs=2, figures=FIGURES)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert one.claims == two.claims
    assert set(files(tmp_path / "one")) == {
        "figure-7.svg",
        "figure-7.csv",
        "samples.json",
        "results.csv",
        "claims.csv",
        "paper.html",
    }


def test_every_claim_has_beside_it_by_what_it_is_judged(tmp_path: Path) -> None:
    made = paper(seeds=1, folder=tmp_path, jobs=1, figures=FIGURES)
    rows = list(csv.DictReader((tmp_path / "claims.csv").read_text().splitlines()))
    assert [row["holds if"] for row in rows] == [claim.holds_if for claim in made.claims]
    assert all(claim.holds_if in (tmp_path / "paper.html").read_text() for claim in made.claims)


def test_a_single_run_has_no_whiskers_to_tell_of(tmp_path: Path) -> None:
    paper(seeds=1, folder=tmp_path, jobs=1, figures=FIGURES)
    text = (tmp_path / "paper.html").read_text()
    assert "A single run." in text
    assert "deviation" not in text


@pytest.mark.full
def test_another_seed_gives_other_runs(tmp_path: Path) -> None:
    paper(seeds=1, folder=tmp_path / "one", jobs=1, figures=FIGURES)
    paper(seeds=1, first_seed=2, folder=tmp_path / "two", jobs=1, figures=FIGURES)
    assert (tmp_path / "one/results.csv").read_bytes() != (tmp_path / "two/results.csv").read_bytes()


def test_all_of_it_is_every_workflow_under_every_condition_with_every_scheme_and_submission() -> None:  # PJ-10
    assert len(MATRIX) == 3 * 4 * (4 * 2 + 1)
    assert set(MATRIX) <= set(setups_needed())
    assert len(setups_needed((7,))) == 3


def test_a_figure_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no figure 6"):
        paper(seeds=1, folder=tmp_path, figures=(6,))
    with pytest.raises(InvalidRequest, match="at least one seed"):
        paper(seeds=0, folder=tmp_path)
