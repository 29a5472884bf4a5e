"""XML as a small tree that preserves tags, texts, comments and instructions as written.

For documents that are written again as they were read. Input goes through the bounded parser."""

import re
from collections.abc import Iterator
from typing import Final, Union

import msgspec
from lxml import etree

from mendflow.core.model.errors import BadRules, Problem
from mendflow.core.xml.library import ParsedElement
from mendflow.core.xml.parser import XmlBounds, parse

BOUNDS: Final = XmlBounds(depth=50)
XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class MarkupComment(msgspec.Struct, frozen=True):
    text: str


class MarkupInstruction(msgspec.Struct, frozen=True):
    target: str
    text: str


class MarkupElement(msgspec.Struct):
    """`tag` is as it is written, with its prefix. Texts stand among the children."""

    tag: str
    attributes: dict[str, str] = {}
    children: list[Union["MarkupElement", MarkupComment, MarkupInstruction, str]] = []
    line: int = 0

    def elements(self) -> Iterator["MarkupElement"]:
        return (child for child in self.children if isinstance(child, MarkupElement))

    def child(self, tag: str) -> "MarkupElement | None":
        return next((child for child in self.elements() if child.local == tag), None)

    @property
    def local(self) -> str:
        return self.tag.rpartition(":")[2]

    @property
    def text(self) -> str:
        return "".join(child for child in self.children if isinstance(child, str))


def escape(text: str) -> str:
    """A text between tags. A carriage return would else be read as a line's end."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def quoteattr(value: str) -> str:
    """An attribute's value in quotes. Other white space than blanks would else be read as blanks."""
    white = escape(value).replace("\n", "&#10;").replace("\t", "&#9;")
    quoted = white.replace('"', "&quot;")
    return f'"{quoted}"'


def parse_xml(data: bytes | str, file: str) -> MarkupElement:
    """The root element. Raises BadRules for what is no such XML. Instructions and comments outside the root go into it,
    those before it first, so that they are not lost."""
    parsed = parse(data, file, BOUNDS, BadRules)
    root = _element_from(parsed)
    before = [_comment_or_instruction(each) for each in parsed.itersiblings(preceding=True)]
    root.children[:0] = reversed(before)
    root.children += [_comment_or_instruction(each) for each in parsed.itersiblings()]
    return root


def bad_rules(file: str, message: str) -> BadRules:
    return BadRules(problems=[Problem(file=file, message=message)])


def _element_from(parsed: ParsedElement) -> MarkupElement:
    found = MarkupElement(_tag(parsed), _attributes(parsed), [], parsed.sourceline or 0)
    found.children += [parsed.text] if parsed.text else []
    for child in parsed:
        found.children.append(_element_from(child) if isinstance(child.tag, str) else _comment_or_instruction(child))
        found.children += [child.tail] if child.tail else []
    return found


def _comment_or_instruction(parsed: ParsedElement) -> MarkupComment | MarkupInstruction:
    text = parsed.text or ""
    return (
        MarkupInstruction(parsed.target or "", text)
        if isinstance(parsed, etree._ProcessingInstruction)
        else MarkupComment(text)
    )


def _tag(parsed: ParsedElement) -> str:
    """The name with the prefix that it has in the document."""
    local = etree.QName(parsed).localname
    return f"{parsed.prefix}:{local}" if parsed.prefix else local


def _attributes(parsed: ParsedElement) -> dict[str, str]:
    """As they stand in the document: what it says of namespaces first."""
    outer = parent.nsmap if (parent := parsed.getparent()) is not None else {}
    own = {prefix: uri for prefix, uri in parsed.nsmap.items() if outer.get(prefix) != uri}
    found = {f"xmlns:{prefix}" if prefix else "xmlns": uri for prefix, uri in own.items()}
    prefixes = {uri: prefix for prefix, uri in parsed.nsmap.items() if prefix} | {XML_NAMESPACE: "xml"}
    for name, value in parsed.items():
        part = etree.QName(name)
        found[f"{prefixes[part.namespace]}:{part.localname}" if part.namespace else part.localname] = value
    return found


def strip_blanks(element: MarkupElement) -> MarkupElement:
    """The same without the blanks between elements, and without the blanks around texts."""
    children: list[MarkupElement | MarkupComment | MarkupInstruction | str] = []
    for child in element.children:
        if isinstance(child, MarkupElement):
            children.append(strip_blanks(child))
        elif isinstance(child, str):
            children += [child.strip()] if child.strip() else []
        else:
            children.append(child)
    return MarkupElement(element.tag, element.attributes, children)


def serialize(element: MarkupElement, indent: int | None = None) -> str:
    """The XML of an element: on one line, or with its children indented."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
    if not element.children:
        return f"<{element.tag}{attributes}/>"
    laid_out = indent is not None and not any(isinstance(child, str) for child in element.children)
    inner = indent + 4 if laid_out and indent is not None else None
    pieces = [_serialize_child(child, inner) for child in element.children]
    if not laid_out or indent is None:
        return f"<{element.tag}{attributes}>{''.join(pieces)}</{element.tag}>"
    lines = "".join(f"\n{' ' * (indent + 4)}{each}" for each in pieces)
    return f"<{element.tag}{attributes}>{lines}\n{' ' * indent}</{element.tag}>"


def _serialize_child(child: MarkupElement | MarkupComment | MarkupInstruction | str, indent: int | None) -> str:
    match child:
        case str():
            return escape(child)
        case MarkupComment(text):
            return f"<!--{text}-->"
        case MarkupInstruction(target, text):
            return f"<?{target} {text}?>"
        case MarkupElement():
            return serialize(child, indent)


def element(tag: str, *children: MarkupElement | MarkupInstruction | str, **attributes: str) -> MarkupElement:
    return MarkupElement(tag, attributes, [child for child in children if child != ""])
