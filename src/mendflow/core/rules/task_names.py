"""The tasks that a rule set has rules for, beside those that its flow has: a renamed task is noticed, and can be
mapped."""

from difflib import get_close_matches
from typing import NamedTuple

from mendflow.core.engine.plan import WORK, Plan
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import ALL_TASKS, RuleSet

CLOSE_ENOUGH = 0.5


class UnknownTask(NamedTuple):
    """A task that rules are for and the flow does not have, and the one that was probably meant."""

    task: str
    types: list[ExceptionType]
    meant: str


def tasks_of(plan: Plan) -> set[str]:
    """The names by which rules know the tasks of a flow."""
    return {name for node in plan.nodes if node.kind in WORK for name in (node.name, node.shown) if name}


def unknown_tasks(rule_set: RuleSet, plan: Plan) -> list[UnknownTask]:
    """The tasks with rules that the flow does not have, unless they are mapped to one that it has."""
    known = tasks_of(plan)
    ruled = {task for trees in rule_set.trees.values() for task in trees}
    free = sorted(known - ruled - set(rule_set.renamed.values()))
    found: dict[str, list[ExceptionType]] = {}
    for type, trees in rule_set.trees.items():
        for task in trees:
            if task not in ("", ALL_TASKS) and task not in known and rule_set.renamed.get(task) not in known:
                found.setdefault(task, []).append(type)
    return [UnknownTask(task, types, _meant(task, free, alone=len(found) == 1)) for task, types in found.items()]


def _meant(task: str, free: list[str], *, alone: bool) -> str:
    """The task without rules whose name is closest; the only one, if one task is unknown and one has no rules."""
    close = get_close_matches(task, free, 1, CLOSE_ENOUGH)
    return close[0] if close else free[0] if alone and len(free) == 1 else ""
