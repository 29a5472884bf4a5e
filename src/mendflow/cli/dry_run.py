"""What a run of a flow would do, without doing it: which jobs would start at once, what the others wait for, and
whether this machine could take them. Nothing is started, and nothing is written."""

from pathlib import Path
from typing import Final

import msgspec

from mendflow.cli.printing import print_json, print_table, say
from mendflow.core.engine import Case, decide, evolve
from mendflow.core.engine.messages import ItemFailed, OfferTask, StageFiles, StartCalledCase, StartCase, SubmitJob
from mendflow.core.engine.plan import WORK, Plan, PlanNode, ancestors
from mendflow.core.model.flow import Flow, ForEach, JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import Value
from mendflow.core.scheduling.amounts import size
from mendflow.pages.formatting import count_text, one_line
from mendflow.pilot.environment import capacity, usable_cpus

REPEATING: Final = ("for-each", "while", "until")
COMMAND_CHARS: Final = 200


class PlannedItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One activity of the flow: when it would run, and why. `problem` says why it could not run here."""

    name: str
    kind: str
    when: str
    what: str = ""
    items: int = 0  # how many would start at once
    problem: str = ""


def print_plan(flow: Flow, inputs: dict[str, Value], *, slots: int, cached: bool, json: bool) -> None:
    planned = plan_run(flow, inputs, capacity(Path.cwd(), slots=slots or usable_cpus()))
    if json:
        print_json(planned)
        return
    at_once = sum(item.items for item in planned)
    say(f"{flow.name}: {count_text(at_once, 'item')} would start at once; nothing was started or written")
    print_table(("item", "kind", "when", "what"), [(item.name, item.kind, item.when, item.what) for item in planned])
    for item in planned:
        if item.problem:
            say(f"{item.name}: {item.problem}")
    if cached:
        say("with --cached, jobs that have not changed since the last case of this flow would not run")


def plan_run(flow: Flow, inputs: dict[str, Value], machine: Capacity) -> list[PlannedItem]:
    """The activities of the flow in their order, as a case with these inputs would begin."""
    command = StartCase(case=CaseId("dry-run"), flow=flow, inputs=inputs)
    case = Case.blank()
    orders = [order for event in decide(case, command, 0) for order in evolve(case, event)]
    begun: dict[str, list[Resources | None]] = {}
    failed: dict[str, str] = {}
    for order in orders:
        if isinstance(order, SubmitJob):
            begun.setdefault(order.spec.item.partition("[")[0], []).append(order.spec.resources)
        elif isinstance(order, (OfferTask, StageFiles, StartCalledCase)):
            begun.setdefault(order.item.partition("[")[0], []).append(None)
        elif isinstance(order, ItemFailed):
            failed[order.item.partition("[")[0]] = f"it would fail at once: {order.fault.message}"
    return [
        PlannedItem(
            name=node.shown,
            kind=node.kind,
            when=_when(case.plan, node, len(begun.get(node.shown, ()))),
            what=_what(node),
            items=len(begun.get(node.shown, ())),
            problem=failed.get(node.shown) or _lack(begun.get(node.shown, []), machine),
        )
        for node in case.plan.nodes
        if node.kind in WORK
    ]


def _when(plan: Plan, node: PlanNode, begun: int) -> str:
    if begun:
        return "at once" if begun == 1 else f"at once, {begun} of them"
    around = [node, *ancestors(plan, node)]
    needed = [plan.nodes[plan.links[link].source].shown for each in around for link in each.targets]
    parts = [f"after {', '.join(dict.fromkeys(needed))}"] if needed else []
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
        told = activity.command if activity.command is not None else str(activity.function)
        return one_line(told, COMMAND_CHARS)
    return one_line(str(getattr(activity, "title", "") or getattr(activity, "flow", "")), COMMAND_CHARS)


def _lack(asked: list[Resources | None], machine: Capacity) -> str:
    """What this machine has too little of, with figures."""
    for needs in asked:
        if needs is None:
            continue
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
