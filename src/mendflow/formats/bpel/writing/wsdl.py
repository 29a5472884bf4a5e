"""Writes the WSDL files of a process, one for each namespace."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from mendflow.core.model.xml import (
    MessagePart,
    Operation,
    PartnerLink,
    PropertyAlias,
    ServicePort,
    SoapBinding,
    XmlDefinitions,
)
from mendflow.core.xml.declarations import declares_type
from mendflow.formats.bpel.reader import split_name
from mendflow.formats.bpel.vocabulary import PARTNER_LINKS, PROPERTIES, SCHEMA, SOAP, WSDL
from mendflow.formats.bpel.writing.element_writer import ElementWriter
from mendflow.formats.bpel.writing.namespaces import NamespacePrefixes
from mendflow.formats.bpel.writing.tags import XmlTag, document, new_tag

FIXED: Final = {
    "wsdl": WSDL,
    "soap": SOAP,
    "xsd": SCHEMA,
    "plnk": PARTNER_LINKS,
    "vprop": PROPERTIES,
}
T = TypeVar("T")
HTTP: Final = "http://schemas.xmlsoap.org/soap/http"


def namespaces(world: XmlDefinitions, links: Iterable[PartnerLink]) -> list[str]:
    """Those that a WSDL file is needed for. Ports come first and in their order: of several ports of one port type, the
    first is called."""
    names = [port.service for port in world.ports]
    names += [*world.messages, *world.port_types, *world.properties, *(link.type for link in links)]
    names += [alias_home(alias) for alias in world.aliases]
    return list(dict.fromkeys(split_name(name)[0] for name in names))


def misordered_port_types(world: XmlDefinitions) -> Iterator[str]:
    """Port types whose ports would be read in another order, since a file has all services of a namespace, and each
    service has all its ports together."""
    spaces = list(dict.fromkeys(split_name(port.service)[0] for port in world.ports))
    services = list(dict.fromkeys(port.service for port in world.ports))
    read = sorted(
        world.ports, key=lambda port: (spaces.index(split_name(port.service)[0]), services.index(port.service))
    )
    for name in dict.fromkeys(port.port_type for port in world.ports):
        before, after = ([port for port in ports if port.port_type == name] for ports in (world.ports, read))
        if before != after:
            yield name


def roles_of(link: PartnerLink) -> dict[str, str]:
    """The port types of the roles that a partner link speaks of."""
    both = ((link.my_role, link.mine), (link.partner_role, link.partner))
    return {role: port_type for role, port_type in both if role}


def alias_home(alias: PropertyAlias) -> str:
    """The name whose namespace an alias is written with."""
    return alias.of.message or alias.of.element or alias.property


def wsdl_text(world: XmlDefinitions, links: Iterable[PartnerLink], namespace: str) -> str:
    """The WSDL file of a namespace."""
    return _Wsdl(world, namespace).document(links)


class _Wsdl:
    def __init__(self, world: XmlDefinitions, namespace: str) -> None:
        self.world, self.namespace = world, namespace
        self.aliases = [alias for alias in world.aliases if split_name(alias_home(alias))[0] == namespace]
        queries = [alias.query for alias in self.aliases if alias.query is not None]
        self.spaces = NamespacePrefixes(FIXED, queries)
        self.parts = ElementWriter(self.spaces)

    def document(self, links: Iterable[PartnerLink]) -> str:
        inside = [
            *(self.message(name, parts) for name, parts in self.mine(self.world.messages)),
            *(self.port_type(name, operations) for name, operations in self.mine(self.world.port_types)),
            *self.services(),
            *self.link_types(links),
            *self.properties(),
            *(self.alias(alias) for alias in self.aliases),
        ]
        root = new_tag("wsdl:definitions", {**self.spaces.attributes(), "targetNamespace": self.namespace}, *inside)
        return document(root)

    def mine(self, named: dict[str, T]) -> Iterator[tuple[str, T]]:
        return ((split_name(name)[1], each) for name, each in named.items() if split_name(name)[0] == self.namespace)

    def message(self, name: str, parts: tuple[MessagePart, ...]) -> XmlTag:
        inside = [
            new_tag(
                "wsdl:part",
                {
                    "name": part.name,
                    "element": self.spaces.name(part.element),
                    "type": self.spaces.name(part.type),
                },
            )
            for part in parts
        ]
        return new_tag("wsdl:message", {"name": name}, *inside)

    def port_type(self, name: str, operations: dict[str, Operation]) -> XmlTag:
        return new_tag("wsdl:portType", {"name": name}, *map(self.operation, operations.values()))

    def operation(self, operation: Operation) -> XmlTag:
        ways = {"wsdl:input": operation.input, "wsdl:output": operation.output}
        return new_tag(
            "wsdl:operation",
            {"name": operation.name},
            *(new_tag(way, {"message": self.spaces.name(message)}) for way, message in ways.items() if message),
            *(
                new_tag("wsdl:fault", {"name": name, "message": self.spaces.name(message)})
                for name, message in operation.faults.items()
            ),
        )

    # ports

    def services(self) -> list[XmlTag]:
        """A binding for each port, which ports may share, and each service with its ports."""
        bindings: dict[str, XmlTag] = {}
        services: dict[str, XmlTag] = {}
        for port in (port for port in self.world.ports if split_name(port.service)[0] == self.namespace):
            name = port.binding or f"{split_name(port.service)[1]}{port.name}"
            if bindings.get(name, made := self.binding(name, port)) != made:
                name = f"{name}{len(bindings) + 1}"
            bindings[name] = self.binding(name, port)
            services.setdefault(port.service, new_tag("wsdl:service", {"name": split_name(port.service)[1]})).put(
                new_tag(
                    "wsdl:port",
                    {"name": port.name, "binding": self.spaces.name(f"{{{self.namespace}}}{name}")},
                    new_tag("soap:address", {"location": port.address}) if port.address else None,
                )
            )
        return [*bindings.values(), *services.values()]

    def binding(self, name: str, port: ServicePort) -> XmlTag:
        known = self.world.port_types.get(port.port_type, {})
        return new_tag(
            "wsdl:binding",
            {"name": name, "type": self.spaces.name(port.port_type)},
            new_tag("soap:binding", {"style": port.style, "transport": HTTP}),
            *(self.bound(each, bound, known.get(each)) for each, bound in port.operations.items()),
        )

    def bound(self, name: str, bound: SoapBinding, operation: Operation | None) -> XmlTag:
        body = new_tag("soap:body", {"use": "literal", "namespace": bound.namespace})
        ways = ["wsdl:input"] + (["wsdl:output"] if operation is not None and operation.output else [])
        return new_tag(
            "wsdl:operation",
            {"name": name},
            new_tag("soap:operation", {"soapAction": bound.action, "style": bound.style}),
            *(new_tag(way, {}, body) for way in ways),
            *(
                new_tag("wsdl:fault", {"name": fault}, new_tag("soap:fault", {"name": fault, "use": "literal"}))
                for fault in (operation.faults if operation is not None else ())
            ),
        )

    # what BPEL adds

    def link_types(self, links: Iterable[PartnerLink]) -> list[XmlTag]:
        """As far as the process speaks of their roles."""
        found: dict[str, dict[str, str]] = {}
        for link in links:
            found.setdefault(link.type, {}).update(roles_of(link))
        return [
            new_tag(
                "plnk:partnerLinkType",
                {"name": name},
                *(
                    new_tag("plnk:role", {"name": role, "portType": self.spaces.name(port_type)})
                    for role, port_type in roles.items()
                ),
            )
            for name, roles in self.mine(found)
        ]

    def properties(self) -> list[XmlTag]:
        return [
            new_tag("vprop:property", {"name": name, self.kind(full): self.spaces.name(full)})
            for name, full in self.mine(self.world.properties)
        ]

    def kind(self, full: str) -> str:
        """A property is of an element, unless there is a type of that name."""
        return "type" if declares_type(self.world, full) else "element"

    def alias(self, alias: PropertyAlias) -> XmlTag:
        query = self.parts.expression("query", alias.query) if alias.query is not None else None
        if query is not None:
            query.name = "vprop:query"
        attributes = {"propertyName": self.spaces.name(alias.property), **self.parts.type(alias.of), "part": alias.part}
        return new_tag("vprop:propertyAlias", attributes, query)
