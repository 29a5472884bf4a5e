"""A call to intercept: an invoke with the declarations around it and in the WSDL files."""

import msgspec

from mendflow.core.model.xml import MessagePart, Operation, ServicePort, SoapBinding, XmlDefinitions
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.names import local_name, own_elements
from mendflow.formats.bpel.reader import XmlReader

MESSAGE, ELEMENT, TYPE = "message", "element", "type"


class PartVariable(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message, and where the process keeps it: a variable, or a part of one."""

    part: MessagePart
    variable: str
    whole: bool
    element: bool
    """Whether what is kept there is an element, which has a name of its own."""


class DeclaredFault(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is the one that handlers know it by."""

    name: str
    message: str
    parts: tuple[MessagePart, ...]


class InterceptedCall(msgspec.Struct, frozen=True, kw_only=True):
    at: ParsedElement
    activity: str
    link: str
    port_type: str
    operation: Operation
    bound: SoapBinding
    address: str
    sends: tuple[PartVariable, ...]
    gets: tuple[PartVariable, ...]
    answer: tuple[MessagePart, ...]
    faults: tuple[DeclaredFault, ...]


class InvokeReader:
    """Reads the invokes of one process, of which the rest is known to be right."""

    def __init__(self, reader: XmlReader, definitions: Definitions, world: XmlDefinitions) -> None:
        self._reader, self._definitions, self._world = reader, definitions, world

    def of(self, at: ParsedElement) -> InterceptedCall:
        link = at.get("partnerLink", "").strip()
        port_type = self._port_type(at, link)
        operation = self._world.port_types[port_type][at.get("operation", "").strip()]
        port = self._port(port_type)
        parts = self._world.messages[operation.input]
        answer = self._world.messages[operation.output] if operation.output else ()
        return InterceptedCall(
            at=at,
            activity=at.get("name", "").strip() or operation.name,
            link=link,
            port_type=port_type,
            operation=operation,
            bound=port.operations.get(operation.name, SoapBinding(style=port.style)),
            address=port.address,
            sends=self._held(at, "inputVariable", "toPart", "fromVariable", parts),
            gets=self._held(at, "outputVariable", "fromPart", "toVariable", answer),
            answer=answer,
            faults=self._faults(port_type, operation),
        )

    def _port_type(self, at: ParsedElement, link: str) -> str:
        declared = next(
            each
            for enclosing in at.iterancestors()
            for links in own_elements(enclosing, "partnerLinks")
            for each in own_elements(links, "partnerLink")
            if each.get("name", "").strip() == link
        )
        kind = self._reader.qname(declared, "partnerLinkType")
        return self._definitions.partner_link_types[kind][declared.get("partnerRole", "").strip()]

    def _port(self, port_type: str) -> ServicePort:
        """Where the port type is spoken; if nowhere, the address is known only when the process runs."""
        spoken = (port for port in self._world.ports if port.port_type == port_type)
        return next(spoken, ServicePort(service="", name="", port_type=port_type))

    def _held(
        self, at: ParsedElement, whole: str, one: str, variable: str, parts: tuple[MessagePart, ...]
    ) -> tuple[PartVariable, ...]:
        by_name = {part.name: part for part in parts}
        singly = [each for enclosing in own_elements(at, f"{one}s") for each in own_elements(enclosing, one)]
        if singly:
            return tuple(
                self._single(at, each.get(variable, "").strip(), by_name[each.get("part", "").strip()])
                for each in singly
            )
        name = at.get(whole, "").strip()
        if not name:
            return ()
        if self._kind(at, name) == ELEMENT:
            return (PartVariable(part=parts[0], variable=name, whole=True, element=True),)
        return tuple(PartVariable(part=part, variable=name, whole=False, element=bool(part.element)) for part in parts)

    def _single(self, at: ParsedElement, variable: str, part: MessagePart) -> PartVariable:
        return PartVariable(part=part, variable=variable, whole=True, element=self._kind(at, variable) == ELEMENT)

    def _kind(self, at: ParsedElement, variable: str) -> str:
        """What a variable is, by the declaration that is the nearest around."""
        for enclosing in at.iterancestors():
            if (declared := _declaration(enclosing, variable)) is not None:
                names = {name.lower() for name in map(str, declared.keys())}
                if any("messagetype" in name for name in names):
                    return MESSAGE
                return ELEMENT if any(name.endswith("element") for name in names) else TYPE
        return MESSAGE

    def _faults(self, port_type: str, operation: Operation) -> tuple[DeclaredFault, ...]:
        space = port_type.rpartition("}")[0]
        return tuple(
            DeclaredFault(
                name=f"{space}}}{name}" if space else name, message=message, parts=self._world.messages[message]
            )
            for name, message in operation.faults.items()
        )


def _declaration(enclosing: ParsedElement, variable: str) -> ParsedElement | None:
    """The element that declares a variable of this name for what stands inside `enclosing`."""
    for each in (
        each for variables in own_elements(enclosing, "variables") for each in own_elements(variables, "variable")
    ):
        if each.get("name", "").strip() == variable:
            return each
    implied = {"catch": "faultVariable", "onEvent": "variable"}.get(local_name(enclosing), "")
    return enclosing if implied and enclosing.get(implied, "").strip() == variable else None
