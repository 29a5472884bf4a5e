"""The thirteen axes, each as the nodes that it leads to from a node, nearest first."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from mendflow.core.expressions.xpath.evaluation import Evaluation, NamespaceNode
from mendflow.core.xml.tree import Attribute, Child, Element, Node, XmlDocument, position

Axis = Callable[[Node, Evaluation], Iterable[Node]]


def _self(node: Node, _: Evaluation) -> Iterable[Node]:
    return (node,)


def _child(node: Node, _: Evaluation) -> Iterable[Node]:
    return node.children if isinstance(node, Element | XmlDocument) else ()


def _attribute(node: Node, _: Evaluation) -> Iterable[Node]:
    return node.attributes.values() if isinstance(node, Element) else ()


def _namespace(node: Node, run: Evaluation) -> Iterable[Node]:
    return run.namespaces(node) if isinstance(node, Element) else ()


def _parent(node: Node, _: Evaluation) -> Iterable[Node]:
    return (node.parent,) if node.parent is not None else ()


def _ancestor(node: Node, _: Evaluation) -> Iterator[Node]:
    at = node.parent
    while at is not None:
        yield at
        at = at.parent


def _ancestor_or_self(node: Node, run: Evaluation) -> Iterator[Node]:
    yield node
    yield from _ancestor(node, run)


def _descendant(node: Node, _: Evaluation) -> Iterable[Node]:
    return node.descendants() if isinstance(node, Element | XmlDocument) else ()


def _descendant_or_self(node: Node, run: Evaluation) -> Iterator[Node]:
    yield node
    yield from _descendant(node, run)


def _siblings(node: Node, run: Evaluation) -> tuple[list[Node], int]:
    """The children that it is one of, and its place among them; finding that is work."""
    if node.parent is None or isinstance(node, Attribute | NamespaceNode):
        return [], 0
    at = position(cast(Child, node))  # what has a parent and is no attribute is one
    run.spend(at)
    return list(node.parent.children), at


def _following_sibling(node: Node, run: Evaluation) -> Iterable[Node]:
    siblings, at = _siblings(node, run)
    return siblings[at + 1 :]


def _preceding_sibling(node: Node, run: Evaluation) -> Iterable[Node]:
    siblings, at = _siblings(node, run)
    return reversed(siblings[:at])


def _following(node: Node, run: Evaluation) -> Iterator[Node]:
    """What begins after the end of the node. After an attribute comes all that its element holds."""
    at: Node | None = node
    if isinstance(node, Attribute | NamespaceNode):
        at = node.parent
        assert at is not None
        yield from _descendant(at, run)
    while at is not None:
        for sibling in _following_sibling(at, run):
            yield from _descendant_or_self(sibling, run)
        at = at.parent


def _preceding(node: Node, run: Evaluation) -> Iterator[Node]:
    """What ended before the node begins: no ancestors, and the nearest first."""
    at: Node | None = node.parent if isinstance(node, Attribute | NamespaceNode) else node
    while at is not None:
        for sibling in _preceding_sibling(at, run):
            yield from reversed(list(_descendant_or_self(sibling, run)))
        at = at.parent


AXES: Final[dict[str, Axis]] = {
    "ancestor": _ancestor,
    "ancestor-or-self": _ancestor_or_self,
    "attribute": _attribute,
    "child": _child,
    "descendant": _descendant,
    "descendant-or-self": _descendant_or_self,
    "following": _following,
    "following-sibling": _following_sibling,
    "namespace": _namespace,
    "parent": _parent,
    "preceding": _preceding,
    "preceding-sibling": _preceding_sibling,
    "self": _self,
}
REVERSE: Final = frozenset({"ancestor", "ancestor-or-self", "preceding", "preceding-sibling"})
STAYS_FLAT: Final = frozenset({"child", "attribute", "self", "namespace"})
"""From nodes in document order of which none holds another these lead to such nodes again."""
