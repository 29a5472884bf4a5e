"""Reads WSDL 1.1: messages, port types, and BPEL's extensions: partner link types, properties and their aliases."""

from collections.abc import Callable
from typing import Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.xml import MessagePart, Operation, PropertyAlias, XmlType
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.definitions import Definitions, Kind, SourceLocation
from mendflow.formats.bpel.expressions import Languages, query_of
from mendflow.formats.bpel.names import elements, local_name, namespace, own_elements, qualified_name
from mendflow.formats.bpel.reader import MANY, XmlReader
from mendflow.formats.bpel.vocabulary import PARTNER_LINKS, PROPERTIES, WSDL


class WsdlReader:
    """One WSDL document on its way into the definitions."""

    def __init__(self, reader: XmlReader, root: ParsedElement, into: Definitions) -> None:
        self.reader, self.root, self.into = reader, root, into
        self.namespace = root.get("targetNamespace", "")

    def read(self) -> None:
        for child in elements(self.root):
            if read := READERS.get((namespace(child), local_name(child))):
                read(self, child)
            elif local_name(child) == "partnerLinkType":
                self.into.earlier.add(qualified_name(self.namespace, child.get("name", "")))

    def place(self, at: ParsedElement) -> SourceLocation:
        return SourceLocation(self.reader.file, at.sourceline or 0)

    def name(self, kind: Kind, at: ParsedElement) -> str:
        """The name that it defines; empty if it has none, or is defined already."""
        name = self.reader.needed(at, "name")
        full = qualified_name(self.namespace, name) if name else ""
        return full if full and self.into.is_new(kind, full, self.place(at)) else ""

    def message(self, at: ParsedElement) -> None:
        parts = []
        for part in self.reader.parts(at, {"part": MANY})["part"]:
            element, type = self.reader.qname(part, "element"), self.reader.qname(part, "type")
            if bool(element) == bool(type):
                self.reader.problem(part, "a part has an `element` or a `type`, and not both")
            parts.append(MessagePart(name=self.reader.needed(part, "name"), element=element, type=type))
        if name := self.name("message", at):
            self.into.messages[name] = tuple(parts)

    def port_type(self, at: ParsedElement) -> None:
        if not (name := self.name("portType", at)):
            return
        operations: dict[str, Operation] = {}
        for each in own_elements(at, "operation"):
            operation = self.operation(each)
            if self.into.is_new("operation", f"{name}#{operation.name}", self.place(each)):
                operations[operation.name] = operation
        self.into.port_types[name] = operations

    def operation(self, at: ParsedElement) -> Operation:
        parts = self.reader.parts(at, {"input": 1, "output": 1, "fault": MANY})
        given, answered = (
            self.reader.qname_needed(one, "message") if (one := next(iter(parts[way]), None)) is not None else ""
            for way in ("input", "output")
        )
        faults = {
            self.reader.needed(each, "name"): self.reader.qname_needed(each, "message") for each in parts["fault"]
        }
        return Operation(name=self.reader.needed(at, "name"), input=given, output=answered, faults=faults)

    def partner_link_type(self, at: ParsedElement) -> None:
        roles = self.reader.parts(at, {"role": 2})["role"]
        found = {}
        for role in roles:
            # A draft of the standard had the port type in an element of its own.
            inner = next(own_elements(role, "portType"), None)
            port_type = (
                self.reader.qname_needed(role, "portType") if inner is None else self.reader.qname_needed(inner, "name")
            )
            found[self.reader.needed(role, "name")] = port_type
        if not roles:
            self.reader.problem(at, "a partner link type has one role or two")
        if name := self.name("partnerLinkType", at):
            self.into.partner_link_types[name] = found

    def property(self, at: ParsedElement) -> None:
        type, element = self.reader.qname(at, "type"), self.reader.qname(at, "element")
        if bool(type) == bool(element):
            self.reader.problem(at, "a property has a `type` or an `element`, and not both")
        if name := self.name("property", at):
            # Of an element it has the type of what stands in it, which is known when all schemas are.
            self.into.properties[name] = type or element

    def alias(self, at: ParsedElement) -> None:
        of = XmlType(
            message=self.reader.qname(at, "messageType"),
            element=self.reader.qname(at, "element"),
            type=self.reader.qname(at, "type"),
        )
        query = next(own_elements(at, "query"), None)
        alias = PropertyAlias(
            property=self.reader.qname_needed(at, "propertyName"),
            of=of,
            part=at.get("part", "").strip(),
            query=self._query(query) if query is not None else None,
        )
        place = self.place(at)
        if self.into.is_new("propertyAlias", f"{alias.property}@{of.message or of.element or of.type}", place):
            self.into.aliases.append(alias)
            self.into.alias_places.append(place)

    def _query(self, at: ParsedElement) -> Expr | None:
        return query_of(self.reader, at, Languages())


READERS: Final[dict[tuple[str, str], Callable[[WsdlReader, ParsedElement], None]]] = {
    (WSDL, "message"): WsdlReader.message,
    (WSDL, "portType"): WsdlReader.port_type,
    (PARTNER_LINKS, "partnerLinkType"): WsdlReader.partner_link_type,
    (PROPERTIES, "property"): WsdlReader.property,
    (PROPERTIES, "propertyAlias"): WsdlReader.alias,
}
