"""One evaluation of an XPath expression: its environment, its work budget, and document order.

Work is counted in visited nodes and texts, never in time, so an expression that needs too much fails at the same place
everywhere, and again when its case is replayed."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.expressions.work_budget import WORK, LongWork
from mendflow.core.model.values import Value
from mendflow.core.xml.tree import Attribute, Element, Node, Text, XmlDocument

WORK_MAX: Final = 1_000_000
"""Nodes looked at, or hundreds of characters read or written, in one evaluation. An expression that was given up in a
case has to be given up in each replay: what was over this bound stays over it, however fast the evaluator gets."""

SUBLANGUAGE: Final = "subLanguageExecutionFault"

FlowValue = Any
"""What a variable, a part or a property is: a value, or a node of a tree that the asker keeps."""


class XPathError(ExpressionError):
    """An expression that gives nothing. `fault` is the standard fault of BPEL that it is."""

    def __init__(self, message: str, offset: int | None = None, fault: str = SUBLANGUAGE) -> None:
        super().__init__(message, offset)
        self.fault = fault


class TooMuchXPathWork(XPathError):
    """It has used up the budget of an evaluation. The same expression on the same data does so everywhere."""

    def __init__(self) -> None:
        super().__init__("it takes too much work; give it less data, or ask for less of it")


class UninitializedVariable(XPathError):
    """A variable, or a part of one, has no value yet, or there is none of that name."""

    def __init__(self, variable: str, part: str = "") -> None:
        whole = f"{variable}.{part}" if part else variable
        super().__init__(f"${whole} has no value here; assign one to it first", fault="uninitializedVariable")
        self.variable, self.part = variable, part


class StyleSheetRunner(Protocol):
    """`params` are names with their values. What comes back is a value: an element, or a text."""

    def __call__(self, sheet: str, source: str, params: tuple[tuple[str, Value], ...]) -> Value: ...


class XPathEnvironment(msgspec.Struct, frozen=True):
    """What an expression can ask for. `lookup` gives a variable by its name, a message as a dict of its parts, or
    raises KeyError. `property` gives the property, by `{namespace}name`, of a variable. Whatever else they raise comes
    out of the evaluation as it is. `spent` is told of the work that an evaluation did, when it is over."""

    lookup: Callable[[str], FlowValue]
    property: Callable[[str, str], FlowValue] | None = None
    transform: StyleSheetRunner | None = None
    spent: Callable[[int], None] | None = None


class NamespaceNode(Text):
    """A node of the namespace axis: `local` is the prefix, the value is the namespace."""

    __slots__ = ("local", "ns")

    def __init__(self, prefix: str, uri: str, parent: Element) -> None:
        super().__init__(uri)
        self.local, self.ns, self.parent = prefix, "", parent


class Evaluation:
    """The state of one evaluation."""

    def __init__(self, world: XPathEnvironment, work_max: int = WORK_MAX) -> None:
        self.world = world
        self.once: dict[int, Any] = {}
        """What terms gave that are the same at every focus, by the identity of the term."""
        self._most = self._left = work_max if WORK.small is None else min(work_max, WORK.small)
        self._room = WORK.room
        self._orders: dict[int, tuple[int, Node, dict[int, int]]] = {}
        self._order_below: dict[int, tuple[int, Node, dict[int, int]]] = {}
        self._namespaces: dict[int, list[NamespaceNode]] = {}

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TooMuchXPathWork
        if self._most - self._left > self._room:
            raise LongWork

    def end(self) -> None:
        """Tell who asked what it took."""
        took = min(self._most - self._left, self._most)
        WORK.spent_elsewhere(took)
        if self.world.spent is not None:
            self.world.spent(took)

    def string(self, node: Node) -> str:
        """The string value of a node."""
        if isinstance(node, Text):
            self.spend(1 + len(node.value) // 100)
            return node.value
        assert isinstance(node, Element | XmlDocument)
        if len(node.children) == 1 and type(only := node.children[0]) is Text:
            self.spend(2 + len(only.value) // 100)
            return only.value
        below = list(node.descendants())
        found = "".join([each.value for each in below if type(each) is Text])
        self.spend(1 + len(below) + len(found) // 100)
        return found

    def namespaces(self, element: Element) -> list[NamespaceNode]:
        """The namespace nodes of an element: the same ones each time that it is asked."""
        found = self._namespaces.get(id(element))
        if found is None:
            self.spend(sum(1 + len(each.nsmap) // 10 for each in _elements_around(element)))
            scope = element.namespaces()
            found = [NamespaceNode(prefix, scope[prefix], element) for prefix in sorted(scope)]
            self._namespaces[id(element)] = found
        return found

    def document_order(self, nodes: Iterable[Node]) -> list[Node]:
        """Each node once, in document order. Documents come in the order in which they were first met."""
        once = list({id(node): node for node in nodes}.values())
        self.spend(len(once))
        if len(once) > 1:
            once.sort(key=self._key)
        return once

    def _key(self, node: Node) -> tuple[int, int, str]:
        if isinstance(node, NamespaceNode):
            assert node.parent is not None
            number, place, _ = self._key(node.parent)
            return number, place, f" {node.local}"
        number, _, places = self._order_around(node)
        return number, places[id(node)], ""

    def _order_around(self, node: Node) -> tuple[int, Node, dict[int, int]]:
        """The order of the tree that a node is in. Siblings ask for it once."""
        parent = node.parent
        if parent is not None and (kept := self._order_below.get(id(parent))) is not None:
            return kept
        top: Node = node
        while top.parent is not None:
            top = top.parent
        if id(top) not in self._orders:
            self._orders[id(top)] = (len(self._orders), top, self._order(top))
        found = self._orders[id(top)]
        if parent is not None:
            self._order_below[id(parent)] = found
        return found

    def _order(self, top: Node) -> dict[int, int]:
        kept = top.order if isinstance(top, XmlDocument) and top.shared else None
        if kept is None:
            kept = _places(top)
            if isinstance(top, XmlDocument) and top.shared:
                top.order = kept
        self.spend(len(kept))
        return kept


def _elements_around(element: Element) -> Iterable[Element]:
    at: Node | None = element
    while isinstance(at, Element):
        yield at
        at = at.parent


def _places(top: Node) -> dict[int, int]:
    """The place of each node by its identity; attributes come after their element and before its children."""
    found = {id(top): 0}
    below: Iterable[Node] = top.descendants() if isinstance(top, XmlDocument | Element) else ()
    if isinstance(top, Element):
        _add_attributes(top, found)
    for node in below:
        found[id(node)] = len(found)
        if isinstance(node, Element):
            _add_attributes(node, found)
    return found


def _add_attributes(element: Element, found: dict[int, int]) -> None:
    attribute: Attribute
    for attribute in element.attributes.values():
        found[id(attribute)] = len(found)


class Focus:
    """Where an expression stands: the context node, if there is one, its position, and how many there are."""

    __slots__ = ("_node", "position", "run", "size")

    def __init__(self, run: Evaluation, node: Node | None, position: int = 1, size: int = 1) -> None:
        self.run, self._node, self.position, self.size = run, node, position, size

    @property
    def node(self) -> Node:
        if self._node is None:
            raise XPathError("there is no context node here; begin the path with a variable: `$name/...`")
        return self._node
