"""Edits the text of a document at the positions of its elements; everything else stays byte for byte.

The parser gives the elements, but not their positions in the text. So the text is scanned once more, and since both see
the same elements in the same order, each gets its position."""

import re
from typing import Final
from xml.parsers import expat

import msgspec
from lxml import etree

from mendflow.core.xml import ParsedElement

ATTRIBUTE: Final = re.compile(rb"""([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
ENCODING_DECLARATION: Final = re.compile(rb"""^(\s*<\?xml[^>]*?encoding\s*=\s*)("[^"]*"|'[^']*')""")


class ElementSpan(msgspec.Struct, frozen=True):
    """Where an element stands: its whole, and the end of its first tag."""

    start: int
    tag_end: int
    end: int


class TextEditor:
    """A document on its way into another text. Places are those of the text as it was."""

    def __init__(self, text: str, root: ParsedElement) -> None:
        self._data = text.encode()
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        nodes = list(root.iter(etree.Element))
        spans = _spans(self._data)
        assert len(nodes) == len(spans), "two parsers see different elements"
        self._spans = dict(zip(nodes, spans, strict=True))
        self._edits: list[tuple[int, int, bytes]] = []

    def replace(self, at: ParsedElement, text: str) -> None:
        span = self._spans[at]
        self._put(span.start, span.end, text)

    def put_after(self, at: ParsedElement, text: str) -> None:
        end = self._spans[at].end
        self._put(end, end, text)

    def put_inside(self, at: ParsedElement, text: str) -> None:
        """Before all that stands in an element."""
        end = self._spans[at].tag_end
        self._put(end, end, text)

    def set(self, at: ParsedElement, name: str, value: str) -> None:
        """Give an attribute that is there another value."""
        span = self._spans[at]
        for found in ATTRIBUTE.finditer(self._data, span.start, span.tag_end):
            if found[1].decode() == name:
                self._edits.append((found.start(2), found.end(2), _quoted(value)))

    def text_of(self, at: ParsedElement) -> str:
        """An element as it is written now, with what was changed in it."""
        span = self._spans[at]
        return self._changed(span.start, span.end).decode()

    def indent_of(self, at: ParsedElement) -> str:
        """The blanks before an element, if nothing else stands before it on its line."""
        start = self._spans[at].start
        before = self._data[self._data.rfind(b"\n", 0, start) + 1 : start]
        return before.decode() if not before.strip() else ""

    def result(self) -> bytes:
        return ENCODING_DECLARATION.sub(rb'\1"UTF-8"', self._changed(0, len(self._data)))

    def _put(self, start: int, end: int, text: str) -> None:
        """With the line ends of the document."""
        lines = text.replace("\r\n", "\n").replace("\n", self._line_end)
        self._edits.append((start, end, lines.encode()))

    def _changed(self, start: int, end: int) -> bytes:
        """A piece of the text with its changes. One that lies in another was taken up by it already."""
        pieces, reached = [], start
        for first, last, text in sorted(self._edits, key=lambda edit: (edit[0], -edit[1])):
            if reached <= first and last <= end:
                pieces += [self._data[reached:first], text]
                reached = last
        return b"".join([*pieces, self._data[reached:end]])


def _spans(data: bytes) -> list[ElementSpan]:
    """The places of all elements, in the order in which they begin."""
    starts: list[int] = []
    open_ones: list[int] = []
    ends: dict[int, int] = {}
    parser = expat.ParserCreate("utf-8")

    def begins(_name: str, _attributes: dict[str, str]) -> None:
        open_ones.append(len(starts))
        starts.append(parser.CurrentByteIndex)

    def is_over(_name: str) -> None:
        ends[open_ones.pop()] = parser.CurrentByteIndex

    parser.StartElementHandler, parser.EndElementHandler = begins, is_over
    parser.Parse(data, True)
    return [_span(data, start, ends[number]) for number, start in enumerate(starts)]


def _span(data: bytes, start: int, end: int) -> ElementSpan:
    tag_end = _tag_end(data, start)
    if data[tag_end - 2 : tag_end] == b"/>":
        return ElementSpan(start, tag_end, tag_end)
    return ElementSpan(start, tag_end, data.index(b">", end) + 1)


def _tag_end(data: bytes, start: int) -> int:
    """The end of a first tag; a `>` in the value of an attribute is none."""
    at, quote = start, 0
    while True:
        byte = data[at]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in b"\"'":
            quote = byte
        elif byte == ord(">"):
            return at + 1
        at += 1


def _quoted(value: str) -> bytes:
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return f'"{escaped}"'.encode()
