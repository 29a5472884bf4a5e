"""Generates the WSDL of a served flow: its messages, port types and schemas, with bindings, at its address.

A WSDL document has one namespace. If messages and port types have several, there is a document for each, and the first
imports the others. A schema that others import by namespace is in the first document; one that is included by location
is served separately."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from mendflow.core.model.errors import BadFlow, NotFound
from mendflow.core.model.xml import Operation, XmlDefinitions
from mendflow.core.soap import HTTP_TRANSPORT, WSDL, WSDL_SOAP, XSD, qualified_name, split_name
from mendflow.core.soap.envelope import elements_of, xml_text
from mendflow.core.soap.messages import BoundOperation, bind_operation
from mendflow.core.xml import parse
from mendflow.core.xml.library import etree

_BY_PLACE: Final = frozenset({qualified_name(XSD, "include"), qualified_name(XSD, "redefine")})


class ServedPort(NamedTuple):
    """A port type at an address."""

    port: str
    port_type: str
    address: str


def wsdl_of(world: XmlDefinitions, service: str, served: Sequence[ServedPort], url: str, number: int = 0) -> str:
    """The WSDL document of that number; the first is the one that people ask for. `url` is where it is served."""
    documents = _namespaces(world, served)
    if not 0 <= number < len(documents):
        raise NotFound(f"there is no WSDL document {number} here; ask for ?wsdl")
    own = documents[number]
    prefixes = {namespace: f"n{place}" for place, namespace in enumerate(documents)}
    writing = _WsdlWriter(world, _schema_prefixes(world, len(documents)) | prefixes)
    content = [*_imports(documents, number, url)]
    content += writing.types(url) if number == 0 else []
    content += writing.messages(own, served) + writing.port_types(own, served)
    if number == 0:
        content += [*writing.bindings(served), _service(service, served, prefixes[own])]
    declared = "".join(f' xmlns:{prefix}="{xml_text(name)}"' for name, prefix in writing.prefixes.items() if name)
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<wsdl:definitions xmlns:wsdl="{WSDL}" xmlns:soap="{WSDL_SOAP}"'
        f' xmlns:xsd="{XSD}"{declared} name="{xml_text(service)}" targetNamespace="{xml_text(own)}">\n'
        + "\n".join(content)
        + "\n</wsdl:definitions>\n"
    )


def schema_of(world: XmlDefinitions, number: int, url: str) -> str:
    """A schema that is included by its place."""
    if not 0 <= number < len(world.schemas):
        raise NotFound(f"there is no schema {number} here; ask for ?wsdl")
    return _schema_text(world, number, url)


def _namespaces(world: XmlDefinitions, served: Sequence[ServedPort]) -> list[str]:
    """The namespaces of all documents; the first is that of the first port type."""
    types = list(dict.fromkeys(each.port_type for each in served))
    names = types + [message for each in types for message in _messages(world, each)]
    return list(dict.fromkeys(split_name(name)[0] for name in names)) or [world.namespace]


def _messages(world: XmlDefinitions, port_type: str) -> Iterable[str]:
    named = [
        message
        for operation in world.port_types.get(port_type, {}).values()
        for message in (operation.input, operation.output, *operation.faults.values())
        if message
    ]
    return dict.fromkeys(named)


def _schema_prefixes(world: XmlDefinitions, first: int) -> dict[str, str]:
    parts = (part for each in world.messages.values() for part in each)
    named = dict.fromkeys(split_name(part.element or part.type)[0] for part in parts)
    return {name: f"s{place}" for place, name in enumerate((each for each in named if each != XSD), first)}


def _imports(documents: Sequence[str], number: int, url: str) -> list[str]:
    """The first document knows all others, and they know each other."""
    return [
        f'<wsdl:import namespace="{xml_text(name)}" location="{xml_text(url)}?wsdl={place}"/>'
        for place, name in enumerate(documents)
        if place not in (0, number)
    ]


def _service(name: str, served: Sequence[ServedPort], prefix: str) -> str:
    ports = "".join(
        f'<wsdl:port name="{xml_text(each.port)}" binding="{prefix}:{xml_text(_binding(each))}">'
        f'<soap:address location="{xml_text(each.address)}"/></wsdl:port>'
        for each in served
    )
    return f'<wsdl:service name="{xml_text(name)}">{ports}</wsdl:service>'


def _binding(served: ServedPort) -> str:
    return f"{served.port}Binding"


class _WsdlWriter:
    def __init__(self, world: XmlDefinitions, prefixes: dict[str, str]) -> None:
        self._world = world
        self.prefixes = prefixes

    def name(self, name: str) -> str:
        namespace, local = split_name(name)
        if namespace == XSD:
            return f"xsd:{local}"
        return f"{self.prefixes[namespace]}:{local}" if namespace else local

    def types(self, url: str) -> list[str]:
        included = _included(self._world)
        shown = [
            _schema_text(self._world, place, url) for place in range(len(self._world.schemas)) if place not in included
        ]
        return ["<wsdl:types>", *shown, "</wsdl:types>"] if shown else []

    def messages(self, namespace: str, served: Sequence[ServedPort]) -> list[str]:
        types = dict.fromkeys(each.port_type for each in served)
        names = dict.fromkeys(message for each in types for message in _messages(self._world, each))
        return [self._message(each) for each in names if split_name(each)[0] == namespace]

    def _message(self, name: str) -> str:
        parts = "".join(
            f'<wsdl:part name="{xml_text(part.name)}" '
            + (
                f'element="{xml_text(self.name(part.element))}"/>'
                if part.element
                else f'type="{self.name(part.type)}"/>'
            )
            for part in self._world.messages.get(name, ())
        )
        return f'<wsdl:message name="{xml_text(split_name(name)[1])}">{parts}</wsdl:message>'

    def port_types(self, namespace: str, served: Sequence[ServedPort]) -> list[str]:
        types = dict.fromkeys(each.port_type for each in served if split_name(each.port_type)[0] == namespace)
        return [
            f'<wsdl:portType name="{xml_text(split_name(each)[1])}">'
            + "".join(map(self._operation, self._world.port_types.get(each, {}).values()))
            + "</wsdl:portType>"
            for each in types
        ]

    def _operation(self, operation: Operation) -> str:
        output = f'<wsdl:output message="{self.name(operation.output)}"/>' if operation.output else ""
        faults = "".join(
            f'<wsdl:fault name="{xml_text(name)}" message="{self.name(message)}"/>'
            for name, message in operation.faults.items()
        )
        content = f'<wsdl:input message="{self.name(operation.input)}"/>{output}{faults}'
        return f'<wsdl:operation name="{xml_text(operation.name)}">{content}</wsdl:operation>'

    def bindings(self, served: Sequence[ServedPort]) -> list[str]:
        return [self._bound(each) for each in served]

    def _bound(self, served: ServedPort) -> str:
        operations = [
            bind_operation(self._world, served.port_type, name) for name in self._world.port_types[served.port_type]
        ]
        return (
            f'<wsdl:binding name="{xml_text(_binding(served))}" type="{self.name(served.port_type)}">'
            f'<soap:binding style="document" transport="{HTTP_TRANSPORT}"/>'
            + "".join(map(_operation_binding, operations))
            + "</wsdl:binding>"
        )


def _operation_binding(binding: BoundOperation) -> str:
    operation, bound = binding.operation, binding.bound
    namespace = f' namespace="{xml_text(bound.namespace)}"' if bound.style == "rpc" else ""
    body = f'<soap:body use="literal"{namespace}/>'
    output = f"<wsdl:output>{body}</wsdl:output>" if operation.output else ""
    faults = "".join(
        f'<wsdl:fault name="{xml_text(name)}"><soap:fault name="{xml_text(name)}" use="literal"/></wsdl:fault>'
        for name in operation.faults
    )
    return (
        f'<wsdl:operation name="{xml_text(operation.name)}">'
        f'<soap:operation soapAction="{xml_text(bound.action)}" style="{bound.style}"/>'
        f"<wsdl:input>{body}</wsdl:input>{output}{faults}</wsdl:operation>"
    )


# Schemas


def _included(world: XmlDefinitions) -> set[int]:
    """Those that another one takes in by its place, and that must not stand beside it as well."""
    places: set[int] = set()
    for schema in world.schemas:
        try:
            root = parse(schema.text, schema.location)
        except BadFlow:
            continue
        named = [each.get("schemaLocation", "") for each in elements_of(root) if each.tag in _BY_PLACE]
        places |= {place for each in named if (place := _place(world, each)) is not None}
    return places


def _place(world: XmlDefinitions, location: str) -> int | None:
    """Which schema a place means, as it is written where another one names it."""
    tail = location.removeprefix("./")
    for place, schema in enumerate(world.schemas):
        if schema.location == location or (tail and schema.location.endswith(f"/{tail.rpartition('../')[2]}")):
            return place
    return None


def _schema_text(world: XmlDefinitions, number: int, url: str) -> str:
    """A schema whose imports lead to what is served here, and to nothing else."""
    root = parse(world.schemas[number].text, world.schemas[number].location)
    for each in elements_of(root):
        if each.tag == qualified_name(XSD, "import"):
            each.attrib.pop("schemaLocation", None)
        elif each.tag in _BY_PLACE:
            place = _place(world, each.get("schemaLocation", ""))
            each.set("schemaLocation", f"{url}?xsd={place}" if place is not None else "")
    return etree.tostring(root, encoding="unicode", with_tail=False)


def at_address(wsdl: str, url: str) -> str:
    """A WSDL that ships, with the address where it is served."""
    root = parse(wsdl, "the WSDL")
    for each in root.iter(qualified_name(WSDL_SOAP, "address")):
        each.set("location", url)
    return etree.tostring(root, encoding="unicode", with_tail=False)
