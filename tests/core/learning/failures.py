"""Failures for tests of learning: decisions with their contexts, and the counts that they make."""

from collections.abc import Iterable, Sequence
from typing import Any

from mendflow.core.learning.exlet_changes import change_of_exlet, is_same_again
from mendflow.core.learning.group_statistics import (
    FailureOutcome,
    GroupStatistics,
    LearnedFailure,
    count_failure,
    empty_group,
)
from mendflow.core.learning.repair_suggestions import History, KnownExlet, Suggestion, Verdict
from mendflow.core.model.errors import RequestError
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.learning import LearningSettings
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionType
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES, RuleSet
from mendflow.core.recovery.classification import classify
from mendflow.core.recovery.signature import signature
from mendflow.core.rules import CompiledRules, Draft, add_rule, context_lookup, tree_for
from mendflow.formats.shipped import default_rules

ABORT = ExceptionType.ABORT
EXLETS = default_rules().exlets


def failure_of(
    number: int,
    *,
    category: str = "job",
    name: str = "exitCode",
    message: str = "no licence left",
    exit_code: int | None = 9,
    flow: str = "night",
    host: str = "ant",
    generation: int = 1,
    level: int = 0,
    outcome: FailureOutcome = "unhandled",
    exlet: str = "",
    by_hand: bool = False,
    conclusion: Conclusion | None = None,
    domains: Sequence[str] = (),
) -> Decision:
    fault = Fault(name=name, category=Category(category), message=message, exit_code=exit_code, stage="execution")
    found = classify(fault)
    context: dict[str, Any] = {
        "case": {"id": f"{flow}-{number}", "flow": flow, "undoable": 0},
        "item": {"id": "align", "name": "align", "kind": "job", "caught": False},
        "job": {
            "id": f"{flow}-{number}/1",
            "final": True,
            "generation": generation,
            "level": level,
            "host": host,
            "avoid_hosts": [],
            "memory_bytes": 2_000,
            "wall_ms": 1_000,
            "sources_left": 0,
            "stage": "execution",
            "attempts": generation,
            "site": "",
            "domain": "",
        },
        "fault": {
            "name": name,
            "category": category,
            "message": message,
            "exit_code": exit_code,
            "signal": None,
            "recoverable": found.recoverable,
            "infrastructure": fault.infrastructure,
            "family": found.family,
            "data": None,
            "stage": "execution",
            "file": "",
        },
        "capacity": {"hosts": 4, "domains": list(domains), "levels": 3, "largest": {"memory_bytes": 64_000}},
        "history": {"case": {"of_task": 0}},
    }
    if by_hand:
        conclusion = Conclusion(
            rules=DEFAULT_RULES, version=0, type=ABORT, task="", rule=BY_HAND, exlet=exlet, ordered_by="ann"
        )
    states: dict[str, Any] = {"unhandled": "ignored", "queue": "ignored"}
    results = {"helped": "recovered", "failed": "failed", "queue": "retried"}
    return Decision(
        id=f"{flow}-{number}/1:{generation}/abort",
        case=CaseId(f"{flow}-{number}"),
        flow=flow,
        type=ABORT,
        at=1_000 * number,
        state=states.get(outcome, "done"),
        task="align",
        fault=fault,
        signature=signature(fault),
        exlet=exlet,
        conclusion=conclusion,
        context=context,
        result=results.get(outcome, ""),
    )


def learned(decision: Decision, outcome: FailureOutcome) -> LearnedFailure:
    assert decision.fault is not None
    said = decision.conclusion
    flow = EXLETS.get(decision.exlet)
    return LearnedFailure(
        id=decision.id,
        group=decision.signature,
        type=decision.type,
        signature=decision.signature,
        category=decision.fault.category.value,
        name=decision.fault.name,
        case=decision.case,
        flow=decision.flow,
        task=decision.task,
        at=decision.at,
        ended_at=decision.at + 60_000,
        outcome=outcome,
        exlet=decision.exlet,
        rules=said.rules if said is not None else "",
        tree=said.task if said is not None else "",
        rule=said.rule if said is not None else 0,
        same_again=flow is not None and is_same_again(change_of_exlet(flow)),
        host=decision.context["job"]["host"],
        level=decision.context["job"]["level"],
    )


OUTCOMES: dict[str, FailureOutcome] = {"recovered": "helped", "failed": "failed", "retried": "queue", "": "unhandled"}


def groups_of(decisions: Iterable[Decision]) -> list[GroupStatistics]:
    groups: dict[str, GroupStatistics] = {}
    for decision in decisions:
        found = learned(decision, OUTCOMES[decision.result])
        count_failure(groups.setdefault(found.group, empty_group(found)), found)
    return list(groups.values())


def judged_by(sets: dict[str, RuleSet], decision: Decision) -> Verdict:
    for name in (decision.flow, DEFAULT_RULES):
        if name in sets:
            said = CompiledRules(sets[name]).judge(decision.type, decision.task, context_lookup(decision.context))
            if said.conclusion is not None:
                return Verdict(said.conclusion, True)
    return Verdict(None, False)


def history_of(decisions: Sequence[Decision], sets: dict[str, RuleSet] | None = None, **more: Any) -> History:
    sets = sets if sets is not None else {}
    groups = groups_of(decisions)
    given: dict[str, Any] = {
        "groups": groups,
        "decisions": {each.id: each for each in decisions},
        "judge": lambda decision: judged_by(sets, decision),
        "exlets": lambda name: [KnownExlet(exlet, change_of_exlet(flow), flow) for exlet, flow in EXLETS.items()],
        "cornerstones": lambda name: cornerstones_of(sets.get(name)),
        "conflicts": lambda said, decision: conflicts_in(sets, said, decision),
        "is_blocked": lambda kind, subject, exlet: False,
        "changed": frozenset(each.id for each in groups),
        "settings": LearningSettings(),
    }
    return History(**{**given, **more})


def cornerstones_of(rules: RuleSet | None) -> list[dict[str, Any]]:
    if rules is None:
        return []
    return [
        rule.cornerstone
        for tree in rules.trees.get(ABORT, {}).values()
        for rule in tree.rules.values()
        if rule.cornerstone is not None and rule.exlet
    ]


def adopted(sets: dict[str, RuleSet], said: Suggestion, decision: Decision, *, passive: bool = False) -> RuleSet:
    """The rule set with the suggested rule. Raises CornerstoneConflict."""
    rules = sets.get(said.rules, RuleSet(name=said.rules))
    steps = said.flow if said.exlet and said.exlet not in rules.exlets else None
    draft = Draft(condition=said.condition, exlet=said.exlet, steps=steps, passive=passive)
    task = said.task if said.task != ALL_TASKS else (tree_for(rules, said.type, decision.task) or ALL_TASKS)
    return add_rule(rules, said.type, task, decision.context, draft).rule_set


def conflicts_in(sets: dict[str, RuleSet], said: Suggestion, decision: Decision) -> bool:
    try:
        adopted(sets, said, decision)
    except RequestError:
        return True
    return False
