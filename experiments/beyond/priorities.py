"""A few urgent jobs that come while very many others wait: with a priority, and without."""

from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, seed_note
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import GridScene, SiteScene
from mendflow.sim.grid.world import CaseScene, play_all

PRIORITIES: Final = {"without": 0, "with": 10}
FLOWS: Final = ("urgent", "patient")
JOBS: Final = 2_000
PILOTS: Final = 100
COMES_S: Final = 900.0


def priorities(plan: ScenarioPlan) -> ScenarioFindings:
    jobs = plan.jobs or JOBS
    results = {name: [_play(value, seed, jobs) for seed in plan.seeds] for name, value in PRIORITIES.items()}
    times = {
        (flow, name): [_turnaround(each, flow) for each in ours] for flow in FLOWS for name, ours in results.items()
    }
    urgent, patient = (mean(times[flow, "without"]) / mean(times[flow, "with"]) for flow in FLOWS)
    sentence = (
        f"With a priority the urgent flow is over {urgent:.1f} times as soon, and the one it overtakes takes"
        f" {1 / patient:.2f} times as long."
    )
    chart = BarChart(
        title="A few urgent jobs among many",
        groups=tuple(f"{name} priority" for name in PRIORITIES),
        series=tuple(bars(f"{flow} flow", [times[flow, name] for name in PRIORITIES]) for flow in FLOWS),
        y_label="turnaround",
        unit="time",
        note=f"{jobs} jobs, then {_urgent(jobs)} urgent ones, on {PILOTS} pilots. {seed_note(plan.seeds)}",
    )
    rows = tuple((f"{name} priority", *(minutes(times[flow, name]) for flow in FLOWS)) for name in PRIORITIES)
    table = ChartTable(title="Priorities", heads=("", "urgent flow", "patient flow"), rows=rows, text=sentence)
    numbers = {"urgent, times as soon": urgent, "patient, times as long": 1 / patient}
    return ScenarioFindings(
        sentence=sentence,
        numbers=numbers,
        table=table,
        figures=(Figure(name="priorities", chart=chart, text=sentence),),
    )


def _urgent(jobs: int) -> int:
    return max(1, jobs // 20)


def _turnaround(result: GridResult, flow: str) -> float:
    return next(case.turnaround_s for case in result.cases if case.flow == flow)


def _play(priority: int, seed: int, jobs: int) -> GridResult:
    site = SiteScene(name="one", hosts=PILOTS, running=PILOTS, caches=False)
    cases = [
        CaseScene(flow=_flow("patient", jobs)),
        CaseScene(flow=_flow("urgent", _urgent(jobs)), priority=priority, at_s=COMES_S),
    ]
    return play_all(GridScene(seed=seed, sites=(site,)), cases, SteadyJobs(300.0, 30.0))


def _flow(name: str, jobs: int) -> Flow:
    job = JobActivity(name=f"{name}.job", command="work")
    return Flow(name=FlowName(name), body=ForEach(name=name, first=0, last=jobs - 1, body=job))
