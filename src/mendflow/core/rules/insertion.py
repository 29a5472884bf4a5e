"""Adds a rule for a case at hand, at the one place where it affects that case and no case that was right.

The evaluation for the case ends at a free side of some rule; the new rule goes there. It is evaluated only by cases
that take the same path, and of the known ones, the cornerstones, none may get another conclusion. So rules can be added
while cases run, and nothing that was right becomes wrong. A set is immutable: each change gives a new version."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, NamedTuple

import msgspec

from mendflow.core.expressions.conditions import KnownValues, condition_flaw, condition_of
from mendflow.core.expressions.scanner import scan
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.pieces import CooperativeFunction, Pieces
from mendflow.core.rules.cornerstones import cornerstone
from mendflow.core.rules.differences import Difference, differences, differences_text
from mendflow.core.rules.evaluation import ROOTS, CompiledRules, context_lookup, tree_for
from mendflow.core.rules.validation import name_of

Context = Mapping[str, Value]


class InsertionPoint(NamedTuple):
    """Where a rule for a case goes: the tree, the parent rule and its side, and the neighbour, whose conclusion the
    case gets now. A new tree has no parent."""

    tree: str
    parent: int | None
    side: Literal["true", "false"]
    neighbour: int | None
    names_used: tuple[str, ...]  # what the conditions on the path read


class Draft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule to add. `steps` is a new exlet, named `exlet`; without it the set must have one."""

    condition: str
    exlet: str
    steps: Flow | None = None
    author: str = ""
    at: Instant = 0
    note: str = ""
    passive: bool = False


class InsertedRule(NamedTuple):
    """The new version of a set, and its new rule."""

    rule_set: RuleSet
    tree: str
    rule: int


class CornerstoneConflict(Conflict):
    """The rule would change the conclusion of another cornerstone, which `type`, `tree` and `rule` name;
    `differences` are the values in which the case at hand differs from it."""

    code = "cornerstone"


def place(rule_set: RuleSet, type: ExceptionType, task: str, context: Context) -> InsertionPoint:
    """Where a rule for this case goes. Rules on trial count as not held, as in a conclusion."""
    tree = tree_for(rule_set, type, task)
    if tree is None:
        return InsertionPoint("" if type in CASE_LEVEL else task or DEFAULT_RULES, None, "true", None, ())
    rules = rule_set.trees[type][tree].rules
    known = KnownValues(context_lookup(context))
    each: int | None = rule_set.trees[type][tree].root
    neighbour, asked = None, dict[str, None]()
    while True:
        assert each is not None
        rule, condition = rules[each], condition_of(rules[each].condition)
        asked.update(dict.fromkeys(condition.names))
        held = not rule.passive and condition.holds(known)[0]
        neighbour = each if held else neighbour
        further = rule.on_true if held else rule.on_false
        if further is None:
            return InsertionPoint(tree, each, "true" if held else "false", neighbour, tuple(asked))
        each = further


def neighbour_cornerstone(rule_set: RuleSet, type: ExceptionType, found: InsertionPoint) -> dict[str, Value] | None:
    """The cornerstone that a new rule must distinguish its case from."""
    if found.neighbour is None:
        return None
    return rule_set.trees[type][found.tree].rules[found.neighbour].cornerstone


@CooperativeFunction
def add_rule(
    rule_set: RuleSet, type: ExceptionType, task: str, context: Context | None, draft: Draft
) -> Pieces[InsertedRule]:
    """The new version with a rule for the case at hand; or, without a case, with one at the end of the first row.

    Raises InvalidRequest for a rule that cannot work, and CornerstoneConflict for one that would take a case from
    another rule. A task without a tree of its own gets a copy of the tree of all tasks, so that it loses nothing."""
    demand_sound(rule_set, type, draft, context)
    grown = insert_rule(rule_set, type, task, context or {}, draft, keep=context is not None)
    if not draft.passive:
        yield from demand_unchanged(rule_set, grown, type, context=context)
    return grown


def insert_rule(
    rule_set: RuleSet, type: ExceptionType, task: str, context: Context, draft: Draft, *, keep: bool = True
) -> InsertedRule:
    """The new version with the rule in its place, whatever it changes."""
    found = place(rule_set, type, task, context)
    name = "" if type in CASE_LEVEL else task or DEFAULT_RULES
    tree = rule_set.trees[type][found.tree] if found.parent is not None else RuleTree({})
    id = max(tree.rules, default=0) + 1
    asked = (*found.names_used, *condition_of(draft.condition).names)
    rule = Rule(
        id=id,
        condition=draft.condition,
        exlet=draft.exlet,
        author=draft.author,
        at=draft.at,
        note=draft.note,
        passive=draft.passive,
        cornerstone=cornerstone(context, asked) if keep else None,
    )
    rules = {**tree.rules, id: rule}
    if found.parent is not None:
        link = {"on_true": id} if found.side == "true" else {"on_false": id}
        rules[found.parent] = msgspec.structs.replace(tree.rules[found.parent], **link)
    root = tree.root if found.parent is not None else id
    exlets = {**rule_set.exlets, draft.exlet: draft.steps} if draft.steps is not None else rule_set.exlets
    return InsertedRule(
        next_version(rule_set, type, name, RuleTree(rules, root), draft.author, draft.at, exlets), name, id
    )


def next_version(
    rule_set: RuleSet,
    type: ExceptionType,
    name: str,
    tree: RuleTree,
    author: str,
    at: Instant,
    exlets: dict[str, Flow] | None = None,
) -> RuleSet:
    return msgspec.structs.replace(
        rule_set,
        version=rule_set.version + 1,
        trees={**rule_set.trees, type: {**rule_set.trees.get(type, {}), name: tree}},
        exlets=rule_set.exlets if exlets is None else exlets,
        author=author,
        at=at,
        note="",
    )


def demand_sound(rule_set: RuleSet, type: ExceptionType, draft: Draft, context: Context | None) -> None:
    """Refuse a rule that cannot be evaluated, concludes a missing exlet, or does not hold for its own case."""
    if (flaw := condition_flaw(draft.condition)) is not None:
        raise InvalidRequest(f"the condition `{draft.condition:.80}` is refused: {flaw.message}", field="condition")
    demand_known_roots(draft.condition)
    known = draft.exlet in rule_set.exlets
    if draft.steps is not None and known and rule_set.exlets[draft.exlet] != draft.steps:
        raise InvalidRequest(f"there is an exlet `{draft.exlet}` already; give the new one another name", field="exlet")
    if draft.exlet and draft.steps is None and not known and type is not ExceptionType.SELECTION:
        raise InvalidRequest(f"there is no exlet `{draft.exlet}` in the rules of `{rule_set.name}`", field="exlet")
    if context is not None:
        held, error = condition_of(draft.condition).holds(KnownValues(context_lookup(context)))
        if not held:
            why = f": {error}" if error else ""
            raise InvalidRequest(f"the condition does not hold for the case at hand{why}", field="condition")


def demand_known_roots(condition: str) -> None:
    """Refuse a condition that reads a root that no context has: it could never hold."""
    for reference in scan(condition).references:
        root = reference.name.partition(".")[0]
        if root not in ROOTS:
            close = get_close_matches(root, ROOTS, 1)
            meant = f" (did you mean `{close[0]}`?)" if close else ""
            raise InvalidRequest(f"a rule knows no `{root:.80}`{meant}", field="condition")


NARROW_ADVICE = "narrow the condition so that it does not hold there"


def demand_unchanged(
    before: RuleSet,
    grown: InsertedRule,
    type: ExceptionType,
    advice: str = NARROW_ADVICE,
    *,
    context: Context | None = None,
) -> Pieces[None]:
    """Refuse a change of the conclusion of a cornerstone of the same tree. The refusal shows in what the case at hand
    (`context`; else the rule's own cornerstone) differs from that one."""
    rules = grown.rule_set.trees[type][grown.tree].rules
    rule = rules[grown.rule]
    at_hand = context if context is not None else rule.cornerstone
    for id, was, now in judged_cornerstones(before, grown, type):
        yield
        if was == now:
            continue
        stone = rules[id].cornerstone
        found = differences(at_hand, stone) if at_hand is not None and stone is not None else []
        raise cornerstone_conflict(type, grown.tree, id, was, now, advice, found, rule.condition)


def cornerstone_conflict(
    type: ExceptionType,
    tree: str,
    id: int,
    was: str,
    now: str,
    advice: str,
    found: Sequence[Difference] = (),
    condition: str = "",
) -> CornerstoneConflict:
    change = f"would conclude {exlet_label(now)} instead of {exlet_label(was)}"
    message = f"the cornerstone of rule {id} in {name_of(type, tree)} {change}; {advice}"
    if lines := differences_text(found, condition):
        message += f". The case at hand differs from it in:\n{lines}"
    told = [msgspec.to_builtins(each) for each in found]
    return CornerstoneConflict(message, type=str(type), tree=tree, rule=id, differences=told)


def judged_cornerstones(before: RuleSet, grown: InsertedRule, type: ExceptionType) -> Iterator[tuple[int, str, str]]:
    """The rules with cornerstones, and what each of these concludes before and after."""
    tree = grown.rule_set.trees[type][grown.tree]
    condition = condition_of(tree.rules[grown.rule].condition)
    source = tree_for(before, type, grown.tree)
    if source is None:
        return
    old, new = CompiledRules(before), CompiledRules(grown.rule_set)
    for id, rule in tree.rules.items():
        if rule.cornerstone is None or rule.passive or id == grown.rule:
            continue
        if not condition.holds(KnownValues(context_lookup(rule.cornerstone)))[0]:
            yield id, "", ""  # it gets what it got
            continue
        was, now = (
            exlet_concluded(old, type, source, rule.cornerstone),
            exlet_concluded(new, type, grown.tree, rule.cornerstone),
        )
        yield id, was, now


def exlet_concluded(rules: CompiledRules, type: ExceptionType, tree: str, context: Context) -> str:
    decided = rules.walk_tree(type, tree, context_lookup(context)).decided
    return decided.rule.exlet if decided is not None else ""


def exlet_label(exlet: str) -> str:
    return f"`{exlet}`" if exlet else "nothing"


def rule_in(rule_set: RuleSet, type: ExceptionType, tree: str, id: int) -> Rule:
    found = rule_set.trees.get(type, {}).get(tree)
    if found is None or id not in found.rules:
        raise NotFound(f"there is no rule {id} in {name_of(type, tree)} of `{rule_set.name}`")
    return found.rules[id]
