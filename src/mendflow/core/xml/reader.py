"""From text to a tree, through the bounded parser.

Most texts are read often and changed rarely. So the trees of the last texts are cached, for all readers."""

from typing import Final

from mendflow.core.xml.library import ParsedElement, etree
from mendflow.core.xml.parser import BadXml, parse
from mendflow.core.xml.tree import Child, Comment, Element, Instruction, Text, XmlDocument

CACHE_NODES_MAX: Final = 400_000
"""For all trees that are kept: in nodes, which take some two hundred bytes each, and hundreds of characters of text."""

CHARS_A_NODE: Final = 100

Sized = tuple[Element, int]
"""A tree, and how much room it takes."""


def read(text: str) -> Element:
    """The root element, in a document of its own that may be changed. Raises BadXml."""
    return _read(text)[0]


def read_shared(text: str) -> Element:
    """The same for those who only look: the tree is others' too, and changing it is refused."""
    return TREE_CACHE.tree(text)


def _read(text: str) -> Sized:
    parsed = parse(text, "", refusal=BadXml)
    making = _TreeBuilder(text, parsed)
    document = XmlDocument()
    for before in reversed(list(parsed.itersiblings(preceding=True))):
        document.append(_aside(before))
    root = making.element(parsed, {})
    document.append(root)
    for after in parsed.itersiblings():
        document.append(_aside(after))
    return root, making.nodes + len(text) // CHARS_A_NODE


class TreeCache:
    """The trees of the texts that were asked for last, as many as there is room for, and always the very last: a loop
    over one large document reads it once."""

    def __init__(self, room: int = CACHE_NODES_MAX) -> None:
        self._trees: dict[str, Sized] = {}
        self._left = room

    def tree(self, text: str) -> Element:
        found = self._trees.pop(text, None)
        if found is None:
            found = _read(text)
            assert found[0].document is not None
            found[0].document.shared = True
            self._left -= found[1]
        self._add(text, found)
        return found[0]

    def take(self, text: str) -> Element:
        """The tree for one who changes it: nobody else is given it any more, and nobody may be looking at it."""
        found = self._trees.pop(text, None)
        if found is None:
            return read(text)
        root, room = found
        self._left += room
        assert root.document is not None
        root.document.shared, root.document.order = False, None
        return root

    def keep(self, text: str, root: Element, nodes: int) -> None:
        """Have a tree that reading the text would give."""
        assert root.document is not None
        root.document.shared = True
        if (before := self._trees.pop(text, None)) is not None:
            self._left += before[1]
        room = nodes + len(text) // CHARS_A_NODE
        self._left -= room
        self._add(text, (root, room))

    def _add(self, text: str, tree: Sized) -> None:
        self._trees[text] = tree
        while self._left < 0 and len(self._trees) > 1:
            self._left += self._trees.pop(next(iter(self._trees)))[1]


TREE_CACHE: Final = TreeCache()


class _TreeBuilder:
    """Makes one tree. Names that are the same are one text, so that comparing them is looking whether they are that."""

    def __init__(self, text: str, root: ParsedElement) -> None:
        self.nodes = 0
        self._names: dict[str, tuple[str, str]] = {}
        self._inner: dict[str | None, str] | None = root.nsmap if text.count("xmlns") == len(root.nsmap) else None
        """What is in scope everywhere, where all that is declared stands at the root. Asking each element is dear."""

    def element(self, parsed: ParsedElement, outer: dict[str | None, str]) -> Element:
        """The element with all below it. The door bounds the depth, so this may call itself."""
        inner = self._inner if self._inner is not None else parsed.nsmap
        declared = _declared(inner, outer) if inner is not outer and inner != outer else None
        ns, local = self._name(str(parsed.tag))
        found = Element(ns, local, parsed.prefix or "", declared)
        if parsed.attrib:
            self._add_attributes(found, parsed, inner)
        children: list[Child] = [Text(parsed.text)] if parsed.text else []
        for child in parsed:
            children.append(self.element(child, inner) if isinstance(child.tag, str) else _aside(child))
            if child.tail:
                children.append(Text(child.tail))
        for each in children:
            each.parent = found
        found.children = children
        self.nodes += 1 + len(children) + len(found.attributes)
        return found

    def _add_attributes(self, found: Element, parsed: ParsedElement, inner: dict[str | None, str]) -> None:
        prefixes = {uri: prefix for prefix, uri in reversed(inner.items()) if prefix}
        for name, value in parsed.items():
            ns, local = self._name(name)
            found.set(ns, local, value, prefixes.get(ns, "xml") if ns else "")

    def _name(self, tag: str) -> tuple[str, str]:
        found = self._names.get(tag)
        if found is None:
            ns, _, local = tag.rpartition("}")
            found = self._names[tag] = (ns[1:], local)
        return found


def _aside(parsed: ParsedElement) -> Comment | Instruction:
    text = parsed.text or ""
    return Instruction(parsed.target or "", text) if isinstance(parsed, etree._ProcessingInstruction) else Comment(text)


def _declared(inner: dict[str | None, str], outer: dict[str | None, str]) -> dict[str, str]:
    """What stands on the element itself. A default namespace that is taken back is declared as empty."""
    own = {prefix or "": uri for prefix, uri in inner.items() if outer.get(prefix) != uri}
    return own | {prefix or "": "" for prefix in outer if prefix not in inner}
