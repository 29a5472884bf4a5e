"""How a rule set fits its flow: the tasks that the flow does not have, the names that have changed, the versions."""

from msgspec.structs import replace

from mendflow.core.engine import compile_flow
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.rule_views import RuleTasksView, TaskMapping, UnknownTaskView
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules.task_names import tasks_of, unknown_tasks

NEWEST = "newest"
TASKS_SHOWN = 20


def tasks_view(rules: RuleSet, newest: tuple[Flow, str] | None) -> RuleTasksView:
    """`newest` is the newest version of the flow, with its digest. The default rules are for tasks of all flows."""
    known = newest if rules.name != DEFAULT_RULES else None
    missing = unknown_tasks(rules, compile_flow(known[0], taken=True)) if known is not None else []
    digest = known[1] if known is not None else ""
    return RuleTasksView(
        rules=rules.name,
        version=rules.version,
        deployed=known is not None,
        flow_version=digest,
        holds=known is None or not rules.flow_versions or digest in rules.flow_versions,
        flow_versions=list(rules.flow_versions),
        renamed=rules.renamed,
        unknown=[UnknownTaskView(task=each.task, types=each.types, meant=each.meant) for each in missing],
    )


def mapped_tasks(rules: RuleSet, mapping: TaskMapping, newest: tuple[Flow, str] | None) -> RuleSet:
    """The set with these names and versions. Refused for a task that has no rules, or that the flow does not have."""
    ruled = {task for trees in rules.trees.values() for task in trees if task}
    tasks = tasks_of(compile_flow(newest[0], taken=True)) if newest is not None else None
    for old, new in mapping.renamed.items():
        if old not in ruled:
            known = ", ".join(sorted(ruled)[:TASKS_SHOWN])
            raise InvalidRequest(f"no rule is for a task {old!r:.80}; there are rules for {known}", field="renamed")
        if new and tasks is not None and new not in tasks:
            known = ", ".join(sorted(tasks)[:TASKS_SHOWN])
            raise InvalidRequest(f"flow {rules.name} has no task {new!r:.80}; it has {known}", field="renamed")
    renamed = {old: new for old, new in {**rules.renamed, **mapping.renamed}.items() if new}
    versions = rules.flow_versions
    if mapping.flow_versions is not None:
        versions = tuple(dict.fromkeys(_version(each, rules.name, newest) for each in mapping.flow_versions))
    return replace(rules, renamed=renamed, flow_versions=versions)


def _version(text: str, name: str, newest: tuple[Flow, str] | None) -> str:
    if text != NEWEST:
        return text
    if newest is None:
        raise InvalidRequest(f"no flow {name} is deployed here, so there is no newest version", field="flow_versions")
    return newest[1]
