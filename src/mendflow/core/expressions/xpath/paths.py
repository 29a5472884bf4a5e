"""Location paths: steps along axes, with tests and predicates.

A node-set is kept in document order. A step from one node gives its nodes in order by itself, and so do children of
nodes of which none holds another; only what could come out of order is sorted, since that costs the whole document."""

from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.expressions.xpath.axes import AXES, REVERSE, STAYS_FLAT
from mendflow.core.expressions.xpath.run import Focus, Namespace, Run, XPathError
from mendflow.core.expressions.xpath.terms import Number, Term
from mendflow.core.expressions.xpath.values import XValue, to_boolean
from mendflow.core.xml.tree import Attribute, Comment, Document, Element, Instruction, Node, Text

PRINCIPAL: Final[dict[str, type[Node]]] = {"attribute": Attribute, "namespace": Namespace}


class NameTest(msgspec.Struct, frozen=True):
    """A name; None stands for any namespace, or any name in it."""

    ns: str | None
    local: str | None

    def holds(self, node: Node, principal: type[Node]) -> bool:
        if not isinstance(node, principal):
            return False
        assert isinstance(node, Element | Attribute | Namespace)
        return (self.local is None or node.local == self.local) and (self.ns is None or node.ns == self.ns)


class KindTest(msgspec.Struct, frozen=True):
    kind: str
    target: str | None = None

    def holds(self, node: Node, _: type[Node]) -> bool:
        if self.kind == "node":
            return True
        if self.kind == "text":
            return type(node) is Text
        if self.kind == "comment":
            return isinstance(node, Comment)
        return isinstance(node, Instruction) and self.target in (None, node.target)


class Step(msgspec.Struct, frozen=True):
    axis: str
    test: NameTest | KindTest
    predicates: tuple[Term, ...] = ()

    def along(self, node: Node, run: Run) -> list[Node]:
        """Where it leads from one node, in document order."""
        principal = PRINCIPAL.get(self.axis, Element)
        holds = self.test.holds
        every = list(AXES[self.axis](node, run))
        run.spend(len(every) + 1)
        found = [each for each in every if holds(each, principal)]
        for predicate in self.predicates:
            found = filtered(found, predicate, run)
        return found[::-1] if self.axis in REVERSE else found


def filtered(nodes: list[Node], predicate: Term, run: Run) -> list[Node]:
    """Those that a predicate holds for. A number asks for the position."""
    run.spend(len(nodes))
    size = len(nodes)
    if isinstance(predicate, Number):
        at = predicate.number
        return [nodes[int(at) - 1]] if at == at and 1 <= at <= size and at == int(at) else []
    kept = []
    for place, node in enumerate(nodes, 1):
        value = predicate.value(Focus(run, node, place, size))
        if value == place if isinstance(value, float) else to_boolean(value):
            kept.append(node)
    return kept


class Path(Term, frozen=True):
    """`start` is where it begins: an expression, the root of the context node's tree, or the context node."""

    start: Term | None
    absolute: bool
    steps: tuple[Step, ...]

    def inner(self) -> Iterable[Term]:
        if self.start is not None:
            yield self.start
        for step in self.steps:
            yield from step.predicates

    @property
    def positional(self) -> bool:
        """Predicates of the path have positions of their own."""
        return self.start is not None and self.start.positional

    def value(self, focus: Focus) -> XValue:
        nodes = self._begin(focus)
        flat = len(nodes) <= 1
        for step in self.steps:
            nodes, flat = _step(nodes, flat, step, focus.run)
        return nodes

    def _begin(self, focus: Focus) -> list[Node]:
        if self.start is not None:
            return nodes_of(self.start.value(focus), "a path begins with")
        if not self.absolute:
            return [focus.node]
        at = focus.node
        while at.parent is not None:
            at = at.parent
        if not isinstance(at, Document):
            raise XPathError("the context node stands in no document, so there is no `/` here")
        return [at]


def _step(nodes: list[Node], flat: bool, step: Step, run: Run) -> tuple[list[Node], bool]:
    """The next nodes, and whether none of them holds another."""
    if len(nodes) == 1:
        found = step.along(nodes[0], run)
        return found, len(found) <= 1 or step.axis in STAYS_FLAT or step.axis.endswith("-sibling")
    every = [each for node in nodes for each in step.along(node, run)]
    if flat and step.axis in STAYS_FLAT:
        return every, True
    if step.axis == "self" or (flat and step.axis.startswith("descendant")):
        return every, False
    ordered = run.ordered(every)
    return ordered, len(ordered) <= 1


class Filtered(Term, frozen=True):
    """The nodes of an expression for which predicates hold, counted in document order."""

    start: Term
    predicates: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return (self.start, *self.predicates)

    @property
    def positional(self) -> bool:
        return self.start.positional

    def value(self, focus: Focus) -> XValue:
        nodes = nodes_of(self.start.value(focus), "a predicate stands behind")
        for predicate in self.predicates:
            nodes = filtered(nodes, predicate, focus.run)
        return nodes


class Union(Term, frozen=True):
    parts: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.parts

    def value(self, focus: Focus) -> XValue:
        found = [node for part in self.parts for node in nodes_of(part.value(focus), "`|` joins")]
        return focus.run.ordered(found)


def nodes_of(value: XValue, what: str) -> list[Node]:
    if not isinstance(value, list):
        kind = "a truth value" if isinstance(value, bool) else "a number" if isinstance(value, float) else "a text"
        raise XPathError(f"{what} {kind}, and only nodes can stand there")
    return value
