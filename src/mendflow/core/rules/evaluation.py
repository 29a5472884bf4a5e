"""Evaluates a rule set: the exlet of the last rule that held, with the trail.

A rule set is compiled once per version. Rules on trial never decide; their conclusions are returned separately."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mendflow.core.expressions import Lookup
from mendflow.core.expressions.conditions import KnownValues
from mendflow.core.model.repair import CASE_LEVEL, Conclusion, ExceptionType, RuleError
from mendflow.core.model.rules import ALL_TASKS, RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules.chains import TRIALS_MAX, Chain, RuleNode, WalkResult, chain_of, walk
from mendflow.core.rules.source_names import sources_read

ROOTS: Final = (
    "case",
    "item",
    "job",
    "fault",
    "items",
    "history",
    "site",
    "capacity",
    "now",
    "trigger",
    "pattern",
    "outcome",
    "measures",
    "values",
    "timed_out",
    "event",
    "sources",
    "data",
)
"""The roots of every context, besides registered sources. `data` is the item's data over the case's."""


class RuleVerdict(NamedTuple):
    """The conclusion, if any, those of rules on trial, and the rules whose conditions could not be evaluated."""

    conclusion: Conclusion | None
    trials: list[Conclusion]
    errors: tuple[RuleError, ...] = ()


class CompiledRules:
    """A compiled version of a rule set. Trees are compiled when they are first used."""

    def __init__(self, rule_set: RuleSet) -> None:
        self.rule_set = rule_set
        self._chains: dict[tuple[ExceptionType, str], Chain | None] = {}
        self._sources: dict[ExceptionType, frozenset[str]] = {}

    def sources_read(self, type: ExceptionType) -> frozenset[str]:
        """The sources that its rules for this type, and its exlets, read."""
        found = self._sources.get(type)
        if found is None:
            found = self._sources[type] = sources_read(self.rule_set, (type,))
        return found

    def tree_for(self, type: ExceptionType, task: str = "") -> str | None:
        """The name of the tree to use: the task's own, else that of all tasks; None if there is none."""
        return tree_for(self.rule_set, type, task)

    def judge(self, type: ExceptionType, task: str, lookup: Lookup) -> RuleVerdict:
        tree = self.tree_for(type, task)
        return self.walk_and_judge(type, tree, lookup)[1] if tree is not None else RuleVerdict(None, [])

    def walk_and_judge(self, type: ExceptionType, tree: str, lookup: Lookup) -> tuple[WalkResult, RuleVerdict]:
        """How the tree of this name was walked, and what follows from it."""
        known = KnownValues(lookup)
        walked = walk(self.chain(type, tree), known)
        trials = self._trials(type, tree, walked, known)
        return walked, RuleVerdict(self._conclusion(type, tree, walked), trials, self._errors(type, tree, walked))

    def _errors(self, type: ExceptionType, tree: str, walked: WalkResult) -> tuple[RuleError, ...]:
        name, version = self.rule_set.name, self.rule_set.version
        return tuple(
            RuleError(rules=name, version=version, type=type, task=tree, rule=tested.rule, error=tested.error)
            for tested in walked.trail
            if tested.error
        )

    def walk_tree(self, type: ExceptionType, tree: str, lookup: Lookup) -> WalkResult:
        """Evaluate the tree of this name."""
        return walk(self.chain(type, tree), KnownValues(lookup))

    def chain(self, type: ExceptionType, tree: str) -> Chain | None:
        found = self._chains.get((type, tree))
        if found is None:
            found = self._chains[type, tree] = chain_of(self.rule_set.trees[type][tree])
        return found

    def _conclusion(
        self, type: ExceptionType, tree: str, walked: WalkResult, passive: bool = False
    ) -> Conclusion | None:
        decided: RuleNode | None = walked.decided
        if decided is None or not decided.rule.exlet:
            return None
        return Conclusion(
            rules=self.rule_set.name,
            version=self.rule_set.version,
            type=type,
            task=tree,
            rule=decided.rule.id,
            exlet=decided.rule.exlet,
            trail=tuple(walked.trail),
            others=walked.others,
            passive=passive,
        )

    def _trials(self, type: ExceptionType, tree: str, walked: WalkResult, known: KnownValues) -> list[Conclusion]:
        found: list[Conclusion] = []
        pending = walked.trials
        while pending and len(found) < TRIALS_MAX:
            trial = pending.pop(0)
            further = walk(trial.node.refinements, known, trial)
            pending = [*further.trials, *pending]
            conclusion = self._conclusion(type, tree, further, passive=True)
            if conclusion is not None:
                found.append(conclusion)
        return found


def compile_rules(rule_set: RuleSet) -> CompiledRules:
    return CompiledRules(rule_set)


def tree_for(rule_set: RuleSet, type: ExceptionType, task: str) -> str | None:
    trees = rule_set.trees.get(type)
    if not trees:
        return None
    names: tuple[str, ...] = ("",) if type in CASE_LEVEL else (task, ALL_TASKS)
    if rule_set.renamed and type not in CASE_LEVEL:
        names = (task, *(old for old, new in rule_set.renamed.items() if new == task), ALL_TASKS)
    return next((name for name in names if name in trees and trees[name].rules), None)


def holds_for_version(rule_set: RuleSet, context: Mapping[str, Value]) -> bool:
    """Whether the rules hold for the version of the flow that the case is of."""
    if not rule_set.flow_versions:
        return True
    case = context.get("case")
    return isinstance(case, dict) and str(case.get("version", "")) in rule_set.flow_versions


def context_lookup(context: Mapping[str, Value]) -> Lookup:
    """Provides the roots of a context to conditions. `data` is merged from the case's and the item's if it is not
    given."""

    def lookup(name: str) -> Value:
        try:
            return context[name]
        except KeyError:
            if name == "data":
                return data_of(context)
            raise KeyError(name, list(context)) from None

    return lookup


def data_of(context: Mapping[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for root in ("case", "item"):
        holder = context.get(root)
        data = holder.get("data") if isinstance(holder, dict) else None
        if isinstance(data, dict):
            found.update(data)
    return found
