"""Reads the imports of a process: every reachable WSDL and schema, each once.

Only files are read. An import without a reachable file is ignored if nothing depends on it: its namespace is built in,
or another import provides it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from lxml import etree

from mendflow.core.model.errors import Problem
from mendflow.core.model.xml import SchemaText
from mendflow.core.xml import ParsedElement
from mendflow.core.xml.declarations import builtin_of_content
from mendflow.formats.bpel.bindings import Bindings
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.names import elements, local_name, namespace, own_elements
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.reader import SourceDocument, XmlReader, abbreviate
from mendflow.formats.bpel.source_files import SourceFiles, is_remote
from mendflow.formats.bpel.vocabulary import SCHEMA, WELL_KNOWN, WSDL
from mendflow.formats.bpel.wsdl import WsdlReader

OWN_PORTS: Final = {space: name for name, space in PORTS.items()}
"""The ports that a server offers itself, by their namespaces. Whoever imports one needs no copy of its WSDL."""


def definitions_of(reader: XmlReader, process: SourceDocument, places: SourceFiles) -> Definitions:
    """All that the process imports. What is wrong is told to the reading, and to the problems of the places."""
    gathering = _ImportReader(reader, places)
    wanted = list(own_elements(process.root, "import"))
    gathering.promised = {at.get("namespace", "") for at in wanted if not is_remote(at.get("location", ""))}
    for at in wanted:
        gathering.imported(at)
    return gathering.finish()


@cache
def port_definitions(name: str) -> Definitions:
    """All that the WSDL of a port of our own says. Nobody changes what is returned."""
    problems: list[Problem] = []
    places = SourceFiles(Path(), problems)
    gathering = _ImportReader(XmlReader(name, problems), places)
    gathering.take(places.ours(name))
    assert not problems, f"the WSDL of the port {name} is broken: {problems}"
    return gathering.finish()


class _ImportReader:
    def __init__(self, reader: XmlReader, places: SourceFiles) -> None:
        self.reader, self.places = reader, places
        self.into = Definitions()
        self.bindings = Bindings(self.into)
        self.promised: set[str] = set()
        self._seen: set[str] = set()

    def imported(self, at: ParsedElement) -> None:
        """An import of the process itself."""
        self.reader.only(at, ("namespace", "location", "importType"))
        kind, location = self.reader.needed(at, "importType"), at.get("location", "").strip()
        if kind not in (WSDL, SCHEMA):
            self.reader.problem(
                at, f"SA00013: {abbreviate(kind)} is no type of document that is read: import {WSDL} or {SCHEMA}"
            )
        elif (document := self.reached(self.reader, at, location, "")) is not None:
            first = "definitions" if kind == WSDL else "schema"
            if document.root.tag != f"{{{kind}}}{first}":
                self.reader.problem(at, f"SA00013: {abbreviate(location)} is not of the importType that is said here")
            else:
                self.take(document)

    def reached(self, reader: XmlReader, at: ParsedElement, location: str, base: str) -> SourceDocument | None:
        """The document of an import; None where there is none, which is a problem unless it is known what it says."""
        space = at.get("namespace", "").strip()
        if location and not is_remote(location):
            return self._document(reader, at, location, base)
        if space in OWN_PORTS:
            return self.places.ours(OWN_PORTS[space])
        if not location or space in WELL_KNOWN or space in self.promised:
            self.into.left_out.add(space)
            return None
        return self._document(reader, at, location, base)

    def _document(self, reader: XmlReader, at: ParsedElement, location: str, base: str) -> SourceDocument | None:
        found = self.places.document(reader, at, location, base)
        if found is None:
            self.into.missing.add(at.get("namespace", "").strip())
        return found

    def take(self, document: SourceDocument) -> None:
        """All that a document says, and all that it brings along."""
        if document.location in self._seen:
            return
        self._seen.add(document.location)
        self.into.documents.append(document)
        reader = XmlReader(document.file, self.reader.problems)
        if namespace(document.root) == SCHEMA:
            self.schema(reader, document.root, document.location, document.location)
        elif namespace(document.root) == WSDL:
            self.wsdl(reader, document)

    def wsdl(self, reader: XmlReader, document: SourceDocument) -> None:
        for at in own_elements(document.root, "import"):
            self.follow(reader, at, at.get("location", "").strip(), document.location)
        number = 0
        for types in own_elements(document.root, "types"):
            for schema in (
                each for each in elements(types) if namespace(each) == SCHEMA and local_name(each) == "schema"
            ):
                number += 1
                self.schema(reader, schema, document.location, f"{document.location}#{number}")
        WsdlReader(reader, document.root, self.into).read()
        self.bindings.read(reader, document.root)

    def schema(self, reader: XmlReader, root: ParsedElement, base: str, location: str) -> None:
        text = etree.tostring(root, encoding="unicode", with_tail=False)
        self.into.schemas.append(SchemaText(location=location, namespace=root.get("targetNamespace", ""), text=text))
        for at in _schema_references(root):
            self.follow(reader, at, at.get("schemaLocation", "").strip(), base)

    def finish(self) -> Definitions:
        """What can be said only when everything is known."""
        self.bindings.finish()
        world = self.into.world("", {})
        for name, type in self.into.properties.items():
            if content := builtin_of_content(world, type):
                self.into.properties[name] = f"{{{SCHEMA}}}{content}"
        read = {schema.namespace for schema in self.into.schemas}
        self.into.left_out -= read | {document.root.get("targetNamespace", "") for document in self.into.documents}
        return self.into

    def follow(self, reader: XmlReader, at: ParsedElement, location: str, base: str) -> None:
        if (document := self.reached(reader, at, location, base)) is not None:
            self.take(document)


def _schema_references(schema: ParsedElement) -> Iterator[ParsedElement]:
    return own_elements(schema, "import", "include", "redefine")
