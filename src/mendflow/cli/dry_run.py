"""What a run of a flow would do, without doing it: which jobs would start at once and why, for which the result of an
earlier case would be used, what the others wait for, and whether this machine could take them. Nothing is started, and
nothing is written."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from mendflow.cli.connection import connect
from mendflow.cli.forecast_case import ForecastCase, ForecastJob, cases_of
from mendflow.cli.options import ServerTarget
from mendflow.cli.printing import print_json, print_table, say
from mendflow.cli.server_file import find_server
from mendflow.core.engine.dependents import demand_names
from mendflow.core.engine.plan import WORK, Plan, PlanNode, ancestors
from mendflow.core.model.containers import runtimes_for
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import item_name
from mendflow.core.model.jobs import FunctionRef, JobSpec
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import Value
from mendflow.core.model.views import CachePolicy
from mendflow.core.results.earlier_results import AGAIN, NEW
from mendflow.core.scheduling.amounts import size
from mendflow.pages.formatting import count_text, one_line
from mendflow.pilot.environment import capacity, usable_cpus

REPEATING: Final = ("for-each", "while", "until")
COMMAND_CHARS: Final = 200
REASONS_MAX: Final = 3


class PlannedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One job: `found` is the case whose result would be used; else it would run. `reason` says why."""

    item: str
    found: str = ""
    reason: str = ""


class PlannedItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One activity of the flow: when it would run, and why. `problem` says why it could not run here."""

    name: str
    kind: str
    when: str
    what: str = ""
    items: int = 0  # how many would start at once
    found: int = 0  # for how many the result of an earlier case would be used
    jobs: list[PlannedJob] = []
    problem: str = ""


async def print_plan(
    flow: Flow,
    inputs: dict[str, Value],
    target: ServerTarget,
    cache: CachePolicy,
    *,
    again: Sequence[str],
    slots: int,
    json: bool,
) -> None:
    demand_names(flow, again)
    if target.server or target.has_store or find_server(target.folder):
        async with connect(target) as client:
            forecast = await _played(ForecastCase(flow, client, cache, again), inputs)
    else:
        forecast = await _played(ForecastCase(flow, None, cache, again), inputs)
    machine = None if target.server else capacity(Path.cwd(), slots=slots or usable_cpus())
    planned = plan_run(forecast, machine)
    if json:
        print_json(planned)
        return
    at_once, found = sum(item.items for item in planned), sum(item.found for item in planned)
    results = f", and {count_text(found, 'result')} of earlier cases would be used" if found else ""
    say(f"{flow.name}: {count_text(at_once, 'item')} would start at once{results}; nothing was started or written")
    print_table(("item", "kind", "when", "what"), [(item.name, item.kind, item.when, item.what) for item in planned])
    for item in planned:
        for line in _reasons(item):
            say(f"{item.name}: {line}")
        if item.problem:
            say(f"{item.name}: {item.problem}")


async def _played(forecast: ForecastCase, inputs: dict[str, Value]) -> ForecastCase:
    await forecast.play(inputs)
    return forecast


def plan_run(forecast: ForecastCase, machine: Capacity | None) -> list[PlannedItem]:
    """The activities of the flow in their order, as the case would begin. `machine` is what it would run on, if that is
    known."""
    by_name: dict[str, list[ForecastJob]] = {}
    for job in forecast.jobs:
        by_name.setdefault(item_name(job.spec.item), []).append(job)
    plan = forecast.case.plan
    nodes = [node for node in _in_order(plan) if node.kind in WORK]
    return [_planned(forecast, node, by_name.get(node.shown, []), machine) for node in nodes]


def _in_order(plan: Plan) -> list[PlanNode]:
    """The activities as they stand in the flow, what is inside one directly behind it; handlers last."""
    order, pending = dict[int, PlanNode](), [0]
    while pending:
        node = plan.nodes[pending.pop()]
        order[node.index] = node
        pending += reversed(node.children)
    return [*order.values(), *(node for node in plan.nodes if node.index not in order)]


def _planned(forecast: ForecastCase, node: PlanNode, jobs: list[ForecastJob], machine: Capacity | None) -> PlannedItem:
    runs = [job for job in jobs if job.forecast.outcome is None]
    begun = len(runs) + forecast.others[node.shown]
    parts = [_found_text(jobs)] if len(jobs) > len(runs) else []
    if parts and begun:
        parts.append(f"{begun} at once")
    elif not parts:
        parts.append(_when(forecast.case.plan, node, begun))
    problem = forecast.failed.get(node.shown, "")
    return PlannedItem(
        name=node.shown,
        kind=node.kind,
        when="; ".join(parts),
        what=_what(node),
        items=begun,
        found=len(jobs) - len(runs),
        jobs=[_planned_job(job) for job in jobs],
        problem=problem or (_lack([job.spec for job in runs], machine) if machine is not None else ""),
    )


def _found_text(jobs: list[ForecastJob]) -> str:
    cases = cases_of(jobs)
    count = sum(job.forecast.outcome is not None for job in jobs)
    where = cases[0] if len(cases) == 1 else f"{len(cases)} cases"
    return f"found: result of {where}" if count == 1 else f"found: {count} results of {where}"


def _planned_job(job: ForecastJob) -> PlannedJob:
    found = cases_of([job])
    return PlannedJob(item=job.spec.shown, found=found[0] if found else "", reason=job.forecast.reason)


def _reasons(item: PlannedItem) -> Iterator[str]:
    """Why its jobs would run, each reason once."""
    counts = Counter(job.reason for job in item.jobs if not job.found)
    for reason, count in counts.most_common(REASONS_MAX):
        again = " again" if reason.startswith(AGAIN) else ""
        many = f"{count} of them " if count < len(item.jobs) else ""
        yield f"{many}would run{again}, because {reason.removeprefix(AGAIN).removeprefix(NEW)}"
    if len(counts) > REASONS_MAX:
        yield f"and for {len(counts) - REASONS_MAX} more reasons; --json has them all"


def _when(plan: Plan, node: PlanNode, begun: int) -> str:
    if begun:
        return "at once" if begun == 1 else f"at once, {begun} of them"
    around = [node, *ancestors(plan, node)]
    needed = [plan.nodes[plan.links[link].source].shown for each in around for link in each.targets]
    parts = [f"would run after {', '.join(dict.fromkeys(needed))}"] if needed else []
    for each in around:
        if isinstance(each.activity, ForEach):
            parts.append("once for each element")
        elif each.kind in REPEATING:
            parts.append("in a loop")
        elif each.kind in ("catch", "compensation", "termination"):
            parts.append("only if something fails" if each.kind == "catch" else f"only as a {each.kind}")
        condition = getattr(each.activity, "when", None)
        parts += [f"if {condition.text}"] if condition is not None and hasattr(condition, "text") else []
    return ", ".join(parts) or "later"


def _what(node: PlanNode) -> str:
    activity = node.activity
    if isinstance(activity, JobActivity):
        told = activity.command if activity.command is not None else _function_text(activity.function)
        return one_line(told, COMMAND_CHARS)
    return one_line(str(getattr(activity, "title", "") or getattr(activity, "flow", "")), COMMAND_CHARS)


def _function_text(function: FunctionRef | None) -> str:
    """steps.py:count, as a flow file names it; of an installed module steps:count."""
    if function is None:
        return ""
    return f"{function.module}{'.py' if function.folder or function.code is not None else ''}:{function.name}"


def _lack(asked: list[JobSpec], machine: Capacity) -> str:
    """What this machine lacks or has too little of, with figures."""
    for spec in asked:
        needs, container = spec.resources, spec.container
        if container is not None and machine.runtime not in (wanted := runtimes_for(container.image)):
            return f"it could not run here: its container {container.image} needs {' or '.join(wanted)}"
        pairs = (
            (needs.cpus, machine.cpus, "cpus", lambda number: f"{number:g}"),
            (needs.memory_bytes, machine.memory_bytes, "memory", size),
            (needs.disk_bytes, machine.disk_bytes, "disk", size),
            (needs.gpus, machine.gpus, "gpus", lambda number: f"{number:g}"),
        )
        for wants, has, name, tell in pairs:
            if wants > has:
                return f"it could not run here: it asks for {tell(wants)} of {name}, and this machine has {tell(has)}"
    return ""
