"""Changes to a rule that stands: another exlet, on trial or in force, out of use.

A rule is never taken out of its tree, because others were placed with regard to it. One that is out of use has the
condition `false`; earlier versions say what it was."""

from typing import Any

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.mending import ExceptionType
from mendflow.core.model.problems import Invalid
from mendflow.core.model.rules import Rule, RuleSet, Tree
from mendflow.core.rules.growth import Grown, demand_unchanged, next_version, rule_in


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
    """The same rule with another conclusion; what its own cornerstone concludes changes with it."""
    rule_in(rule_set, type, tree, rule)
    if exlet and steps is None and exlet not in rule_set.exlets and type is not ExceptionType.SELECTION:
        raise Invalid(f"there is no exlet `{exlet}` in the rules of `{rule_set.name}`", field="exlet")
    if steps is not None and rule_set.exlets.get(exlet, steps) != steps:
        raise Invalid(f"there is an exlet `{exlet}` already; give the new one another name", field="exlet")
    after = with_rule(rule_set, type, tree, rule, {"exlet": exlet}, author, at)
    return after if steps is None else msgspec.structs.replace(after, exlets={**after.exlets, exlet: steps})


def set_passive(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, passive: bool, *, author: str = "", at: Instant = 0
) -> RuleSet:
    """Put a rule on trial, or in force. In force it may not change what other cornerstones conclude."""
    rule_in(rule_set, type, tree, rule)
    after = with_rule(rule_set, type, tree, rule, {"passive": passive}, author, at)
    if not passive:
        demand_unchanged(rule_set, Grown(after, tree, rule), type)
    return after


def retire(
    rule_set: RuleSet, type: ExceptionType, tree: str, rule: int, *, author: str = "", at: Instant = 0
) -> RuleSet:
    """The rule holds no more, and its refinements are not asked."""
    rule_in(rule_set, type, tree, rule)
    return with_rule(rule_set, type, tree, rule, {"condition": "false", "cornerstone": None}, author, at)


def with_exlet(rule_set: RuleSet, name: str, steps: Flow, *, author: str = "", at: Instant = 0) -> RuleSet:
    """The next version with an exlet put in, or in place of another of that name."""
    exlets = {**rule_set.exlets, name: steps}
    return msgspec.structs.replace(rule_set, version=rule_set.version + 1, exlets=exlets, author=author, at=at, note="")


def with_rule(
    rule_set: RuleSet, type: ExceptionType, tree: str, id: int, change: dict[str, Any], author: str, at: Instant
) -> RuleSet:
    before = rule_set.trees[type][tree]
    rule: Rule = msgspec.structs.replace(before.rules[id], **change)
    return next_version(rule_set, type, tree, Tree({**before.rules, id: rule}, before.root), author, at)
