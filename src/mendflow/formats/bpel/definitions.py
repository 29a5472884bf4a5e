"""The content of a process's WSDL and XSD files, in terms of the model."""

from typing import Literal

import msgspec

from mendflow.core.model.xml import MessagePart, Operation, PropertyAlias, SchemaText, ServicePort, XmlDefinitions
from mendflow.formats.bpel.reader import SourceDocument

Kind = Literal["message", "portType", "operation", "partnerLinkType", "property", "propertyAlias"]


class SourceLocation(msgspec.Struct, frozen=True):
    file: str
    line: int


class DuplicateDefinition(msgspec.Struct, frozen=True):
    """Something that is defined again, and where."""

    kind: Kind
    name: str
    place: SourceLocation


class Definitions(msgspec.Struct, kw_only=True):
    """Names are `{namespace}local`. A partner link type has port types by its roles. `places` says where something of
    a kind and name is defined; an operation's name there is `PORTTYPE#OPERATION`, an alias's `PROPERTY@WHAT`.
    `alias_places` goes with `aliases`. What is defined again is in `twice`, and the first one counts. `unspoken` says
    of port types why some port of theirs cannot be spoken to. `earlier` are partner link types in the words of an
    earlier BPEL. `documents` are all files, in the order in which they were read. `left_out` are namespaces that
    nothing defines, since nothing is fetched, and `missing` those whose files could not be read."""

    messages: dict[str, tuple[MessagePart, ...]] = {}
    port_types: dict[str, dict[str, Operation]] = {}
    partner_link_types: dict[str, dict[str, str]] = {}
    properties: dict[str, str] = {}
    aliases: list[PropertyAlias] = []
    alias_places: list[SourceLocation] = []
    ports: list[ServicePort] = []
    unspoken: dict[str, str] = {}
    schemas: list[SchemaText] = []
    places: dict[tuple[Kind, str], SourceLocation] = {}
    twice: list[DuplicateDefinition] = []
    documents: list[SourceDocument] = []
    left_out: set[str] = set()
    missing: set[str] = set()
    earlier: set[str] = set()

    def is_new(self, kind: Kind, name: str, place: SourceLocation) -> bool:
        """Whether it is the first definition of it."""
        first = self.places.setdefault((kind, name), place) is place
        if not first:
            self.twice.append(DuplicateDefinition(kind, name, place))
        return first

    def advice_on(self, name: str) -> str:
        """What to do about a name that nothing defines, where its namespace was left out."""
        space = name[1:].partition("}")[0] if name.startswith("{") else ""
        return (
            "; its namespace is imported without a file: give the import a location" if space in self.left_out else ""
        )

    def unspoken_reason(self, port_type: str) -> str:
        """Why no port of this port type can be spoken to; empty if one can, or if there is none at all."""
        return "" if any(port.port_type == port_type for port in self.ports) else self.unspoken.get(port_type, "")

    def world(self, namespace: str, sheets: dict[str, str]) -> XmlDefinitions:
        """What a flow takes along."""
        return XmlDefinitions(
            namespace=namespace,
            messages=self.messages,
            port_types=self.port_types,
            properties=self.properties,
            aliases=tuple(self.aliases),
            ports=tuple(self.ports),
            schemas=tuple(self.schemas),
            sheets=sheets,
        )
