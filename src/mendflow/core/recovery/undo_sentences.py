"""What repairs, or the flow itself, have undone, in a sentence: the same one wherever people look."""

from collections.abc import Iterable, Mapping
from typing import Final

from mendflow.core.engine.activity_parts import kind_of, parts_of
from mendflow.core.engine.plan import WORK, walk_activities
from mendflow.core.model.flow import Activity, Flow, Scope
from mendflow.core.model.repair_views import DecisionView
from mendflow.core.model.rules import rule_text
from mendflow.core.model.views import ItemView

ITEMS_SHOWN: Final = 20


def undone_sentences(decisions: Iterable[DecisionView]) -> list[str]:
    """`undone: address, node (by give-up, rule 22 of *)`, for each repair that undid something."""
    return [_sentence(each) for each in decisions if each.undone]


def undone_by(decisions: Iterable[DecisionView], item: str) -> str:
    """How an item was undone; empty if it was not."""
    found = next((each for each in decisions if item in each.undone), None)
    return f"it was {_word(found)} (by {_by(found)})" if found is not None else ""


def undoing_names(flow: Flow) -> dict[str, str]:
    """The names of the activities by which the flow undoes steps, each with the name of the step."""
    found: dict[str, str] = {}
    for scope in walk_activities(flow):
        if isinstance(scope, Scope) and scope.compensation is not None:
            for name in _work_in(scope.compensation):
                found[name] = scope.label or scope.name
    return found


def _work_in(activity: Activity) -> Iterable[str]:
    pending = [activity]
    while pending:
        each = pending.pop()
        if kind_of(each) in WORK:
            yield each.label or each.name
        pending.extend(parts_of(each))


def undone_in_flow(undoing: Mapping[str, str], items: Iterable[ItemView]) -> list[str]:
    """The sentence about the steps that the flow itself has undone, the last that completed first; if there are any."""
    found = dict[str, None]()
    for item in items:
        if item.state == "completed" and item.name in undoing:
            found[undoing[item.name] + item.item[len(item.name) :]] = None
    return [f"undone: {_listed(list(found))} (by the flow itself)"] if found else []


def _listed(items: list[str]) -> str:
    more = len(items) - ITEMS_SHOWN
    return ", ".join(items[:ITEMS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _sentence(decision: DecisionView) -> str:
    return f"{_word(decision)}: {_listed(decision.undone)} (by {_by(decision)})"


def _word(decision: DecisionView) -> str:
    if decision.state == "running":
        return "being undone"
    return "undone" if decision.state != "failed" else "not undone, or not all of it"


def _by(decision: DecisionView) -> str:
    rule = f", {rule_text(decision.rules, decision.rule)}" if decision.rule is not None else ""
    ordered = f", ordered by {decision.ordered_by}" if decision.ordered_by else ""
    case = f", case {decision.exlet_case}" if decision.exlet_case else ""
    return f"{decision.exlet}{rule}{ordered}{case}"
