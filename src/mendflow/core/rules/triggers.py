"""The triggers that a rule set knows by name."""

import msgspec

from mendflow.core.expressions.conditions import condition_of
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import RuleSet
from mendflow.core.rules.evaluation import tree_for

PATHS = frozenset({"trigger", "trigger.name"})


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    note: str = ""


def triggers(rule_set: RuleSet, type: ExceptionType, task: str = "") -> list[Trigger]:
    """The texts that the rules of a type compare the trigger with, in the order of the rules."""
    tree = tree_for(rule_set, type, task)
    if tree is None:
        return []
    found: dict[str, Trigger] = {}
    for rule in rule_set.trees[type][tree].rules.values():
        for test in condition_of(rule.condition).tests:
            for constant in test.constants if test.do == "==" and test.path.name in PATHS else ():
                if isinstance(constant, str):
                    found.setdefault(constant, Trigger(constant, rule.note))
    return list(found.values())
