"""From text to a tree. What comes in comes through the door, as everywhere.

Most texts are looked at many times and changed rarely. So those of the last texts are kept, for all readers."""

from typing import Final

from lxml import etree

from mendflow.core.xml.door import BadXml, Node, parse
from mendflow.core.xml.tree import Child, Comment, Document, Element, Instruction, Text

KEPT_CHARS_MAX: Final = 1 << 19
"""Of all texts together. A tree takes up to seventy times the room of its text."""

SHARED_CHARS_MAX: Final = KEPT_CHARS_MAX // 4
"""A longer text is not kept: it would take the room of many."""


def read(text: str) -> Element:
    """The root element, in a document of its own that may be changed. Raises BadXml."""
    parsed = parse(text, "", refusal=BadXml)
    document = Document()
    for before in reversed(list(parsed.itersiblings(preceding=True))):
        document.append(_aside(before))
    root = _made(parsed, {})
    document.append(root)
    for after in parsed.itersiblings():
        document.append(_aside(after))
    return root


def shared(text: str) -> Element:
    """The same for those who only look: the tree is others' too, and changing it is refused."""
    return _KEPT.tree(text)


class _Kept:
    """The trees of the texts that were asked for last, as many as there is room for."""

    def __init__(self) -> None:
        self._trees: dict[str, Element] = {}
        self._chars = 0

    def tree(self, text: str) -> Element:
        found = self._trees.pop(text, None) or self._read(text)
        if len(text) <= SHARED_CHARS_MAX:
            self._trees[text] = found
            while self._chars > KEPT_CHARS_MAX:
                oldest = next(iter(self._trees))
                self._chars -= len(oldest)
                del self._trees[oldest]
        return found

    def _read(self, text: str) -> Element:
        root = read(text)
        assert root.document is not None
        root.document.shared = True
        self._chars += len(text) if len(text) <= SHARED_CHARS_MAX else 0
        return root


_KEPT: Final = _Kept()


def _made(parsed: Node, outer: dict[str | None, str]) -> Element:
    """The element with all below it. The door bounds the depth, so this may call itself."""
    inner = parsed.nsmap
    found = Element(*_name(parsed.tag), parsed.prefix or "", _declared(inner, outer) if inner != outer else {})
    if parsed.attrib:
        prefixes = {uri: prefix for prefix, uri in reversed(inner.items()) if prefix}
        for name, value in parsed.items():
            ns, local = _name(name)
            found.set(ns, local, value, prefixes.get(ns, "xml") if ns else "")
    children: list[Child] = [Text(parsed.text)] if parsed.text else []
    for child in parsed:
        children.append(_made(child, inner) if isinstance(child.tag, str) else _aside(child))
        if child.tail:
            children.append(Text(child.tail))
    for each in children:
        each.parent = found
    found.children = children
    return found


def _aside(parsed: Node) -> Comment | Instruction:
    text = parsed.text or ""
    return Instruction(parsed.target or "", text) if isinstance(parsed, etree._ProcessingInstruction) else Comment(text)


def _name(tag: object) -> tuple[str, str]:
    ns, _, local = str(tag).rpartition("}")
    return ns[1:], local


def _declared(inner: dict[str | None, str], outer: dict[str | None, str]) -> dict[str, str]:
    """What stands on the element itself. A default namespace that is taken back is declared as empty."""
    own = {prefix or "": uri for prefix, uri in inner.items() if outer.get(prefix) != uri}
    return own | {prefix or "": "" for prefix in outer if prefix not in inner}
