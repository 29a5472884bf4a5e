"""What a rule, or a whole rule set, would have done with past failures.

Every decision keeps its context. So a rule can be tried on the past before it is in force, at its real place in the
tree."""

from collections.abc import Iterable, Mapping

import msgspec

from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.pieces import CooperativeFunction, Pieces
from mendflow.core.rules.evaluation import CompiledRules, context_lookup
from mendflow.core.rules.insertion import Draft, demand_sound, insert_rule

UNREPAIRED_STATES = frozenset({"failed", "rejected", "ignored", "waiting", "passive"})
"""States of a decision that did not help."""


class TrialResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule would have done. Each list has ids of decisions, in the given order.

    `open` counts those that nothing helped: `caught` and `missed` together. `same` were handled as the rule would have,
    `otherwise` by another exlet. `erred` says where the condition could not be evaluated."""

    asked: int
    caught: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    erred: dict[str, str] = {}

    @property
    def open(self) -> int:
        return len(self.caught) + len(self.missed)

    def sentence(self) -> str:
        sentence = f"would have caught {len(self.caught)} of {self.open}"
        if self.otherwise:
            sentence += f", and {len(self.otherwise)} that were handled otherwise"
        return sentence


@CooperativeFunction
def try_rule(
    rule_set: RuleSet,
    type: ExceptionType,
    task: str,
    draft: Draft,
    decisions: Iterable[Decision],
    context: Mapping[str, Value] | None = None,
) -> Pieces[TrialResult]:
    """Try a rule at the place that it would have, given the case that it is made for (`context`)."""
    demand_sound(rule_set, type, draft, None)
    grown = insert_rule(rule_set, type, task, context or {}, msgspec.structs.replace(draft, passive=False))
    compiled = CompiledRules(grown.rule_set)
    return (yield from try_in_place.pieces(compiled, type, grown.tree, grown.rule, decisions))


@CooperativeFunction
def try_in_place(
    rules: CompiledRules, type: ExceptionType, tree: str, rule: int, decisions: Iterable[Decision]
) -> Pieces[TrialResult]:
    """What an existing rule would have done, wherever it decides."""
    exlet = rules.rule_set.trees[type][tree].rules[rule].exlet
    caught, missed, same, otherwise = list[str](), list[str](), list[str](), list[str]()
    erred: dict[str, str] = {}
    asked = 0
    for decision in decisions:
        if decision.type is not type or rules.tree_for(type, decision.task) != tree:
            continue
        yield
        asked += 1
        walked = rules.walk_tree(type, tree, context_lookup(decision.context))
        hit = walked.decided is not None and walked.decided.rule.id == rule
        mended = bool(decision.exlet) and decision.state not in UNREPAIRED_STATES
        if not mended:
            (caught if hit else missed).append(decision.id)
        elif hit:
            (same if decision.exlet == exlet else otherwise).append(decision.id)
        if error := next((each.error for each in walked.trail if each.rule == rule), ""):
            erred[decision.id] = error
    return TrialResult(
        asked=asked,
        caught=tuple(caught),
        missed=tuple(missed),
        same=tuple(same),
        otherwise=tuple(otherwise),
        erred=erred,
    )
