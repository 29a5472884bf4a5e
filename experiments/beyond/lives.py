"""Pilots that may live for a while only, as batch systems of a site allow, and jobs that say how long they take or not.

A pilot is not given a job that says it would outlive it. One that says nothing is begun, cut short, and begun again
elsewhere: what it had done is lost."""

from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, number, seed_note
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.templates import ResourceTemplates
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import BatchScene, GridScene, SiteScene
from mendflow.sim.grid.world import play

LIVES_S: Final = {"without end": 0.0, "4 h": 14_400.0, "1 h": 3_600.0, "30 min": 1_800.0}
SAYS: Final = {"jobs say how long they take": 780_000, "jobs do not say it": 0}
JOBS: Final = 200
PILOTS: Final = 20
JOB_S: Final = 600.0


def lives(plan: ScenarioPlan) -> ScenarioFindings:
    results = {
        (says, life): [_play(wall_ms, life_s, seed, plan.jobs or JOBS) for seed in plan.seeds]
        for says, wall_ms in SAYS.items()
        for life, life_s in LIVES_S.items()
    }
    turnarounds = {key: [each.turnaround_s for each in ours] for key, ours in results.items()}
    told, silent = ((says, "30 min") for says in SAYS)
    cut = {key: [float(_lost(each)) for each in ours] for key, ours in results.items()}
    sentence = (
        f"With pilots that live for half an hour, {number(cut[silent])} attempts of jobs that do not say how long they"
        f" take are cut short, and {number(cut[told])} of those that say it; these leave the last minutes of a pilot"
        f" unused, and take {mean(turnarounds[told]) / mean(turnarounds[silent]):.2f} times as long."
    )
    chart = BarChart(
        title="Pilots with a limited life",
        groups=tuple(LIVES_S),
        series=tuple(bars(says, [turnarounds[says, life] for life in LIVES_S]) for says in SAYS),
        y_label="turnaround",
        x_label="how long a pilot may live",
        unit="time",
        note=f"{plan.jobs or JOBS} jobs of ten minutes, at most {PILOTS} pilots. {seed_note(plan.seeds)}",
    )
    rows = tuple(
        (
            life,
            says,
            minutes(turnarounds[says, life]),
            number([float(each.pilots_submitted) for each in ours]),
            number(cut[says, life]),
        )
        for (says, life), ours in results.items()
    )
    heads = ("life of a pilot", "jobs", "turnaround", "pilots submitted", "attempts cut short")
    table = ChartTable(title="Limited lives", heads=heads, rows=rows, text=sentence)
    numbers = {f"{life}, {says}": mean(cut[says, life]) for says, life in cut}
    return ScenarioFindings(
        sentence=sentence, numbers=numbers, table=table, figures=(Figure(name="lives", chart=chart, text=sentence),)
    )


def _lost(result: GridResult) -> int:
    return sum(not record.well for record in result.records)


def _play(wall_ms: int, life_s: float, seed: int, jobs: int) -> GridResult:
    site = SiteScene(
        name="one",
        hosts=PILOTS,
        max_pilots=PILOTS,
        idle_exit_s=600.0,
        life_s=life_s,
        batch=BatchScene(submit_s=(20.0, 5.0), queue_s=(120.0, 40.0), notify_s=(60.0, 20.0)),
    )
    job = JobActivity(name="work", command="work", resources=ResourceTemplates(wall_ms=wall_ms))
    flow = Flow(name=FlowName("works"), body=ForEach(name="all", first=0, last=jobs - 1, body=job))
    scene = GridScene(seed=seed, sites=(site,), losses_max=100, lease_ms=120_000, monitor_s=30.0)
    return play(scene, flow, SteadyJobs(JOB_S, JOB_S / 10))
