"""A million jobs on ten thousand pilots of ten sites, and what they cost this process on this machine.

A thousand cases of a thousand jobs each: one job makes a file, and the next reads it. Nothing is left out for the sake
of speed: each job has its document and its entries in a journal, its lease and its fence. What is measured here hangs
on the machine; what happens in the world hangs on the seed alone."""

import gc
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from experiments.beyond.findings import MachineCost, ScenarioFindings, ScenarioPlan
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.pages.charts.model import LineChart, LineSeries
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import MB, ElementScene, GridScene, SiteScene
from mendflow.sim.grid.world import CaseScene, play_all

JOBS: Final = 1_000_000
JOBS_A_CASE: Final = 1_000
JOBS_A_PILOT: Final = 100
SITES: Final = 10
PILOTS_A_HOST: Final = 10
POINTS_MAX: Final = 2_000


def million(plan: ScenarioPlan) -> ScenarioFindings:
    jobs = plan.jobs or JOBS
    scene, cases = _scene(jobs, plan.seeds[0]), _cases(jobs)
    pilots = sum(site.running for site in scene.sites)
    plan.tell(f"{jobs:,} jobs in {len(cases):,} cases on {pilots:,} pilots of {SITES} sites")
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    with _relaxed_gc():
        result = play_all(scene, cases, SteadyJobs(60.0, 5.0, file_bytes=10 * MB))
    took_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    done = sum(record.well for record in result.records)
    sentence = (
        f"{done:,} jobs on {pilots:,} pilots of {SITES} sites ended well after {result.turnaround_s / 3600:.2f} h of"
        " their time."
    )
    rows = (
        ("status", result.status),
        ("jobs", f"{done:,} in {len(result.cases):,} cases"),
        ("pilots", f"{pilots:,} at {SITES} sites"),
        ("their time", f"{result.turnaround_s / 3600:.2f} h"),
        ("reads from caches", f"{result.hit_ratio:.1%}"),
    )
    table = ChartTable(title="A million jobs", heads=("", "seen"), rows=rows, text=sentence)
    return ScenarioFindings(
        sentence=sentence,
        numbers={"jobs": done, "turnaround_s": result.turnaround_s},
        table=table,
        figures=(_figure(result, jobs),),
        measured=_measured(done, took_s, cpu_s),
    )


def _measured(jobs: int, took_s: float, cpu_s: float) -> MachineCost:
    peak_bytes = _peak_bytes()
    sentence = f"On this machine that took {took_s / 60:.1f} min, with at most {peak_bytes / 1e9:.2f} GB."
    rows = (
        ("wall time", f"{took_s:.0f} s"),
        ("processor time", f"{cpu_s:.0f} s, {cpu_s / max(jobs, 1) * 1e6:.0f} microseconds a job"),
        ("most memory", f"{peak_bytes / 1e9:.2f} GB"),
    )
    return MachineCost(
        sentence=sentence,
        numbers={"wall_s": took_s, "processor_s": cpu_s, "peak_bytes": peak_bytes},
        table=ChartTable(title="What it cost this machine", heads=("", "measured"), rows=rows),
    )


def pairs(count: int) -> Flow:
    """So many times a job that makes a file, and one that reads it."""
    make = JobActivity(name="make", command="make", files={"data": "data"})
    read = JobActivity(name="read", command="read", inputs={"data": "${{ jobs.make.files.data }}"})
    pair = Sequence(name="pair", body=(make, read))
    return Flow(name=FlowName("pairs"), body=ForEach(name="all", first=0, last=count - 1, body=pair))


def _cases(jobs: int) -> list[CaseScene]:
    each = min(jobs, JOBS_A_CASE)
    return [CaseScene(flow=pairs(each // 2)) for _ in range(jobs // each)]


def _scene(jobs: int, seed: int) -> GridScene:
    pilots = max(PILOTS_A_HOST, jobs // JOBS_A_PILOT // SITES)
    sites = tuple(
        SiteScene(
            name=f"site-{place}",
            hosts=-(-pilots // PILOTS_A_HOST),
            pilots_a_host=PILOTS_A_HOST,
            running=pilots,
            element=ElementScene(delay=0.01 * (1 + place)),
        )
        for place in range(SITES)
    )
    return GridScene(seed=seed, sites=sites)


@contextmanager
def _relaxed_gc() -> Iterator[None]:
    """Hardly anything here is a circle that only the collector finds, and it would look at millions of objects."""
    usual = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _figure(result: GridResult, jobs: int) -> Figure:
    changes = result.running()
    points = tuple((s, float(count)) for s, count in changes[:: max(1, len(changes) // POINTS_MAX)])
    chart = LineChart(
        title="Jobs under way", series=(LineSeries(name=f"{jobs:,} jobs", points=points),), y_label="jobs", steps=True
    )
    return Figure(name="million", chart=chart)
