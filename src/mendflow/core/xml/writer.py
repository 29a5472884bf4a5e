"""Serializes a tree as self-contained text, and copies trees likewise.

An element keeps its meaning: each namespace that its names use, and each prefix in scope that a text or an attribute
may use as part of a name (`xsi:type="t:Order"`). Whatever is written can be parsed again: what is larger or deeper than
the parser accepts is refused here."""

from collections.abc import Iterator
from typing import Final, NoReturn

from mendflow.core.xml.parser import DEFAULT_BOUNDS, BadXml, XmlBounds
from mendflow.core.xml.prefixes import EMPTY_SCOPE, ElementTag, Scope
from mendflow.core.xml.tree import Child, Comment, Element, Instruction, Text, in_own_document
from mendflow.lazy import lazy_pattern

PREFIXED: Final = lazy_pattern(r"([A-Za-z_][\w.\-]*):[A-Za-z_]")
NEVER: Final = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
IN_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
IN_ATTRIBUTE: Final = IN_TEXT | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


def write(element: Element, bounds: XmlBounds = DEFAULT_BOUNDS) -> str:
    """The element as text, the same for the same tree. Raises BadXml if nobody could read it again."""
    writing = TreeWriter(bounds)
    writing.element(element, EMPTY_SCOPE, inherited_declarations(element), 1)
    return join_pieces(writing.pieces, bounds)


def join_pieces(pieces: list[str], bounds: XmlBounds = DEFAULT_BOUNDS) -> str:
    text = "".join(pieces)
    if len(text) > bounds.bytes or (not text.isascii() and len(text.encode()) > bounds.bytes):
        refuse(f"the XML would have more than {bounds.bytes:,} bytes")
    return text


def copy_element(element: Element) -> Element:
    """The same again, in a document of its own, with all that it means."""
    made = _copy(element)
    made.nsmap = inherited_declarations(element) | made.nsmap
    return in_own_document(made)


def inherited_declarations(element: Element) -> dict[str, str]:
    """Declarations around an element that something in it needs."""
    if not isinstance(element.parent, Element):
        return {}
    in_scope = element.parent.namespaces()
    wanted = set(_prefixes(element))
    return {prefix: uri for prefix, uri in in_scope.items() if prefix in wanted and prefix != "xml"}


def _prefixes(element: Element) -> Iterator[str]:
    yield from _prefixes_of(element)
    for node in element.descendants():
        if isinstance(node, Element):
            yield from _prefixes_of(node)
        elif type(node) is Text and ":" in node.value:
            yield from PREFIXED.findall(node.value)


def _prefixes_of(element: Element) -> Iterator[str]:
    yield element.prefix
    for attribute in element.attributes.values():
        if attribute.prefix:
            yield attribute.prefix
        if ":" in attribute.value:
            yield from PREFIXED.findall(attribute.value)


def _copy(element: Element) -> Element:
    made = Element(element.ns, element.local, element.prefix, dict(element.nsmap))
    for each in element.attributes.values():
        made.set(each.ns, each.local, each.value, each.prefix)
    for child in element.children:
        made.append(copy_node(child))
    return made


def copy_node(node: Child) -> Child:
    """The node again, standing nowhere yet."""
    match node:
        case Element():
            return _copy(node)
        case Instruction():
            return Instruction(node.target, node.value)
        case Comment():
            return Comment(node.value)
        case Text():
            return Text(node.value)


class TreeWriter:
    """Writes one tree. `pieces` are what is written so far, `count` how many elements that are."""

    def __init__(self, bounds: XmlBounds) -> None:
        self.pieces: list[str] = []
        self.bounds = bounds
        self.count = 0

    def element(self, element: Element, outer: Scope, inherited: dict[str, str], depth: int) -> None:
        self.count += 1
        self._check(element, depth)
        tag = ElementTag(element, outer, inherited)
        self.opened(element, tag)
        if len(tag.scope) > self.bounds.attributes:
            refuse(f"more than {self.bounds.attributes} namespaces would be in scope")
        self.pieces.append(f"<{tag.name}")
        for prefix, uri in tag.declared.items():
            self.pieces.append(f' xmlns{":" if prefix else ""}{prefix}="{_attribute(uri)}"')
        for name, attribute in tag.attributes:
            self.pieces.append(f' {name}="{_attribute(attribute.value)}"')
        if not element.children:
            self.pieces.append("/>")
            return
        self.pieces.append(">")
        self.content(element, tag.scope, depth)
        self.pieces.append(f"</{tag.name}>")

    def opened(self, element: Element, tag: ElementTag) -> None:
        """Called with each tag before it is written."""

    def content(self, element: Element, scope: Scope, depth: int) -> None:
        for child in element.children:
            if isinstance(child, Element):
                self.element(child, scope, {}, depth + 1)
            else:
                self.pieces.append(write_comment(child))

    def _check(self, element: Element, depth: int) -> None:
        bounds = self.bounds
        if depth > bounds.depth:
            refuse(f"elements would stand more than {bounds.depth} deep in each other")
        self.check_count()
        if len(element.attributes) > bounds.attributes:
            refuse(f"an element would have more than {bounds.attributes} attributes")
        if any(len(each.value) > bounds.attribute_chars for each in element.attributes.values()):
            refuse(f"an attribute would have more than {bounds.attribute_chars:,} characters")
        if sum(len(child.value) for child in element.children if type(child) is Text) > bounds.text_chars:
            refuse(f"the text of <{element.local:.80}> would have more than {bounds.text_chars:,} characters")

    def check_count(self) -> None:
        if self.count > self.bounds.elements:
            refuse(f"there would be more than {self.bounds.elements:,} elements")


def write_comment(node: Text) -> str:
    if NEVER.search(node.value):
        refuse("a text in it has a character that XML cannot hold")
    match node:
        case Comment():
            return f"<!--{node.value}-->"
        case Instruction():
            return f"<?{node.target} {node.value}?>" if node.value else f"<?{node.target}?>"
        case _:
            return escape_text(node.value)


def escape_text(text: str) -> str:
    """A text as it stands between tags."""
    return text.translate(IN_TEXT)


def _attribute(value: str) -> str:
    if NEVER.search(value):
        refuse("an attribute in it has a character that XML cannot hold")
    return value.translate(IN_ATTRIBUTE)


def refuse(message: str) -> NoReturn:
    raise BadXml(problems=[message])
