"""Caches that the hosts of a site share, on the two workflows of the paper whose second step reads what several made.

The paper's best scheme shares on a host and waits for data. What its authors left for later is one cache of all hosts:
here pilots of a site fetch files from each other, and everything else stays as in the paper's experiments."""

from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, seed_note, share
from experiments.paper.experiments import run_all
from experiments.paper.samples import Sample
from experiments.paper.settings import Setup
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure

WORKFLOWS: Final = ("W2", "W3")
CONDITION: Final = "d2f2"
PAPER_SCHEMES: Final = ("C1", "C2", "C3")
OURS: Final = "global"
NAMES: Final = {
    "C1": "cache per host (C1)",
    "C2": "single pilot cache (C2)",
    "C3": "cache per host, waitForData (C3)",
    OURS: "shared on the site",
}


def sharing(plan: ScenarioPlan) -> ScenarioFindings:
    setups = [Setup(workflow, CONDITION, scheme) for workflow in WORKFLOWS for scheme in NAMES]
    samples = run_all(setups, plan.seeds, tell=plan.tell)
    found = {setup: [each for each in samples if each.setup == setup] for setup in setups}
    hits = {setup: [each.hit_ratio for each in ours] for setup, ours in found.items()}
    told = [_factor(workflow, hits) for workflow in WORKFLOWS]
    numbers = {f"{workflow} factor": factors(hits, workflow)[1] for workflow in WORKFLOWS}
    numbers |= {f"{setup.workflow} {setup.scheme}": mean(ours) for setup, ours in hits.items()}
    chart = BarChart(
        title="Reads from caches: the paper's schemes, and caches shared between hosts",
        groups=WORKFLOWS,
        series=tuple(
            bars(NAMES[scheme], [hits[Setup(each, CONDITION, scheme)] for each in WORKFLOWS]) for scheme in NAMES
        ),
        y_label="of all reads",
        unit="share",
        note=f"Condition {CONDITION}. {seed_note(plan.seeds)}",
    )
    rows = tuple(_row(setup, ours) for setup, ours in found.items())
    heads = ("workflow", "scheme", "from caches", "read in", "turnaround")
    sentence = "Shared between hosts, " + "; ".join(told) + "."
    table = ChartTable(title="Sharing between hosts", heads=heads, rows=rows, text=sentence)
    return ScenarioFindings(
        sentence=sentence, numbers=numbers, table=table, figures=(Figure(name="sharing", chart=chart, text=sentence),)
    )


def factors(hits: dict[Setup, list[float]], workflow: str) -> tuple[str, float]:
    """The paper's best scheme on a workflow, and how many times as many reads come from caches with ours."""
    best = max(PAPER_SCHEMES, key=lambda scheme: mean(hits[Setup(workflow, CONDITION, scheme)]))
    theirs = mean(hits[Setup(workflow, CONDITION, best)])
    return best, mean(hits[Setup(workflow, CONDITION, OURS)]) / theirs if theirs else 0.0


def _factor(workflow: str, hits: dict[Setup, list[float]]) -> str:
    best, factor = factors(hits, workflow)
    ours = mean(hits[Setup(workflow, CONDITION, OURS)])
    return f"{ours:.0%} of the reads of {workflow} come from caches, {factor:.2f} times as many as with {best}"


def _row(setup: Setup, ours: list[Sample]) -> tuple[str, ...]:
    return (
        setup.workflow,
        NAMES[setup.scheme],
        share([each.hit_ratio for each in ours]),
        minutes([each.stage_in_s for each in ours]),
        minutes([each.turnaround_s for each in ours]),
    )
