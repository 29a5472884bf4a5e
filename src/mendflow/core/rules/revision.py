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
from mendflow.core.pieces import CooperativeFunction, Pieces
from mendflow.core.rules.differences import differences
from mendflow.core.rules.evaluation import CompiledRules, context_lookup, tree_for
from mendflow.core.rules.insertion import (
    NARROW_ADVICE,
    CornerstoneConflict,
    Draft,
    InsertedRule,
    cornerstone_conflict,
    demand_sound,
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


class RuleEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What is to change in a rule; None leaves it as it is. `steps` is a new exlet, named `exlet`."""

    condition: str | None = None
    exlet: str | None = None
    steps: Flow | None = None
    note: str | None = None


@CooperativeFunction
def edit_rule(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, edit: RuleEdit, *, author: str = "", at: Instant = 0
) -> Pieces[RuleSet]:
    """The new version with a rule changed. A condition must hold for the rule's own cornerstone, and no other
    cornerstone may get another conclusion; that of the rule itself changes with its exlet."""
    before = rule_in(rule_set, type, tree, rule)
    if is_out_of_use(before):
        raise Conflict(f"rule {rule} in {name_of(type, tree)} of `{rule_set.name}` is out of use; add a new one")
    after = rule_set
    if edit.exlet is not None and (edit.exlet != before.exlet or edit.steps is not None):
        after = replace_exlet(after, type, tree, rule, edit.exlet, steps=edit.steps, author=author, at=at)
    change: dict[str, Any] = {} if edit.note is None else {"note": edit.note}
    if edit.condition is not None and edit.condition != before.condition:
        draft = Draft(condition=edit.condition, exlet=after.trees[type][tree].rules[rule].exlet)
        demand_sound(after, type, draft, before.cornerstone)
        change["condition"] = edit.condition
    after = with_rule(after, type, tree, rule, change, author, at)
    if not before.passive:
        yield from demand_others_unchanged(rule_set, after, type, tree, edited=rule)
    return msgspec.structs.replace(after, version=rule_set.version + 1)


@CooperativeFunction
def set_passive(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, passive: bool, *, author: str = "", at: Instant = 0
) -> Pieces[RuleSet]:
    """Put a rule on trial, or in force. In force it may not change other cornerstones' conclusions."""
    rule_in(rule_set, type, tree, rule)
    after = with_rule(rule_set, type, tree, rule, {"passive": passive}, author, at)
    if not passive:
        advice = "retire this one and add a narrower rule"
        yield from demand_unchanged(rule_set, InsertedRule(after, tree, rule), type, advice)
    return after


@CooperativeFunction
def promote(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, *, author: str = "", at: Instant = 0
) -> Pieces[RuleSet]:
    """Put a rule that was on trial in force."""
    if not rule_in(rule_set, type, tree, rule).passive:
        raise Conflict(f"rule {rule} in {name_of(type, tree)} of `{rule_set.name}` is not on trial")
    return (yield from set_passive.pieces(rule_set, type, tree, rule, False, author=author, at=at))


@CooperativeFunction
def find_passive_rule(
    rule_set: RuleSet, type: ExceptionType, task: str, context: Mapping[str, Value] | None, draft: Draft
) -> Pieces[RuleLocation | None]:
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
            after = yield from promote.pieces(rule_set, type, tree, id)
        except CornerstoneConflict:
            continue
        decided = CompiledRules(after).walk_tree(type, tree, context_lookup(context)).decided
        if decided is not None and decided.rule.id == id:
            return RuleLocation(type, tree, id)
    return None


@CooperativeFunction
def retire(
    rule_set: RuleSet,
    type: ExceptionType,
    tree: str,
    rule: int,
    *,
    exceptions: bool = False,
    author: str = "",
    at: Instant = 0,
) -> Pieces[RuleSet]:
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
    yield from demand_others_unchanged(rule_set, after, type, tree)
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


def demand_others_unchanged(
    before: RuleSet, after: RuleSet, type: ExceptionType, tree: str, *, edited: int | None = None
) -> Pieces[None]:
    """Refuse to retire, or to edit, rules that decide other rules' cornerstones. The refusal of an edit shows in what
    the edited rule's own cornerstone differs from that one."""
    old, new = CompiledRules(before), CompiledRules(after)
    rules = after.trees[type][tree].rules
    own = rules[edited] if edited is not None else None
    for id, rule in rules.items():
        if rule.cornerstone is None or rule.passive or id == edited:
            continue
        yield
        was, now = (exlet_concluded(compiled, type, tree, rule.cornerstone) for compiled in (old, new))
        if was != now:
            stone = own.cornerstone if own is not None else None
            found = differences(stone, rule.cornerstone) if stone is not None else []
            advice = NARROW_ADVICE if own is not None else "add a rule for that case first"
            condition = own.condition if own is not None else ""
            raise cornerstone_conflict(type, tree, id, was, now, advice, found, condition)


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
