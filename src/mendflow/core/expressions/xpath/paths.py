"""Location paths: steps along axes, with tests and predicates.

A node-set is kept in document order. A step from one node gives its nodes in order, and so do children of nodes of
which none contains another; only results that could be out of order are sorted, because that costs a pass over the
document."""

from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.expressions.xpath.axes import AXES, REVERSE, STAYS_FLAT
from mendflow.core.expressions.xpath.evaluation import Evaluation, Focus, NamespaceNode, XPathError
from mendflow.core.expressions.xpath.predicates import Predicate
from mendflow.core.expressions.xpath.terms import FocusPart, Term
from mendflow.core.expressions.xpath.values import XValue
from mendflow.core.xml.tree import Attribute, Comment, Element, Instruction, Node, Text, XmlDocument, name_of

PRINCIPAL: Final[dict[str, type[Node]]] = {"attribute": Attribute, "namespace": NamespaceNode}
SEARCH_AXES: Final = frozenset({"child", "attribute"})
JOINED_NODES: Final = 10
INDEXED_AXES: Final = 100
"""So many nodes are found by their name with the work of looking at one."""


class NameTest(msgspec.Struct, frozen=True):
    """A name; None stands for any namespace, or any name in it."""

    ns: str | None
    local: str | None

    def holds(self, node: Node, principal: type[Node]) -> bool:
        if not isinstance(node, principal):
            return False
        assert isinstance(node, Element | Attribute | NamespaceNode)
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


class LocationStep(msgspec.Struct, frozen=True):
    axis: str
    test: NameTest | KindTest
    predicates: tuple[Predicate, ...] = ()

    name: tuple[str, str] | None = None
    """The namespace and the local name of the children or the attribute that it asks for, if it asks for one name."""

    def __post_init__(self) -> None:
        test = self.test
        if self.axis in SEARCH_AXES and isinstance(test, NameTest) and test.ns is not None and test.local is not None:
            msgspec.structs.force_setattr(self, "name", (test.ns, test.local))

    def along(self, node: Node, run: Evaluation) -> list[Node]:
        """Where it leads from one node, in document order. The list is nobody's to change."""
        found = self._apply_test(node, run) if self.name is None else self._find_named(node, self.name, run)
        for predicate in self.predicates:
            found = predicate.apply(found, run)
        return found[::-1] if self.axis in REVERSE else found

    def along_all(self, nodes: list[Node], run: Evaluation) -> list[Node]:
        """Where it leads from each of several, one after the other."""
        if self.name is None or self.axis != "child" or self.predicates:
            return [each for node in nodes for each in self.along(node, run)]
        ns, local = self.name
        found: list[Node] = [
            each for node in nodes if isinstance(node, Element | XmlDocument) for each in node.named(ns, local)
        ]
        run.spend(len(nodes) + len(found) // INDEXED_AXES)
        return found

    def _find_named(self, node: Node, name: tuple[str, str], run: Evaluation) -> list[Node]:
        """What has a name is found by it, and the others are not looked at."""
        run.spend(1)
        if self.axis == "attribute":
            mark = node.attributes.get(name_of(*name)) if isinstance(node, Element) else None
            return [mark] if mark is not None else []
        if not isinstance(node, Element | XmlDocument):
            return []
        found: list[Node] = node.named(*name)  # type: ignore[assignment]  # nobody puts another kind of node into it
        run.spend(len(found) // INDEXED_AXES)
        return found

    def _apply_test(self, node: Node, run: Evaluation) -> list[Node]:
        principal = PRINCIPAL.get(self.axis, Element)
        holds = self.test.holds
        every = list(AXES[self.axis](node, run))
        run.spend(len(every) + 1)
        return [each for each in every if holds(each, principal)]


class LocationPath(Term, frozen=True):
    """`start` is where it begins: an expression, the root of the context node's tree, or the context node."""

    start: Term | None
    absolute: bool
    steps: tuple[LocationStep, ...]

    def inner(self) -> Iterable[Term]:
        if self.start is not None:
            yield self.start
        for step in self.steps:
            yield from (predicate.asked for predicate in step.predicates)

    def asked_of_focus(self) -> FocusPart:
        """Only where it begins: predicates of the path have nodes and positions of their own."""
        return self.start.asks if self.start is not None else FocusPart.NODE

    @property
    def attribute(self) -> str:
        if self.start is not None or self.absolute or len(self.steps) != 1:
            return ""
        (step,) = self.steps
        return name_of(*step.name) if step.axis == "attribute" and step.name and not step.predicates else ""

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
        if not isinstance(at, XmlDocument):
            raise XPathError("the context node stands in no document, so there is no `/` here")
        return [at]


def _step(nodes: list[Node], flat: bool, step: LocationStep, run: Evaluation) -> tuple[list[Node], bool]:
    """The next nodes, and whether none of them holds another."""
    if len(nodes) == 1:
        found = step.along(nodes[0], run)
        return found, len(found) <= 1 or step.axis in STAYS_FLAT or step.axis.endswith("-sibling")
    every = step.along_all(nodes, run)
    if flat and step.axis in STAYS_FLAT:
        return every, True
    if step.axis == "self" or (flat and step.axis.startswith("descendant")):
        return every, False
    ordered = run.document_order(every)
    return ordered, len(ordered) <= 1


class FilterTerm(Term, frozen=True):
    """The nodes of an expression for which predicates hold, counted in document order."""

    start: Term
    predicates: tuple[Predicate, ...]

    def inner(self) -> Iterable[Term]:
        return (self.start, *(predicate.asked for predicate in self.predicates))

    def asked_of_focus(self) -> FocusPart:
        return self.start.asks

    def value(self, focus: Focus) -> XValue:
        nodes = nodes_of(self.start.value(focus), "a predicate stands behind")
        for predicate in self.predicates:
            nodes = predicate.apply(nodes, focus.run)
        return nodes


class UnionTerm(Term, frozen=True):
    parts: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.parts

    def value(self, focus: Focus) -> XValue:
        found: list[Node] = []
        for part in self.parts:
            more = nodes_of(part.value(focus), "`|` joins")
            focus.run.spend(len(more) // JOINED_NODES)
            found += more
        return focus.run.document_order(found)


def nodes_of(value: XValue, what: str) -> list[Node]:
    if not isinstance(value, list):
        kind = "a truth value" if isinstance(value, bool) else "a number" if isinstance(value, float) else "a text"
        raise XPathError(f"{what} {kind}, and only nodes can stand there")
    return value
