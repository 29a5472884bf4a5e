"""A mutable XML tree, for expressions and assignments on a flow's variables.

Every node knows its parent, and a root element is in its own document. A tree may be shared by all readers of a text;
to change it, parse it anew or copy it; methods that change a tree assert that it is not shared. An element with many
children builds an index by name on the first lookup; a change of its children drops it."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
INDEX_MIN: Final = 8
"""So many children are looked through as fast as a table is asked, and take less room."""

_NO_PREFIXES: Final[dict[str, str]] = {}
_NO_ATTRIBUTES: Final[dict[str, "Attribute"]] = {}


def name_of(ns: str, local: str) -> str:
    """The name as everybody here writes it: `{namespace}local`, or bare."""
    return f"{{{ns}}}{local}" if ns else local


class Node:
    __slots__ = ("parent",)

    def __init__(self) -> None:
        self.parent: XmlDocument | Element | None = None

    @property
    def document(self) -> "XmlDocument | None":
        """The document that it stands in; None for what was cut out."""
        at: Node | None = self
        while at is not None and not isinstance(at, XmlDocument):
            at = at.parent
        return at

    def string(self) -> str:
        """The string value, as XPath defines it for each kind of node."""
        raise AssertionError(f"{type(self).__name__} is no kind of node that XPath knows")


class Text(Node):
    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        super().__init__()
        self.value = value

    def string(self) -> str:
        return self.value


class Comment(Text):
    __slots__ = ()


class Instruction(Text):
    __slots__ = ("target",)

    def __init__(self, target: str, value: str) -> None:
        super().__init__(value)
        self.target = target


class Attribute(Text):
    """Its parent is the element that bears it, though it is no child of that."""

    __slots__ = ("local", "ns", "prefix")

    def __init__(self, ns: str, local: str, value: str, prefix: str = "") -> None:
        super().__init__(value)
        self.ns, self.local, self.prefix = ns, local, prefix

    @property
    def name(self) -> str:
        return name_of(self.ns, self.local)


class _Parent(Node):
    __slots__ = ("_named", "children")

    def __init__(self) -> None:
        self.parent = None
        self.children: list[Child] = []
        self._named: dict[tuple[str, str], list[Element]] | None = None

    def string(self) -> str:
        return "".join([node.value for node in self.descendants() if type(node) is Text])

    def descendants(self) -> Iterator["Child"]:
        """All below it, in document order. It must not be changed meanwhile."""
        waiting = [iter(self.children)]
        while waiting:
            for child in waiting[-1]:
                yield child
                if isinstance(child, Element):
                    waiting.append(iter(child.children))
                    break
            else:
                waiting.pop()

    def elements(self) -> Iterator["Element"]:
        return (child for child in self.children if isinstance(child, Element))

    def named(self, ns: str, local: str) -> "list[Element]":
        """The children of a name, in their order. The list is nobody's to change."""
        if len(self.children) <= INDEX_MIN:
            return [
                child for child in self.children if type(child) is Element and child.local == local and child.ns == ns
            ]
        if self._named is None:
            named: dict[tuple[str, str], list[Element]] = {}
            for child in self.children:
                if type(child) is Element:
                    named.setdefault((child.ns, child.local), []).append(child)
            self._named = named
        return self._named.get((ns, local), [])

    def append(self, child: "Child") -> None:
        self.insert(len(self.children), child)

    def insert(self, at: int, child: "Child") -> None:
        assert child.parent is None, "a node stands in one place; cut it out or copy it first"
        self.own()
        if isinstance(child, Element):
            child.written = None
        self.children.insert(at, child)
        child.parent = self  # type: ignore[assignment]  # only documents and elements are parents

    def own(self) -> None:
        """Assert that the tree may be changed, and forget what will not be so after a change in this node."""
        self._named = None
        at: Node | None = self
        while isinstance(at, Element):
            at.written = None
            at = at.parent
        assert not isinstance(at, XmlDocument) or not at.shared, "a tree that others read is not changed; copy it"


class XmlDocument(_Parent):
    """The root of a tree. `shared` marks what many read and nobody may change."""

    __slots__ = ("order", "shared")

    def __init__(self) -> None:
        super().__init__()
        self.shared = False
        self.order: dict[int, int] | None = None
        """Where each node stands, by its identity; kept only for what is shared."""

    @property
    def root(self) -> "Element":
        return next(self.elements())


class SerializedElement(NamedTuple):
    """What was written of an element, how many elements that are, and where: how deep, and with which prefixes."""

    text: str
    elements: int
    depth: int
    scope: Mapping[str, str]


class Element(_Parent):
    """`nsmap` are the prefixes that it declares itself, the default one as ""; attributes are by `{namespace}local`.
    Whoever writes it may leave in `written` what came of that; any change in it or below it clears this."""

    __slots__ = ("attributes", "local", "ns", "nsmap", "prefix", "written")

    def __init__(self, ns: str, local: str, prefix: str = "", nsmap: dict[str, str] | None = None) -> None:
        self.parent = None
        self.children = []
        self._named = None
        self.ns, self.local, self.prefix = ns, local, prefix
        self.nsmap = nsmap or _NO_PREFIXES
        self.attributes = _NO_ATTRIBUTES
        self.written: SerializedElement | None = None

    @property
    def name(self) -> str:
        return name_of(self.ns, self.local)

    def get(self, name: str) -> str | None:
        """The value of an attribute, by `{namespace}local`."""
        found = self.attributes.get(name)
        return found.value if found is not None else None

    def set(self, ns: str, local: str, value: str, prefix: str = "") -> Attribute:
        """Give it the attribute; another value for one that it has."""
        self.own()
        name = name_of(ns, local)
        if (found := self.attributes.get(name)) is not None:
            found.value = value
            return found
        made = Attribute(ns, local, value, prefix)
        made.parent = self
        if not self.attributes:
            self.attributes = {}
        self.attributes[name] = made
        return made

    def set_text(self, value: str) -> None:
        """Make a text its only content."""
        self.clear()
        if value:
            self.append(Text(value))

    def clear(self) -> None:
        """Take all content out of it. Attributes stay."""
        self.own()
        for child in self.children:
            child.parent = None
        self.children = []

    def namespaces(self) -> dict[str, str]:
        """All prefixes in scope, the default one as "" where there is one; `xml` is always there."""
        chain: list[dict[str, str]] = []
        at: Node | None = self
        while isinstance(at, Element):
            chain.append(at.nsmap)
            at = at.parent
        found = {"xml": XML_NAMESPACE}
        for declared in reversed(chain):
            found.update(declared)
        return {prefix: uri for prefix, uri in found.items() if uri}


Child = Element | Text
"""What stands among children: elements, texts, comments, instructions; never attributes."""


def position(node: Child) -> int:
    """Where it stands among its parent's children."""
    assert node.parent is not None
    return node.parent.children.index(node)


def cut(node: Child | Attribute) -> None:
    """Take a node out of its tree, with all below it."""
    parent = node.parent
    if parent is None:
        return
    parent.own()
    if isinstance(node, Attribute):
        assert isinstance(parent, Element)
        del parent.attributes[node.name]
    else:
        del parent.children[position(node)]
    node.parent = None


def replace(old: Child, new: Child) -> None:
    """Put `new` where `old` stands."""
    parent = old.parent
    assert parent is not None and new.parent is None
    named = parent._named
    parent.own()
    parent.children[position(old)] = new
    old.parent, new.parent = None, parent
    if isinstance(new, Element):
        new.written = None
    if named is not None and isinstance(old, Element) and isinstance(new, Element) and old.name == new.name:
        same = named[old.ns, old.local]
        same[same.index(old)] = new
        parent._named = named


def in_own_document(element: Element) -> Element:
    """The element in a document of its own."""
    XmlDocument().append(element)
    return element
