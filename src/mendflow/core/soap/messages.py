"""Messages in envelopes: which operation a request is for, the values of its parts, and back.

In document style each part is an element of the body; in rpc style one element with the operation's name contains all
parts. A request is identified by its body; the SOAP action decides only between several matching operations."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import MessagePart, Operation, SoapBinding, XmlDefinitions, element_text, element_value
from mendflow.core.soap import BPEL, qualified_name, split_name, typed_parts
from mendflow.core.soap.envelope import BadEnvelope, Envelope, SoapFault, element_of, elements_of, local_of, xml_text
from mendflow.core.xml import ParsedElement
from mendflow.core.xml.simple_values import text_of

PartValues = Mapping[str, Value]


class BoundOperation(NamedTuple):
    """An operation, and how it is spoken."""

    port_type: str
    operation: Operation
    bound: SoapBinding


def bind_operation(world: XmlDefinitions, port_type: str, operation: str, *, address: str = "") -> BoundOperation:
    """As the port at the address speaks it, else any port of the type; without one, as its parts allow."""
    found = world.port_types[port_type][operation]
    ports = [each for each in world.ports if each.port_type == port_type and operation in each.operations]
    ports.sort(key=lambda each: each.address != address)
    return BoundOperation(
        port_type, found, ports[0].operations[operation] if ports else _unbound(world, port_type, found)
    )


def _unbound(world: XmlDefinitions, port_type: str, operation: Operation) -> SoapBinding:
    names = [operation.input, *([operation.output] if operation.output else [])]
    style: Literal["document", "rpc"] = (
        "document" if all(part.element for name in names for part in world.messages.get(name, ())) else "rpc"
    )
    return SoapBinding(style=style, namespace=split_name(port_type)[0] if style == "rpc" else "")


# Writing


def request_body(world: XmlDefinitions, binding: BoundOperation, message: PartValues) -> list[str]:
    """What stands in the body of a request."""
    return _body(world, binding, binding.operation.input, message, binding.operation.name)


def answer_body(world: XmlDefinitions, binding: BoundOperation, message: PartValues) -> list[str]:
    """What stands in the body of an answer."""
    return _body(world, binding, binding.operation.output, message, f"{binding.operation.name}Response")


def _body(world: XmlDefinitions, binding: BoundOperation, name: str, message: PartValues, wrapper: str) -> list[str]:
    parts = [_part(part, message[part.name]) for part in world.messages.get(name, ()) if part.name in message]
    if binding.bound.style == "document":
        return parts
    return [f'<rpc:{wrapper} xmlns:rpc="{xml_text(binding.bound.namespace)}">{"".join(parts)}</rpc:{wrapper}>']


def _part(part: MessagePart, value: Value) -> str:
    if part.element:
        return element_text(value) or _bare(part.element, text_of(value))
    return typed_parts.write_part(part.name, value)


def _bare(name: str, content: str = "") -> str:
    """An element that holds a text, or nothing."""
    namespace, local = split_name(name)
    tag, declared = (f"f:{local}", f' xmlns:f="{xml_text(namespace)}"') if namespace else (local, "")
    return f"<{tag}{declared}>{xml_text(content)}</{tag}>" if content else f"<{tag}{declared}/>"


# Reading


def read_request(
    world: XmlDefinitions, offered: Iterable[BoundOperation], envelope: Envelope, action: str
) -> tuple[BoundOperation, PartValues]:
    """Which of the offered operations a request means, and its message. Raises BadEnvelope."""
    offered = list(offered)
    fitting = [each for each in offered if _fits(world, each, each.operation.input, envelope.body)]
    if not fitting:
        there = ", ".join(str(each.tag) for each in envelope.body) or "an empty body"
        known = ", ".join(dict.fromkeys(name for each in offered for name in _first(world, each))) or "an empty body"
        raise BadEnvelope(f"no operation here takes {there}; they take {known}, and `?wsdl` tells more")
    binding = next((each for each in fitting if action and each.bound.action == action), None)
    binding = binding or next(
        (each for each in fitting if action.rpartition("/")[2] == each.operation.name), fitting[0]
    )
    return binding, _read(world, binding, binding.operation.input, envelope.body)


def _first(world: XmlDefinitions, binding: BoundOperation) -> Iterator[str]:
    """What the body of a request begins with."""
    if binding.bound.style == "rpc":
        yield qualified_name(binding.bound.namespace, binding.operation.name)
    else:
        yield from (part.element for part in world.messages.get(binding.operation.input, ())[:1] if part.element)


def _fits(world: XmlDefinitions, binding: BoundOperation, message: str, body: tuple[ParsedElement, ...]) -> bool:
    if binding.bound.style == "rpc":
        return len(body) == 1 and body[0].tag == qualified_name(binding.bound.namespace, binding.operation.name)
    parts = world.messages.get(message, ())
    if len(parts) == 1 and not parts[0].element:
        return len(body) == 1  # a type stands for whatever element there is
    return sorted(part.element for part in parts) == sorted(str(each.tag) for each in body)


def read_answer(world: XmlDefinitions, binding: BoundOperation, envelope: Envelope) -> PartValues:
    """The message of an answer. Raises BadEnvelope."""
    if binding.bound.style == "document" and not _fits(world, binding, binding.operation.output, envelope.body):
        there = ", ".join(str(each.tag) for each in envelope.body) or "nothing"
        raise BadEnvelope(f"{there} is no answer of the operation {binding.operation.name}")
    return _read(world, binding, binding.operation.output, envelope.body)


def _read(
    world: XmlDefinitions, binding: BoundOperation, name: str, body: tuple[ParsedElement, ...]
) -> dict[str, Value]:
    parts = world.messages.get(name, ())
    if binding.bound.style == "rpc":
        held = _accessors(parts, body, binding.operation.name)
    else:
        found = {str(each.tag): each for each in body}
        held = {part.name: found[part.element] for part in parts if part.element in found}
        if len(parts) == 1 and not parts[0].element and body:
            held = {parts[0].name: body[0]}
    return {
        part.name: element_value(element_of(held[part.name]))
        if part.element
        else typed_parts.read_part(held[part.name], part.type, world)
        for part in parts
        if part.name in held
    }


def _accessors(
    parts: tuple[MessagePart, ...], body: tuple[ParsedElement, ...], operation: str
) -> dict[str, ParsedElement]:
    """The elements of an rpc message by the parts that they are: each once, none missing, and no others."""
    inside = list(elements_of(body[0])) if len(body) == 1 else []
    there, wanted = [local_of(each) for each in inside], [part.name for part in parts]
    if sorted(there) != sorted(wanted):
        found = ", ".join(there) or "nothing"
        raise BadEnvelope(f"the message of {operation} has the parts {', '.join(wanted) or 'none'}; {found} came")
    return dict(zip(there, inside, strict=True))


# Faults


def fault_of(world: XmlDefinitions, binding: BoundOperation, fault: SoapFault) -> Fault:
    """What a fault in an envelope means to the caller: by its declared name if the operation declares it, else by the
    name of the element in its detail, else by its code."""
    words = fault.string or f"the partner's fault {fault.code}"
    if not fault.detail:
        return Fault(name=fault.code or "partnerFault", category=Category.FLOW, message=words)
    detail = fault.detail[0]
    for name, message in binding.operation.faults.items():
        for part in world.messages.get(message, ())[:1]:
            if part.element == detail.tag or (not part.element and local_of(detail) in (part.name, name)):
                value: Value = (
                    element_value(element_of(detail))
                    if part.element
                    else typed_parts.read_part(detail, part.type, world)
                )
                data: Value = {"type": {"message": message}, "value": {part.name: value}}
                return Fault(
                    name=qualified_name(split_name(binding.port_type)[0], name),
                    category=Category.FLOW,
                    message=words,
                    data=data,
                )
    element = str(detail.tag)
    data = {"type": {"element": element}, "value": element_value(element_of(detail))}
    namespace, local = split_name(element)
    name = local if namespace == BPEL else element
    return Fault(name=name, category=Category.FLOW, message=words, data=data)


def fault_words(fault: Fault) -> str:
    """What a fault's string says: its name first, then what it is about."""
    name = split_name(fault.name)[1]
    return f"{name}: {fault.message}" if fault.message and fault.message != name else name


def fault_detail(world: XmlDefinitions, binding: BoundOperation, fault: Fault) -> list[str]:
    """What stands in the detail: the fault's data as the WSDL wants it, else an element of the fault's name."""
    data = fault.data if isinstance(fault.data, dict) else {}
    kind, value = data.get("type"), data.get("value")
    message = kind.get("message", "") if isinstance(kind, dict) else ""
    declared = message or binding.operation.faults.get(split_name(fault.name)[1], "")
    parts = world.messages.get(declared, ()) if isinstance(declared, str) else ()
    elements = list(_detail(parts, value))
    namespace, local = split_name(fault.name)
    return elements or [_bare(qualified_name(namespace or BPEL, local))]


def _detail(parts: tuple[MessagePart, ...], value: Value) -> Iterator[str]:
    whole = element_text(value)
    if whole is not None:
        yield whole
    elif isinstance(value, dict):
        yield from (_part(part, value[part.name]) for part in parts if part.name in value)
