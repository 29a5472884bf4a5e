"""Three domains with uneven load and data: jobs that stay at home, and jobs that are sent at random, by capacity, or by
data and capacity."""

from collections.abc import Sequence
from typing import Final

from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, bars, mean, minutes, number, seed_note
from mendflow.pages.charts.model import BarChart
from mendflow.pages.charts.pages import ChartTable, Figure
from mendflow.sim.domains.routing import DOMAINS, POLICIES, Policy, RoutingResult, RoutingScene, play_routing

JOBS: Final = 200
GIB: Final = 1 << 30
TEXTS: Final[dict[Policy, str]] = {
    "home": "at home",
    "random": "at random",
    "capacity": "by capacity",
    "data and capacity": "by data and capacity",
}


def domains(plan: ScenarioPlan) -> ScenarioFindings:
    jobs = plan.jobs or JOBS
    results = {policy: [_play(policy, seed, jobs) for seed in plan.seeds] for policy in POLICIES}
    flows = {policy: [_mean(each.turnarounds_s) for each in ours] for policy, ours in results.items()}
    ends = {policy: [each.makespan_s for each in ours] for policy, ours in results.items()}
    best = flows["data and capacity"]
    sentence = (
        f"A flow whose jobs stay at home takes {mean(flows['home']) / mean(best):.1f} times as long as one whose jobs"
        f" go by data and capacity; at random it takes {mean(flows['random']) / mean(best):.1f} times as long, by"
        f" capacity alone {mean(flows['capacity']) / mean(best):.1f} times."
    )
    chart = BarChart(
        title="Jobs in three domains",
        groups=tuple(TEXTS.values()),
        series=(
            bars("turnaround of a flow", [flows[policy] for policy in POLICIES]),
            bars("all flows", [ends[policy] for policy in POLICIES]),
        ),
        y_label="time",
        unit="time",
        note=f"{jobs} jobs in three domains. {seed_note(plan.seeds)}",
    )
    rows = tuple(
        (
            TEXTS[policy],
            minutes(flows[policy]),
            minutes(ends[policy]),
            number([each.fetched_bytes / GIB for each in ours]) + " GiB",
            *(number([float(each.jobs[domain.name]) for each in ours]) for domain in DOMAINS),
        )
        for policy, ours in results.items()
    )
    names = tuple(f"jobs in {each.name}" for each in DOMAINS)
    heads = ("jobs go", "turnaround of a flow", "all flows", "fetched", *names)
    table = ChartTable(title="Three domains", heads=heads, rows=rows, text=sentence)
    numbers = {f"{TEXTS[policy]}, turnaround_s": mean(flows[policy]) for policy in POLICIES}
    return ScenarioFindings(
        sentence=sentence, numbers=numbers, table=table, figures=(Figure(name="domains", chart=chart, text=sentence),)
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _play(policy: Policy, seed: int, jobs: int) -> RoutingResult:
    return play_routing(RoutingScene(seed=seed, policy=policy, jobs=jobs))
