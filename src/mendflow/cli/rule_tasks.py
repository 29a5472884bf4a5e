"""What a person should know of a rule set that does not fit its flow: renamed tasks, other versions."""

from collections.abc import Iterable

from mendflow.client import Client
from mendflow.core.model.rule_views import RuleTasksView
from mendflow.core.model.rules import DEFAULT_RULES


async def misfits(client: Client, names: Iterable[str]) -> list[str]:
    """The same for those of these sets whose flows are deployed."""
    known = {view.name for view in await client.rule_sets()} - {DEFAULT_RULES}
    views = [await client.rule_tasks(name) for name in names if name in known]
    return [line for view in views for line in (task_lines(view) if view.deployed else source_lines(view))]


def source_lines(view: RuleTasksView) -> list[str]:
    """Which sources its rules read that nobody has registered."""
    return [
        f"rules of {view.rules} read sources.{name}, which is not registered, and err; an administrator adds it by"
        f" mendflow rules sources add {name}"
        for name in view.unknown_sources
    ]


def task_lines(view: RuleTasksView) -> list[str]:
    """What a person should know of a rule set that does not fit its flow."""
    if not view.deployed:
        missing = [] if view.rules == DEFAULT_RULES else [f"no flow {view.rules} is deployed here"]
        return missing + source_lines(view)
    lines = source_lines(view)
    if not view.holds:
        lines.append(
            f"the rules of {view.rules} do not hold for its newest version; `mendflow rules tasks {view.rules}"
            " --flow-version newest` lets them"
        )
    for each in view.unknown:
        meant = f" {each.task}={each.meant}" if each.meant else f" {each.task}=NEW"
        lines.append(
            f"there are rules for {each.task}, which flow {view.rules} does not have; if it was renamed:"
            f" mendflow rules tasks {view.rules} --map{meant}"
        )
    return lines
