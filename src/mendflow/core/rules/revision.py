"""Changes an existing rule: another exlet, on trial or in force, retired.

A rule is never removed from its tree, because others were placed relative to it. A retired one has the condition
`false`; earlier versions show what it was."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules.evaluation import CompiledRules, context_lookup, tree_for
from mendflow.core.rules.insertion import (
    CornerstoneConflict,
    Draft,
    InsertedRule,
    cornerstone_conflict,
    demand_unchanged,
    exlet_concluded,
    next_version,
    rule_in,
)
from mendflow.core.rules.validation import name_of

OUT_OF_USE: Final = "false"
"""The condition of a retired rule."""


class RuleLocation(NamedTuple):
    """A rule of a set, and its tree."""

    type: ExceptionType
    tree: str
    rule: int


def locate_rule(rule_set: RuleSet, rule: int, type: ExceptionType | None = None, task: str = "") -> RuleLocation:
    """The rule of this number. Numbers are per tree: if several have it, type and task select one."""
    found = [
        RuleLocation(each, name, rule)
        for each, trees in rule_set.trees.items()
        for name, tree in trees.items()
        if rule in tree.rules and type in (None, each) and task in ("", name)
    ]
    if not found:
        where = f" in {name_of(type, task)}" if type is not None else f" of {task}" if task else ""
        raise NotFound(
            f"there is no rule {rule}{where} of `{rule_set.name}`; `mendflow rules show` draws those there are"
        )
    if len(found) > 1:
        several = ", ".join(name_of(each.type, each.tree) for each in found)
        raise InvalidRequest(
            f"`{rule_set.name}` has a rule {rule} in each of {several}; say the type and the task", field="rule"
        )
    return found[0]


def replace_exlet(
    rule_set: RuleSet,
    type: ExceptionType,
    tree: str,
    rule: int,
    exlet: str,
    *,
    steps: Flow | None = None,
    author: str = "",
    at: Instant = 0,
) -> RuleSet:
    """The same rule with another exlet; its own cornerstone's conclusion changes with it."""
    rule_in(rule_set, type, tree, rule)
    if exlet and steps is None and exlet not in rule_set.exlets and type is not ExceptionType.SELECTION:
        raise InvalidRequest(f"there is no exlet `{exlet}` in the rules of `{rule_set.name}`", field="exlet")
    if steps is not None and rule_set.exlets.get(exlet, steps) != steps:
        raise InvalidRequest(f"there is an exlet `{exlet}` already; give the new one another name", field="exlet")
    after = with_rule(rule_set, type, tree, rule, {"exlet": exlet}, author, at)
    return after if steps is None else msgspec.structs.replace(after, exlets={**after.exlets, exlet: steps})


def set_passive(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, passive: bool, *, author: str = "", at: Instant = 0
) -> RuleSet:
    """Put a rule on trial, or in force. In force it may not change other cornerstones' conclusions."""
    rule_in(rule_set, type, tree, rule)
    after = with_rule(rule_set, type, tree, rule, {"passive": passive}, author, at)
    if not passive:
        demand_unchanged(rule_set, InsertedRule(after, tree, rule), type, "retire this one and add a narrower rule")
    return after


def promote(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, *, author: str = "", at: Instant = 0
) -> RuleSet:
    """Put a rule that was on trial in force."""
    if not rule_in(rule_set, type, tree, rule).passive:
        raise Conflict(f"rule {rule} in {name_of(type, tree)} of `{rule_set.name}` is not on trial")
    return set_passive(rule_set, type, tree, rule, False, author=author, at=at)


def find_passive_rule(
    rule_set: RuleSet, type: ExceptionType, task: str, context: Mapping[str, Value] | None, draft: Draft
) -> RuleLocation | None:
    """The rule on trial that says the same as the requested one, if in force it would decide the case at hand and
    change nothing for others."""
    tree = tree_for(rule_set, type, task)
    if tree is None or context is None or tree not in (task, ""):
        return None
    for id, rule in rule_set.trees[type][tree].rules.items():
        same = rule.passive and (rule.condition, rule.exlet) == (draft.condition, draft.exlet)
        if not same or (draft.steps is not None and rule_set.exlets.get(draft.exlet) != draft.steps):
            continue
        try:
            after = promote(rule_set, type, tree, id)
        except CornerstoneConflict:
            continue
        decided = CompiledRules(after).walk_tree(type, tree, context_lookup(context)).decided
        if decided is not None and decided.rule.id == id:
            return RuleLocation(type, tree, id)
    return None


def retire(
    rule_set: RuleSet,
    type: ExceptionType,
    tree: str,
    rule: int,
    *,
    exceptions: bool = False,
    author: str = "",
    at: Instant = 0,
) -> RuleSet:
    """Retire the rule. Its exceptions would not be evaluated any more, so they must be retired with it, on request, or
    before it. The conclusions of all other cornerstones must stay."""
    if is_out_of_use(rule_in(rule_set, type, tree, rule)):
        raise Conflict(f"rule {rule} in {name_of(type, tree)} of `{rule_set.name}` is already out of use")
    below = exceptions_to(rule_set.trees[type][tree], rule)
    if below and not exceptions:
        known = ", ".join(map(str, below))
        raise Conflict(
            f"rule {rule} in {name_of(type, tree)} has exceptions that would not be evaluated any more ({known});"
            " retire them first, or with it"
        )
    after = rule_set
    for each in (rule, *below):
        change = {"condition": OUT_OF_USE, "cornerstone": None, "passive": False}
        after = with_rule(after, type, tree, each, change, author, at)
    demand_others_unchanged(rule_set, after, type, tree)
    return msgspec.structs.replace(after, version=rule_set.version + 1)


def is_out_of_use(rule: Rule) -> bool:
    return rule.condition == OUT_OF_USE


def exceptions_to(tree: RuleTree, rule: int) -> list[int]:
    """The rules in use that are evaluated only if this one holds."""
    found: list[int] = []
    pending = [tree.rules[rule].on_true]
    while pending:
        each = pending.pop()
        if each is not None:
            found += [each] if not is_out_of_use(tree.rules[each]) else []
            pending += [tree.rules[each].on_true, tree.rules[each].on_false]
    return sorted(found)


def demand_others_unchanged(before: RuleSet, after: RuleSet, type: ExceptionType, tree: str) -> None:
    """Refuse to retire rules that decide other rules' cornerstones."""
    old, new = CompiledRules(before), CompiledRules(after)
    for id, rule in after.trees[type][tree].rules.items():
        if rule.cornerstone is None or rule.passive:
            continue
        was, now = (exlet_concluded(rules, type, tree, rule.cornerstone) for rules in (old, new))
        if was != now:
            raise cornerstone_conflict(type, tree, id, was, now, "add a rule for that case first")


def with_exlet(rule_set: RuleSet, name: str, steps: Flow, *, author: str = "", at: Instant = 0) -> RuleSet:
    """The new version with an exlet added or replaced."""
    exlets = {**rule_set.exlets, name: steps}
    return msgspec.structs.replace(rule_set, version=rule_set.version + 1, exlets=exlets, author=author, at=at, note="")


def with_rule(
    rule_set: RuleSet, type: ExceptionType, tree: str, id: int, change: dict[str, Any], author: str, at: Instant
) -> RuleSet:
    before = rule_set.trees[type][tree]
    rule: Rule = msgspec.structs.replace(before.rules[id], **change)
    return next_version(rule_set, type, tree, RuleTree({**before.rules, id: rule}, before.root), author, at)
