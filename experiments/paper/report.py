"""All of it: runs, figures, claims, and the files that tell of them."""

import csv
import io
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from experiments.paper.claims import CLAIMS
from experiments.paper.claims.judging import JudgedClaim, SampleSet, judge_claims, summary_text
from experiments.paper.experiments import Tell, run_all, setups_needed
from experiments.paper.figures import FIGURES_BY_NUMBER, figures_of
from experiments.paper.samples import Sample
from experiments.paper.settings import PARAMETERS, Parameters
from mendflow.core.model.errors import InvalidRequest
from mendflow.pages.charts.pages import ChartTable, page, write_figures

TOLD = (
    "turnaround_s",
    "stage_in_s",
    "execution_s",
    "waited_s",
    "hit_ratio",
    "byte_hit_ratio",
    "attempts",
    "failed_reading",
    "failed_writing",
    "element_reads",
    "pilots_submitted",
)


class PaperReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the paper's claims, and which files were written."""

    claims: tuple[JudgedClaim, ...]
    runs: int
    seconds: float
    written: tuple[str, ...] = ()


def paper(
    *,
    seeds: int = 5,
    first_seed: int = 1,
    folder: Path,
    jobs: int = 2,
    figures: tuple[int, ...] = (),
    tell: Tell = lambda _: None,
) -> PaperReport:
    """Repeat the experiments with so many seeds, on so many processes (`jobs`); figures and data go to the folder."""
    _check(seeds, figures)
    began_s = time.monotonic()
    plan, chosen = setups_needed(figures), range(first_seed, first_seed + seeds)
    samples = run_all(plan, chosen, processes=jobs, tell=tell)
    results = SampleSet(samples)
    claims = tuple(judge_claims(CLAIMS, results))
    written = _write(folder, samples, results, claims, figures)
    return PaperReport(
        claims=claims, runs=len(samples), seconds=time.monotonic() - began_s, written=tuple(map(str, written))
    )


def _check(seeds: int, figures: Sequence[int]) -> None:
    if seeds < 1:
        raise InvalidRequest("there is at least one seed", field="seeds")
    if strange := [each for each in figures if each not in FIGURES_BY_NUMBER]:
        raise InvalidRequest(
            f"there is no figure {strange[0]}; choose among {', '.join(map(str, FIGURES_BY_NUMBER))}", field="figures"
        )


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    parameters: Parameters
    claims: tuple[JudgedClaim, ...]
    samples: list[Sample]


def _write(
    folder: Path, samples: list[Sample], results: SampleSet, claims: tuple[JudgedClaim, ...], figures: Sequence[int]
) -> list[Path]:
    drawings = figures_of(results, figures)
    written = write_figures(folder, drawings)
    data = _Data(parameters=PARAMETERS, claims=claims, samples=samples)
    texts = {
        "samples.json": msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n",
        "results.csv": results_csv(results),
        "claims.csv": claims_csv(claims),
        "paper.html": page(
            "The paper's experiments",
            f"{len(samples)} runs. {summary_text(claims)}.",
            drawings,
            [_table(claims)],
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


def _table(claims: Sequence[JudgedClaim]) -> ChartTable:
    rows = tuple((each.id, each.verdict, each.sentence, each.seen, each.holds_if) for each in claims)
    return ChartTable(title="Claims", heads=("claim", "holds", "the paper", "here", "holds if"), rows=rows)


def results_csv(results: SampleSet) -> str:
    """A row for each setup: mean and deviation of each number."""
    heads: list[object] = ["workflow", "condition", "scheme", "submission", "runs"]
    heads += [name for what in TOLD for name in (what, f"{what}_deviation")]
    rows: list[list[object]] = [heads]
    for setup in results.setups():
        told = [results.told(setup, what) for what in TOLD]
        numbers = [number for each in told for number in (each.mean, each.deviation)]
        rows.append([*setup, told[0].runs, *numbers])
    return _csv(rows)


def claims_csv(claims: Sequence[JudgedClaim]) -> str:
    rows: list[list[object]] = [["claim", "figure", "holds", "the paper", "here", "holds if"]]
    rows += [[each.id, each.figure, each.verdict, each.sentence, each.seen, each.holds_if] for each in claims]
    return _csv(rows)


def _csv(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
