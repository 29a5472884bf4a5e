"""From text to a tree. What comes in comes through the door, as everywhere.

Most texts are looked at many times and changed rarely. So small ones are kept as trees that all readers share."""

from functools import lru_cache
from typing import Final

from lxml import etree

from mendflow.core.xml.door import BadXml, Node, parse
from mendflow.core.xml.tree import Child, Comment, Document, Element, Instruction, Text

SHARED_CHARS_MAX: Final = 1 << 14
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
    return _kept(text) if len(text) <= SHARED_CHARS_MAX else _sealed(text)


def _sealed(text: str) -> Element:
    root = read(text)
    assert root.document is not None
    root.document.shared = True
    return root


_kept = lru_cache(maxsize=512)(_sealed)


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
