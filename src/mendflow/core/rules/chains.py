"""A tree as it is walked: rows of alternatives, each rule with the row of its refinements.

The false side of a rule is what is asked instead, so a run of false sides is a row whose first rule that holds is
taken. Walking is then: take the first of the row, go on with its refinements, until nothing holds any more. The last
that was taken decides, and the walk itself is the explanation."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mendflow.core.expressions.conditions import Known, condition_of
from mendflow.core.model.mending import Tested
from mendflow.core.model.rules import Rule, Tree
from mendflow.core.rules.index import WORTH_IT, Index

LINES_MAX: Final = 50
"""How many rules that did not hold a trail shows; the others are counted."""

TRIALS_MAX: Final = 50


class Node:
    """A rule at its place in its row."""

    __slots__ = ("condition", "id", "passive", "place", "refinements", "rule")

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule = rule
        self.id = rule.id
        self.passive = rule.passive
        self.place = place
        self.condition = condition_of(rule.condition)
        self.refinements: Chain | None = None


class Chain:
    """Alternatives in order."""

    __slots__ = ("index", "nodes", "on_trial")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.on_trial = any(node.passive for node in nodes)
        self.index = Index([node.condition.tests for node in nodes]) if len(nodes) >= WORTH_IT else None

    def candidates(self, known: Known) -> Iterable[Node]:
        """The rules that may hold, in order."""
        if self.index is None:
            return self.nodes
        nodes = self.nodes
        return (nodes[place] for place in self.index.places(known))

    def in_force_before(self, node: Node | None) -> int:
        place = len(self.nodes) if node is None else node.place
        return sum(not each.passive for each in self.nodes[:place]) if self.on_trial else place


class Walked(NamedTuple):
    """Where a walk ended: the rule that decided, the lines of the trail, how many rules that did not hold have none,
    and the rules on trial that held, each with the walk as it was when they were met."""

    decided: Node | None
    trail: list[Tested]
    others: int
    trials: list["Trial"]


class Trial(NamedTuple):
    """A rule on trial that held, and the way to it."""

    node: Node
    trail: list[Tested]
    others: int


def chain_of(tree: Tree) -> Chain | None:
    """The row at the root of a tree, with all below it. No recursion: a tree is as deep as its authors like."""
    if not tree.rules:
        return None
    rows: dict[int, list[Node]] = {}
    pending = [tree.root]
    order: list[int] = []
    while pending:
        start = pending.pop()
        order.append(start)
        rows[start] = []
        each: int | None = start
        while each is not None:
            rule = tree.rules[each]
            rows[start].append(Node(rule, len(rows[start])))
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


def walk(chain: Chain | None, known: Known, begun: Trial | None = None) -> Walked:
    """Walk from a row on; or from a rule on trial as if it had been taken."""
    decided: Node | None = None
    trail: list[Tested] = []
    others = 0
    if begun is not None:
        decided, trail, others = begun.node, [*begun.trail], begun.others
        trail.append(Tested(decided.id, True, known.show(decided.condition.names)))
    trials: list[Trial] = []
    while chain is not None:
        taken: Node | None = None
        lines = 0
        for node in chain.candidates(known):
            condition = node.condition
            held, error = condition.holds(known)
            if node.passive:
                if held and len(trials) < TRIALS_MAX:
                    trials.append(Trial(node, [*trail], others + chain.in_force_before(node) - lines))
            elif held:
                trail.append(Tested(node.id, True, known.show(condition.names)))
                taken = node
                break
            elif lines < LINES_MAX:
                lines += 1
                trail.append(Tested(node.id, False, known.show(condition.names), error))
        if lines == LINES_MAX or chain.index is not None:
            others += chain.in_force_before(taken) - lines
        if taken is None:
            break
        decided, chain = taken, taken.refinements
    return Walked(decided, trail, others, trials)
