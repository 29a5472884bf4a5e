"""Which file a full cache lets go: the four policies on reads that tell them apart.

Every quarter of an hour a batch of jobs comes. Half of them read what is in fashion, a few large files that many want;
the others each read a file that nobody reads again. Now and then the fashion changes. Whoever keeps what was
read last is washed out by the single reads, and whoever counts all reads holds on to the old fashion."""

import hashlib
from random import Random
from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, seed_note, share
from mendflow.core.caching.policies import POLICIES
from mendflow.core.model.flow import Flow, ForEach, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import FileRef, Value
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import GB, MB, ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import CaseScene, play_all

BATCHES: Final = 60
EVERY_S: Final = 900.0
JOBS: Final = 24  # of a batch
PILOTS: Final = 2
FASHIONS: Final = 3
FASHION: Final = 10
FILE_BYTES: Final = 500 * MB
CACHE_BYTES: Final = 6 * GB


def policies(plan: ScenarioPlan) -> ScenarioFindings:
    results = {name: [_play(name, seed, plan.jobs) for seed in plan.seeds] for name in POLICIES}
    hits = {name: [each.byte_hit_ratio for each in ours] for name, ours in results.items()}
    order = sorted(hits, key=lambda name: mean(hits[name]), reverse=True)
    told = ", ".join(f"{name} {mean(hits[name]):.0%}" for name in order)
    sentence = f"On reads of which half follow a changing fashion, of the bytes these come from caches: {told}."
    chart = BarChart(
        title="What a full cache lets go",
        groups=tuple(POLICIES),
        series=(bars("bytes from caches", [hits[name] for name in POLICIES]),),
        y_label="of all bytes read",
        unit="share",
        note=seed_note(plan.seeds),
    )
    rows = tuple(
        (name, share(hits[name]), minutes([each.mean_stage_in_s for each in results[name]])) for name in POLICIES
    )
    table = ChartTable(title="Policies", heads=("policy", "bytes from caches", "read in"), rows=rows, text=sentence)
    numbers = {name: mean(ours) for name, ours in hits.items()}
    return ScenarioFindings(
        sentence=sentence, numbers=numbers, table=table, figures=(Figure(name="policies", chart=chart, text=sentence),)
    )


def _play(policy: str, seed: int, jobs: int) -> GridResult:
    site = SiteScene(
        name="one",
        hosts=PILOTS,
        running=PILOTS,
        element=ElementScene(delay=0.05),
        cache_bytes=CACHE_BYTES,
        threshold_bytes=FILE_BYTES,
        policy=policy,
    )
    chance = Random(f"{seed} reads")
    cases = [
        CaseScene(flow=READING, inputs={"files": _reads(batch, jobs // BATCHES or JOBS, chance)}, at_s=batch * EVERY_S)
        for batch in range(BATCHES)
    ]
    return play_all(GridScene(seed=seed, sites=(site,), wait_for_data=False), cases, SteadyJobs(20.0, 5.0))


def _reads(batch: int, jobs: int, chance: Random) -> list[Value]:
    """What the jobs of a batch read: one of the files in fashion, the first of them most, or one of its own."""
    fashion = batch * FASHIONS // BATCHES
    names = [
        f"fashion {fashion} {int(FASHION * chance.random())}" if chance.random() < 0.5 else f"once {batch} {job}"
        for job in range(jobs)
    ]
    return [_file(name).as_value() for name in names]


def _file(name: str) -> FileRef:
    return FileRef(sha256=hashlib.sha256(name.encode()).hexdigest(), bytes=FILE_BYTES, name="data")


READING: Final = Flow(
    name=FlowName("reading"),
    inputs={"files": Input(type="list")},
    body=ForEach(
        name="all",
        items="${{ inputs.files }}",
        body=JobActivity(name="read", command="read", inputs={"data": "${{ item }}"}),
    ),
)
