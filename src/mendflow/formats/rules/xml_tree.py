"""XML as a small tree that knows its lines, made without trusting the text.

No document type, so no entities and nothing to fetch; the size, the depth and the number of elements are bounded.
Comments and processing instructions stay where they are."""

import re
from collections.abc import Iterator
from typing import Final, Union
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import msgspec

from mendflow.core.model.problems import BadRules, Problem

BYTES_MAX: Final = 10 * 1024 * 1024
DEPTH_MAX: Final = 50
ELEMENTS_MAX: Final = 400_000
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Comment(msgspec.Struct, frozen=True):
    text: str


class Instruction(msgspec.Struct, frozen=True):
    target: str
    text: str


class Element(msgspec.Struct):
    """`tag` is as it is written, with its prefix. Texts stand among the children."""

    tag: str
    attributes: dict[str, str] = {}
    children: list[Union["Element", Comment, Instruction, str]] = []
    line: int = 0
    column: int = 0

    def elements(self) -> Iterator["Element"]:
        return (child for child in self.children if isinstance(child, Element))

    def child(self, tag: str) -> "Element | None":
        return next((child for child in self.elements() if child.local == tag), None)

    @property
    def local(self) -> str:
        return self.tag.rpartition(":")[2]

    @property
    def text(self) -> str:
        return "".join(child for child in self.children if isinstance(child, str))


def parse_xml(data: bytes | str, file: str) -> Element:
    """The root element. Raises BadRules for what is no such XML."""
    raw = data.encode() if isinstance(data, str) else data
    if len(raw) > BYTES_MAX:
        raise refused(
            file, 0, 0, f"the file is {len(raw) / 1e6:.0f} MB; at most {BYTES_MAX // (1024 * 1024)} are taken"
        )
    builder = Builder(file, "utf-8" if isinstance(data, str) else None)
    try:
        builder.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise refused(
            file, error.lineno, error.offset + 1, f"this is not XML: {expat.ErrorString(error.code)}"
        ) from None
    except (ValueError, LookupError, UnicodeError) as error:
        raise refused(file, 1, 1, f"this is not XML: {error}") from None
    assert builder.root is not None
    return builder.root


def refused(file: str, line: int, column: int, message: str) -> BadRules:
    return BadRules(problems=[Problem(file=file, line=line, column=column, message=message)])


class Builder:
    """Takes the parser's events and makes the tree. Instructions and comments outside the root go into it, at its end,
    so that they are not lost."""

    def __init__(self, file: str, encoding: str | None) -> None:
        self.file = file
        self.root: Element | None = None
        self._open: list[Element] = []
        self._before: list[Comment | Instruction] = []
        self._count = 0
        self.parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        parser.CommentHandler = lambda text: self.aside(Comment(text))
        parser.ProcessingInstructionHandler = lambda target, text: self.aside(Instruction(target, text))
        parser.StartDoctypeDeclHandler = self.doctype

    def refuse(self, message: str) -> BadRules:
        return refused(self.file, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1, message)

    def doctype(self, *_: object) -> None:
        raise self.refuse("a document type is not taken: rule files need no entities")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > ELEMENTS_MAX:
            raise self.refuse(f"the file has more than {ELEMENTS_MAX:,} elements")
        if len(self._open) >= DEPTH_MAX:
            raise self.refuse(f"elements stand more than {DEPTH_MAX} deep in each other")
        element = Element(tag, attributes, [], self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
            element.children.extend(self._before)
        self._open.append(element)

    def end(self, _: str) -> None:
        self._open.pop()

    def text(self, text: str) -> None:
        self._open[-1].children.append(text)

    def aside(self, what: Comment | Instruction) -> None:
        if self._open:
            self._open[-1].children.append(what)
        elif self.root is not None:
            self.root.children.append(what)
        else:
            self._before.append(what)


def tidy(element: Element) -> Element:
    """The same without the blanks between elements, and without the blanks around texts."""
    children: list[Element | Comment | Instruction | str] = []
    for child in element.children:
        if isinstance(child, Element):
            children.append(tidy(child))
        elif isinstance(child, str):
            children += [child.strip()] if child.strip() else []
        else:
            children.append(child)
    return Element(element.tag, element.attributes, children)


def serialized(element: Element, indent: int | None = None) -> str:
    """The XML of an element: on one line, or with its children indented."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
    if not element.children:
        return f"<{element.tag}{attributes}/>"
    laid_out = indent is not None and not any(isinstance(child, str) for child in element.children)
    inner = indent + 4 if laid_out and indent is not None else None
    pieces = [piece(child, inner) for child in element.children]
    if not laid_out or indent is None:
        return f"<{element.tag}{attributes}>{''.join(pieces)}</{element.tag}>"
    lines = "".join(f"\n{' ' * (indent + 4)}{each}" for each in pieces)
    return f"<{element.tag}{attributes}>{lines}\n{' ' * indent}</{element.tag}>"


def piece(child: Element | Comment | Instruction | str, indent: int | None) -> str:
    match child:
        case str():
            return escape(child, {"\r": "&#13;"})
        case Comment(text):
            return f"<!--{text}-->"
        case Instruction(target, text):
            return f"<?{target} {text}?>"
        case Element():
            return serialized(child, indent)


def element(tag: str, *children: Element | Instruction | str, **attributes: str) -> Element:
    return Element(tag, attributes, [child for child in children if child != ""])
