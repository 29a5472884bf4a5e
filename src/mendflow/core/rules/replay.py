"""Replays a changed rule set over past decisions, before it is stored: which of them it would conclude otherwise.

What the stored set concludes now is compared with what the changed one would, not with what was done then: rules may
have changed in between. Where a flow's own rules conclude nothing, the default rules do, before and after."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mendflow.core.model.repair import Conclusion, Decision, ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules.evaluation import CompiledRules, context_lookup, holds_for_version, tree_for
from mendflow.core.rules.insertion import exlet_concluded


class ReplayedDecision(NamedTuple):
    """A past decision, what is concluded about it now, and what would be."""

    decision: Decision
    before: Conclusion | None
    after: Conclusion | None
    error: str

    @property
    def is_same(self) -> bool:
        return exlet_of(self.before) == exlet_of(self.after)


class ReplayedCornerstone(NamedTuple):
    type: ExceptionType
    task: str
    rule: int
    before: str
    after: str

    @property
    def is_same(self) -> bool:
        return self.before == self.after


def replay(
    before: RuleSet, after: RuleSet, defaults: RuleSet, decisions: Iterable[Decision]
) -> Iterator[ReplayedDecision]:
    """Each decision with both conclusions. Of default rules that are changed, only what they decide differs."""
    is_default = after.name == DEFAULT_RULES
    old = [CompiledRules(each) for each in ([before] if is_default else [before, defaults])]
    new = [CompiledRules(after), *([] if is_default else old[1:])]
    for decision in decisions:
        was, _ = conclude(old, decision)
        now, error = conclude(new, decision)
        yield ReplayedDecision(decision, was, now, error)


def conclude(sets: Iterable[CompiledRules], decision: Decision) -> tuple[Conclusion | None, str]:
    """What the first of the sets concludes that concludes anything, and the first error on the way."""
    lookup, error = context_lookup(decision.context), ""
    for rules in sets:
        tree = rules.tree_for(decision.type, decision.task)
        if tree is None or not holds_for_version(rules.rule_set, decision.context):
            continue
        walked, verdict = rules.walk_and_judge(decision.type, tree, lookup)
        error = error or next((each.error for each in walked.trail if each.error), "")
        if verdict.conclusion is not None:
            return verdict.conclusion, error
    return None, error


def exlet_of(said: Conclusion | None) -> str:
    return said.exlet if said is not None else ""


def replay_cornerstones(before: RuleSet, after: RuleSet) -> Iterator[ReplayedCornerstone]:
    """The rules of the stored set that have a cornerstone, with what is concluded about it and what would be."""
    old, new = CompiledRules(before), CompiledRules(after)
    for type, trees in before.trees.items():
        for task, tree in trees.items():
            for id, rule in tree.rules.items():
                if rule.cornerstone is None or rule.passive:
                    continue
                was = exlet_concluded(old, type, task, rule.cornerstone)
                there = tree_for(after, type, task)
                now = exlet_concluded(new, type, there, rule.cornerstone) if there is not None else ""
                yield ReplayedCornerstone(type, task, id, was, now)
