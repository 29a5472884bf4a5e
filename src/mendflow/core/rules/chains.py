"""A rule tree in the form in which it is evaluated: rows of alternatives, each rule with the row of its refinements.

A rule's false side is its alternative, so a run of false sides is a row, of which the first rule that holds is taken.
Evaluation takes the first of a row, continues with its refinements, until none holds. The last one taken decides, and
the path is the explanation."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mendflow.core.expressions.conditions import Condition, KnownValues, condition_of
from mendflow.core.model.repair import TestedRule
from mendflow.core.model.rules import Rule, RuleTree
from mendflow.core.rules.index import INDEX_MIN, RuleIndex

LINES_MAX: Final = 50
"""How many rules that did not hold a trail shows; the others are counted."""

TRIALS_MAX: Final = 50


class RuleNode:
    """A rule at its place in its row. Its condition is read when the row is first asked: of a large tree most never
    are."""

    __slots__ = ("_condition", "id", "passive", "place", "refinements", "rule")

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule = rule
        self.id = rule.id
        self.passive = rule.passive
        self.place = place
        self._condition: Condition | None = None
        self.refinements: Chain | None = None

    @property
    def condition(self) -> Condition:
        found = self._condition
        if found is None:
            found = self._condition = condition_of(self.rule.condition)
        return found


class Chain:
    """Alternatives in order."""

    __slots__ = ("_index", "is_indexed", "nodes", "on_trial")

    def __init__(self, nodes: list[RuleNode]) -> None:
        self.nodes = nodes
        self.on_trial = any(node.passive for node in nodes)
        self.is_indexed = len(nodes) >= INDEX_MIN
        self._index: RuleIndex | None = None

    def candidates(self, known: KnownValues) -> Iterable[RuleNode]:
        """The rules that may hold, in order."""
        if not self.is_indexed:
            return self.nodes
        nodes, index = self.nodes, self._index
        if index is None:
            index = self._index = RuleIndex([node.condition.tests for node in nodes])
        return (nodes[place] for place in index.places(known))

    def in_force_before(self, node: RuleNode | None) -> int:
        place = len(self.nodes) if node is None else node.place
        return sum(not each.passive for each in self.nodes[:place]) if self.on_trial else place


class WalkResult(NamedTuple):
    """The result of an evaluation: the deciding rule, the trail, how many rules that did not hold are not in it, and
    the rules on trial that held, each with the trail up to it."""

    decided: RuleNode | None
    trail: list[TestedRule]
    others: int
    trials: list["Trial"]


class Trial(NamedTuple):
    """A rule on trial that held, and the trail up to it."""

    node: RuleNode
    trail: list[TestedRule]
    others: int


def chain_of(tree: RuleTree) -> Chain | None:
    """The row at the root of a tree, with everything below. Iterative, because a tree may be deeper than the recursion
    limit."""
    if not tree.rules:
        return None
    rows: dict[int, list[RuleNode]] = {}
    pending = [tree.root]
    order: list[int] = []
    while pending:
        start = pending.pop()
        order.append(start)
        rows[start] = []
        each: int | None = start
        while each is not None:
            rule = tree.rules[each]
            rows[start].append(RuleNode(rule, len(rows[start])))
            if rule.on_true is not None:
                pending.append(rule.on_true)
            each = rule.on_false
    chains: dict[int, Chain] = {}
    for start in reversed(order):
        for node in rows[start]:
            if node.rule.on_true is not None:
                node.refinements = chains[node.rule.on_true]
        chains[start] = Chain(rows[start])
    return chains[tree.root]


def walk(chain: Chain | None, known: KnownValues, begun: Trial | None = None) -> WalkResult:
    """Evaluate from a row on; or from a rule on trial as if it had been taken."""
    decided: RuleNode | None = None
    trail: list[TestedRule] = []
    others = 0
    if begun is not None:
        decided, trail, others = begun.node, [*begun.trail], begun.others
        trail.append(TestedRule(decided.id, True, known.show(decided.condition.names)))
    trials: list[Trial] = []
    while chain is not None:
        taken: RuleNode | None = None
        lines = 0
        for node in chain.candidates(known):
            condition = node.condition
            held, error = condition.holds(known)
            if node.passive:
                if held and len(trials) < TRIALS_MAX:
                    trials.append(Trial(node, [*trail], others + chain.in_force_before(node) - lines))
            elif held:
                trail.append(TestedRule(node.id, True, known.show(condition.names)))
                taken = node
                break
            elif lines < LINES_MAX:
                lines += 1
                trail.append(TestedRule(node.id, False, known.show(condition.names), error))
        if lines == LINES_MAX or chain.is_indexed:
            others += chain.in_force_before(taken) - lines
        if taken is None:
            break
        decided, chain = taken, taken.refinements
    return WalkResult(decided, trail, others, trials)
