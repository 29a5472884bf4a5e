"""Compares a decision with the case that a new rule must tell it from: the cornerstone of the rule that decides about
it now, or of a given rule; where there is none, another failure of the same type. Only what whoever asks may see is
ever chosen: what differs tells the values of both."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.rule_views import DifferencesView, DifferenceView
from mendflow.core.model.rules import DEFAULT_RULES, rule_text
from mendflow.core.model.values import Value
from mendflow.core.rules import Difference, differences, locate_rule, place
from mendflow.services.base.visibility import in_sight
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.stores.contract import FieldCondition

SeesCornerstone = Callable[[str, Mapping[str, Value]], Awaitable[bool]]
"""Whether the cornerstone of a rule of a set may be told."""


class ComparedCase(NamedTuple):
    """The context that a decision is compared with, and whose it is: a rule's, or another decision's."""

    context: Mapping[str, Value]
    rules: str = ""
    version: int = 0
    type: ExceptionType | None = None
    task: str = ""
    rule: int | None = None
    other: str = ""


class CaseComparison:
    """For somebody who sees the failures of these projects, and these cornerstones."""

    def __init__(self, rules: RuleStore, decisions: DecisionStore, sight: Sight, sees: SeesCornerstone) -> None:
        self._rules = rules
        self._decisions = decisions
        self._sight = sight
        self._sees = sees

    async def compare(
        self, at_hand: Decision, *, rules: str = "", rule: int | None = None, task: str = ""
    ) -> DifferencesView:
        found = (
            await self.neighbour(at_hand, rules) if rule is None else await self._of_rule(at_hand, rules, rule, task)
        )
        if found is None:
            return DifferencesView(decision=at_hand.id)
        return DifferencesView(
            decision=at_hand.id,
            rules=found.rules,
            version=found.version,
            type=found.type,
            task=found.task,
            rule=found.rule,
            other=found.other,
            differences=difference_views(differences(at_hand.context, found.context)),
        )

    async def neighbour(self, at_hand: Decision, rules: str = "") -> ComparedCase | None:
        """The cornerstone of the rule that decides about it now, else another failure of the same type."""
        for name in (rules,) if rules else (at_hand.flow, DEFAULT_RULES):
            rule_set = self._rules.newest_or_empty(name) if rules else self._rules.newest_for(name, at_hand.project)
            at = place(rule_set, at_hand.type, at_hand.task, at_hand.context)
            rule = rule_set.trees[at_hand.type][at.tree].rules[at.neighbour] if at.neighbour is not None else None
            if rule is not None and rule.cornerstone is not None and await self._sees(name, rule.cornerstone):
                return ComparedCase(rule.cornerstone, name, rule_set.version, at_hand.type, at.tree, rule.id)
        where = [FieldCondition("type", at_hand.type.value), FieldCondition("signature", at_hand.signature, "ne")]
        others = await self._decisions.search([*where, *in_sight(self._sight)], limit=1)
        return ComparedCase(others[0].context, other=others[0].id) if others else None

    async def _of_rule(self, at_hand: Decision, rules: str, rule: int, task: str) -> ComparedCase:
        name = rules or at_hand.flow
        rule_set = self._rules.newest(name) if rules else self._rules.newest_for(name, at_hand.project)
        at = locate_rule(rule_set, rule, at_hand.type, task)
        stone = rule_set.trees[at.type][at.tree].rules[at.rule].cornerstone
        if stone is None:
            raise Conflict(f"{rule_text(name, rule)} has no cornerstone: it was not made for a case")
        if not await self._sees(name, stone):
            raise NotFound(f"the cornerstone of {rule_text(name, rule)} is in a project that you do not see")
        return ComparedCase(stone, name, rule_set.version, at.type, at.tree, at.rule)


def difference_views(found: list[Difference]) -> list[DifferenceView]:
    return [msgspec.convert(msgspec.to_builtins(each), DifferenceView) for each in found]
