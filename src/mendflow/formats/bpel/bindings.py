"""WSDL bindings and services: how to call ports in SOAP 1.1, and their addresses.

Bindings of other protocols are ignored: a service often has several ports for the same thing."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from mendflow.core.model.xml import ServicePort, SoapBinding
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.names import elements, local_name, namespace, own_elements, qualified_name
from mendflow.formats.bpel.reader import XmlReader
from mendflow.formats.bpel.vocabulary import SOAP, WSDL

HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
Style = Literal["document", "rpc"]


class SoapBody(msgspec.Struct, frozen=True):
    """The parts that the body of an operation's request or answer is said to have; the others would be in headers."""

    operation: str
    way: str
    parts: frozenset[str]


class Binding(msgspec.Struct, frozen=True):
    """`unspoken` says why it cannot be spoken; empty if it can."""

    name: str
    port_type: str
    style: Style
    operations: dict[str, SoapBinding]
    unspoken: str = ""
    bodies: tuple[SoapBody, ...] = ()


class Bindings:
    """All bindings of all documents, by name. Services are read when all of them are known."""

    def __init__(self, into: Definitions) -> None:
        self.into = into
        self.bindings: dict[str, Binding] = {}
        self.services: list[tuple[XmlReader, ParsedElement]] = []

    def read(self, reader: XmlReader, root: ParsedElement) -> None:
        for child in own_elements(root, "binding"):
            if (soap := soap_element(child, "binding")) is not None:
                name = qualified_name(root.get("targetNamespace", ""), reader.needed(child, "name"))
                self.bindings.setdefault(name, binding_of(reader, child, soap))
        self.services += [(reader, child) for child in own_elements(root, "service")]

    def finish(self) -> None:
        for reader, service in self.services:
            root = service.getparent()
            space = root.get("targetNamespace", "") if root is not None else ""
            for port in own_elements(service, "port"):
                binding = self.bindings.get(reader.qname_needed(port, "binding"))
                if binding is not None:
                    self.port(reader, qualified_name(space, service.get("name", "")), port, binding)

    def port(self, reader: XmlReader, service: str, at: ParsedElement, binding: Binding) -> None:
        if why := binding.unspoken or self._in_headers(binding):
            self.into.unspoken.setdefault(binding.port_type, why)
            return
        address = soap_element(at, "address")
        port = ServicePort(
            service=service,
            name=reader.needed(at, "name"),
            port_type=binding.port_type,
            address=address.get("location", "").strip() if address is not None else "",
            style=binding.style,
            operations=binding.operations,
            binding=binding.name,
        )
        if port not in self.into.ports:
            self.into.ports.append(port)

    def _in_headers(self, binding: Binding) -> str:
        """Why messages do not have all their parts in the body; empty if they have."""
        for body in binding.bodies:
            operation = self.into.port_types.get(binding.port_type, {}).get(body.operation)
            message = (operation.input if body.way == "input" else operation.output) if operation else ""
            if missing := [part.name for part in self.into.messages.get(message, ()) if part.name not in body.parts]:
                return (
                    f"its operation {body.operation} has the part {missing[0]} elsewhere than in the body of a message"
                )
        return ""


def binding_of(reader: XmlReader, at: ParsedElement, soap: ParsedElement) -> Binding:
    style = style_of(reader, soap, "document")
    found, unspoken = {}, ""
    if (transport := soap.get("transport", HTTP).strip()) != HTTP:
        unspoken = f"its binding wants the transport {transport}, and SOAP is spoken over HTTP here"
    for each in own_elements(at, "operation"):
        name = reader.needed(each, "name")
        found[name] = bound_operation(reader, each, style)
        if any(body.get("use") == "encoded" for body in each.iter(f"{{{SOAP}}}body")):
            unspoken = f"its operation {name} is SOAP-encoded, and only literal messages are spoken here"
    bodies = tuple(body for each in own_elements(at, "operation") for body in _bodies(each))
    return Binding(reader.needed(at, "name"), reader.qname_needed(at, "type"), style, found, unspoken, bodies)


def _bodies(at: ParsedElement) -> Iterator[SoapBody]:
    for way in own_elements(at, "input", "output"):
        for body in way.iter(f"{{{SOAP}}}body"):
            if (parts := body.get("parts")) is not None:
                yield SoapBody(at.get("name", "").strip(), local_name(way), frozenset(parts.split()))


def bound_operation(reader: XmlReader, at: ParsedElement, style: Style) -> SoapBinding:
    """How one operation is spoken."""
    soap = soap_element(at, "operation")
    body = next((body for way in own_elements(at, "input") if (body := soap_element(way, "body")) is not None), None)
    return SoapBinding(
        action=soap.get("soapAction", "").strip() if soap is not None else "",
        style=style_of(reader, soap, style) if soap is not None else style,
        namespace=body.get("namespace", "").strip() if body is not None else "",
    )


def style_of(reader: XmlReader, at: ParsedElement, otherwise: Style) -> Style:
    return "rpc" if reader.one_of(at, "style", ("document", "rpc"), otherwise) == "rpc" else "document"


def soap_element(at: ParsedElement, name: str) -> ParsedElement | None:
    """What SOAP 1.1 says of an element of WSDL."""
    assert namespace(at) == WSDL
    return next((each for each in elements(at) if namespace(each) == SOAP and local_name(each) == name), None)
