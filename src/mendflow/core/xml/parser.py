"""The one XML parser: lxml with bounds and without external access.

A document type is refused before the parser sees it. So there are no entities to expand, nothing to fetch and nothing
to read from disk; the parser's own settings repeat that. The text is fed in pieces, and each piece is checked: whatever
is too deep, too wide or too large ends the parsing before it takes memory. A tag is not read in pieces, so that one of
very many attributes is refused before, too."""

from collections import Counter
from typing import Final, NoReturn

import msgspec

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.xml.encodings import Unreadable, decode
from mendflow.core.xml.library import ParsedElement, etree
from mendflow.core.xml.parser_messages import NOTHING, parser_message
from mendflow.core.xml.prolog import doctype_at
from mendflow.core.xml.start_tags import overfull_tag_at

PIECE_CHARS: Final = 1 << 14
MIB: Final = 1 << 20
EVENTS: Final = ("start", "end", "comment", "pi", "start-ns", "end-ns")


class XmlBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How large a document may be: in all, in depth, in elements, comments and instructions together, and in each
    element. Some documents may have no `instructions` at all."""

    bytes: int = 10 * MIB
    depth: int = 100
    elements: int = 400_000
    attributes: int = 256
    attribute_chars: int = 1 << 16
    name_chars: int = 1 << 10
    text_chars: int = 1 << 20
    instructions: bool = True


class BadXml(BadFlow):
    """A document or a value with problems, refused whole like a flow."""

    code = "bad-xml"
    refused = "the XML was refused"


DEFAULT_BOUNDS: Final = XmlBounds()


def parse(
    data: bytes | str, file: str, bounds: XmlBounds = DEFAULT_BOUNDS, refusal: type[BadFlow] = BadFlow
) -> ParsedElement:
    """The root element; each element knows its line. Raises `refusal` with the place of what is wrong."""
    return _BoundedParser(file, bounds, refusal).read(data)


class _BoundedParser:
    def __init__(self, file: str, bounds: XmlBounds, refusal: type[BadFlow]) -> None:
        self._file, self._bounds, self._refusal = file, bounds, refusal
        self._depth = self._count = 0
        self._declared: list[str] = []
        self._prefixes = Counter[str]()
        self._has_long_texts = False
        self._parser = etree.XMLPullParser(
            events=EVENTS,
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            attribute_defaults=False,
            huge_tree=False,
            recover=False,
        )

    def read(self, data: bytes | str) -> ParsedElement:
        text = self._text(data)
        self._has_long_texts = len(text) > self._bounds.text_chars
        if (at := doctype_at(text)) is not None:
            self._refuse(
                text.count("\n", 0, at) + 1,
                at - text.rfind("\n", 0, at),
                "a document type is not taken: there are no entities here, and nothing is fetched; take it out",
            )
        # attributes and namespaces are each counted later, by themselves
        if (at := overfull_tag_at(text, 2 * self._bounds.attributes)) is not None:
            self._refuse_attributes(text.count("\n", 0, at) + 1)
        try:
            for start in range(0, len(text), PIECE_CHARS):
                self._parser.feed(text[start : start + PIECE_CHARS].encode())
                self._look()
            root = self._parser.close()
        except etree.XMLSyntaxError:
            self._not_xml()
        assert isinstance(root, etree._Element)
        self._look()
        assert root.getroottree().docinfo.internalDTD is None, "a document type got past the check"
        return root

    def _text(self, data: bytes | str) -> str:
        size = len(data) if isinstance(data, bytes) else len(data.encode(errors="surrogatepass"))
        if size > self._bounds.bytes:
            most = f"{self._bounds.bytes / MIB:g}"
            self._refuse(0, 0, f"the file is {size / MIB:.1f} MB; at most {most} MB are taken")
        try:
            return decode(data)
        except Unreadable as error:
            self._refuse(error.line, 0, f"this is not XML: {error}")

    def _look(self) -> None:
        """At all that came with the last piece. It is done for each element, so whatever needs more than a comparison
        is done where something may be wrong."""
        bounds = self._bounds
        for event, element in self._parser.read_events():
            if event == "start":
                self._depth += 1
                self._count += 1
                if self._count > bounds.elements or self._depth > bounds.depth:
                    self._refuse_more(element)
                if len(str(element.tag)) > bounds.name_chars:
                    most = f"{bounds.name_chars:,}"
                    self._refuse(element.sourceline or 0, 0, f"an element has a name of more than {most} characters")
                attributes = element.items()
                if attributes or len(self._prefixes) > bounds.attributes:
                    self._look_at_attributes(element, attributes)
            elif event == "end":
                self._depth -= 1
                if self._has_long_texts:
                    self._look_at_text(element)
            elif event == "start-ns":
                self._declare(str(element[0]))
            elif event == "end-ns":
                self._forget()
            else:
                self._count += 1
                if self._count > bounds.elements:
                    self._refuse_more(element)
                if event == "pi" and not bounds.instructions:
                    self._refuse(element.sourceline or 0, 0, "a processing instruction cannot stand here; take it out")

    def _refuse_more(self, node: ParsedElement) -> NoReturn:
        bounds, line = self._bounds, node.sourceline or 0
        if self._count > bounds.elements:
            self._refuse(line, 0, f"there are more than {bounds.elements:,} elements, comments and instructions")
        self._refuse(line, 0, f"elements stand more than {bounds.depth} deep in each other")

    def _declare(self, prefix: str) -> None:
        """A prefix that is declared again counts once."""
        self._declared.append(prefix)
        self._prefixes[prefix] += 1

    def _forget(self) -> None:
        prefix = self._declared.pop()
        self._prefixes[prefix] -= 1
        if not self._prefixes[prefix]:
            del self._prefixes[prefix]

    def _look_at_attributes(self, element: ParsedElement, attributes: list[tuple[str, str]]) -> None:
        """Namespaces count as attributes, those that an element has from around it too."""
        bounds = self._bounds
        if len(attributes) > bounds.attributes or len(self._prefixes) > bounds.attributes:
            self._refuse_attributes(element.sourceline or 0)
        for name, value in attributes:
            if len(name) > bounds.name_chars or len(value) > bounds.attribute_chars:
                most = f"{bounds.attribute_chars:,}"
                message = f"the attribute {name:.40} has more than {most} characters, or too long a name"
                self._refuse(element.sourceline or 0, 0, message)

    def _refuse_attributes(self, line: int) -> NoReturn:
        self._refuse(line, 0, f"an element has more than {self._bounds.attributes} attributes")

    def _look_at_text(self, element: ParsedElement) -> None:
        """All texts of an element itself together: comments and inner elements may stand between them."""
        held = len(element.text or "") + sum(len(child.tail or "") for child in element)
        if held > self._bounds.text_chars:
            most = f"{self._bounds.text_chars:,}"
            self._refuse(element.sourceline or 0, 0, f"the text of <{_plain(element)}> has more than {most} characters")

    def _not_xml(self) -> NoReturn:
        """The first thing that is wrong; what follows mostly follows from it."""
        first = next(iter(self._parser.feed_error_log), None)
        if first is None:
            self._refuse(1, 1, f"this is not XML: {NOTHING}")
        self._refuse(first.line, first.column, f"this is not XML: {parser_message(first.type_name)}")

    def _refuse(self, line: int, column: int, message: str) -> NoReturn:
        problem = Problem(file=self._file, line=line, column=column, message=message)
        raise self._refusal(problems=[problem]) from None


def _plain(element: ParsedElement) -> str:
    return str(element.tag).rpartition("}")[2][:80]
