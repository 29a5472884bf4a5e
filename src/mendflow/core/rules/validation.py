"""Validates a rule set: tree structure, existing exlets, valid conditions.

Whatever comes from outside is validated once; all other code relies on it."""

from typing import Final

from mendflow.core.expressions.conditions import condition_flaw
from mendflow.core.model.errors import BadRules, InvalidRequest
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet, RuleTree

NAME_CHARS_MAX: Final = 200


def demand_valid(rule_set: RuleSet) -> None:
    if found := problems_of(rule_set):
        raise BadRules(problems=found)


def demand_named(name: str) -> None:
    """Refuse a name that could not be part of a URL."""
    if problem := name_problem(name):
        raise InvalidRequest(problem, field="name")


def name_problem(name: str) -> str:
    """What is wrong with the name of a set. Engines name their flows freely, so there are few rules."""
    if 0 < len(name) <= NAME_CHARS_MAX and "/" not in name and name.isprintable() and name.strip(". "):
        return ""
    rule = f"it is the name of a flow, or `{DEFAULT_RULES}` for the default rules"
    rule += f"; at most {NAME_CHARS_MAX} characters, and no /"
    return f"{name[:100]!r} is not a valid name for a rule set: {rule}"


def problems_of(rule_set: RuleSet) -> list[str]:
    """Everything that is wrong with a rule set, each with its place."""
    found = [problem] if (problem := name_problem(rule_set.name)) else []
    for type, trees in rule_set.trees.items():
        for task, tree in trees.items():
            where = name_of(type, task)
            if (type in CASE_LEVEL) != (task == ""):
                found.append(f"{where}: {'a type of cases has one tree' if task else 'the tree has no task'}")
            # An invalid tree is rebuilt, so its conditions, which may be thousands, are checked then.
            problems = shape_problems(tree) or rule_problems(rule_set, type, tree)
            found += [f"{where}: {problem}" for problem in problems]
    return found


def name_of(type: ExceptionType, task: str) -> str:
    """The display name of a tree: `abort/align`, `case-pre`."""
    return f"{type}/{task}" if task else str(type)


def shape_problems(tree: RuleTree) -> list[str]:
    """What keeps it from being a tree: rules that are missing, referenced twice, or never."""
    if not tree.rules:
        return ["it has no rules"]
    found = [f"rule {id} calls itself {rule.id}" for id, rule in tree.rules.items() if rule.id != id]
    seen: set[int] = set()
    pending = [tree.root]
    while pending:
        each = pending.pop()
        if each in seen:
            found.append(f"rule {each} hangs on two rules")
        elif each not in tree.rules:
            found.append(f"rule {each} is missing")
        else:
            seen.add(each)
            rule = tree.rules[each]
            pending += [child for child in (rule.on_false, rule.on_true) if child is not None]
    lost = sorted(tree.rules.keys() - seen)
    return [*found, *(f"rule {each} hangs on no other" for each in lost)]


def rule_problems(rule_set: RuleSet, type: ExceptionType, tree: RuleTree) -> list[str]:
    found = []
    for id, rule in tree.rules.items():
        if (flaw := condition_flaw(rule.condition)) is not None:
            found.append(f"rule {id}: in the condition `{rule.condition:.60}`: {flaw.message}")
        if rule.exlet and type is not ExceptionType.SELECTION and rule.exlet not in rule_set.exlets:
            found.append(f"rule {id}: there is no exlet `{rule.exlet}`")
    return found
