"""The same pilots at one site, and spread over several: jobs that pull go wherever a pilot is free, and what they read
is found as long as a step follows the other on the same site."""

from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, number, seed_note, share
from experiments.beyond.million import pairs
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import MB, BatchScene, ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import play

SITES: Final = (1, 2, 5, 10)
PILOTS: Final = 500
PILOTS_A_HOST: Final = 5
JOBS: Final = 4_000


def sites(plan: ScenarioPlan) -> ScenarioFindings:
    jobs = plan.jobs or JOBS
    results = {count: [_play(count, seed, jobs) for seed in plan.seeds] for count in SITES}
    hits = {count: [each.hit_ratio for each in ours] for count, ours in results.items()}
    times = {count: [each.turnaround_s for each in ours] for count, ours in results.items()}
    one, many = SITES[0], SITES[-1]
    sentence = (
        f"On {many} sites the same pilots take {mean(times[many]) / mean(times[one]):.2f} times as long as on one, and"
        f" {mean(hits[many]):.0%} of the reads come from caches, {mean(hits[one]):.0%} on one."
    )
    chart = BarChart(
        title="One site and several",
        groups=tuple(map(_sites, SITES)),
        series=(bars("turnaround", [times[count] for count in SITES]),),
        y_label="turnaround",
        unit="time",
        note=f"{jobs} jobs on {PILOTS} pilots; one storage element of each five sites is slow. {seed_note(plan.seeds)}",
    )
    rows = tuple(
        (_sites(count), minutes(times[count]), share(hits[count]), number([_least(each, count) for each in ours]))
        for count, ours in results.items()
    )
    heads = ("", "turnaround", "reads from caches", "jobs at the site with fewest")
    table = ChartTable(title="Several sites", heads=heads, rows=rows, text=sentence)
    numbers = {f"{_sites(count)}, turnaround_s": mean(times[count]) for count in SITES}
    return ScenarioFindings(
        sentence=sentence, numbers=numbers, table=table, figures=(Figure(name="sites", chart=chart, text=sentence),)
    )


def _sites(count: int) -> str:
    return f"{count} sites" if count > 1 else "one site"


def _least(result: GridResult, count: int) -> float:
    jobs = {f"site-{place}": 0 for place in range(count)}
    for record in result.records:
        jobs[record.site] += 1
    return float(min(jobs.values()))


def _play(count: int, seed: int, jobs: int) -> GridResult:
    pilots = PILOTS // count
    scenes = tuple(
        SiteScene(
            name=f"site-{place}",
            hosts=pilots // PILOTS_A_HOST,
            pilots_a_host=PILOTS_A_HOST,
            running=pilots,
            share="site",
            element=ElementScene(delay=0.5 if place % 5 == 4 else 0.05),
            batch=BatchScene(),
        )
        for place in range(count)
    )
    return play(GridScene(seed=seed, sites=scenes), pairs(jobs // 2), SteadyJobs(120.0, 20.0, file_bytes=300 * MB))
