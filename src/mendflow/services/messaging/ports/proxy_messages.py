"""The messages of the proxy port: a call as it is parsed, the flow that makes it, and its result.

A call contains everything that a WSDL would say of one operation. So the flow that makes it is a single invoke, and the
message is its input: it is visible, and can be changed by a rule, like the input of any case."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow, Input, Invoke, Scope
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value
from mendflow.core.model.xml import (
    MessagePart,
    Operation,
    PartnerLink,
    ScopeDeclarations,
    ServicePort,
    SoapBinding,
    XmlDefinitions,
    XmlMessage,
    XmlType,
    element_text,
    element_value,
)
from mendflow.core.soap import qualified_name, split_name
from mendflow.core.xml.reader import read
from mendflow.core.xml.simple_values import text_of
from mendflow.core.xml.tree import Element, Text, cut
from mendflow.core.xml.writer import copy_element, write
from mendflow.lazy import lazy_pattern
from mendflow.services.messaging.ports.messages import (
    PortFault,
    address_in,
    child,
    children,
    new_element,
    refusal,
    text_element,
    text_in,
)

PROXY: Final = "urn:mendflow:proxy:1"
OPERATIONS: Final = ("call", "post", "open", "begin", "ask", "result")
CALL_FLOW: Final = "partner-call"
"""The name of all flows that are calls: rule sets use it."""
LINK: Final = "partner"
FAILED: Final = "failed"
NAME_CHARS_MAX: Final = 80
_UNSAFE_CHARS: Final = lazy_pattern(r"[^A-Za-z0-9_]+")
_TRUE: Final = ("true", "1")

Style = Literal["document", "rpc"]


class DeclaredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a partner may answer. `faults` are those that it declares: by name, with the part of each."""

    port_type: str
    answer: tuple[MessagePart, ...]
    faults: dict[str, MessagePart]


class PartnerCall(DeclaredAnswer, frozen=True, kw_only=True):
    activity: str
    address: str
    operation: str
    bound: SoapBinding
    one_way: bool
    message: dict[str, Value]
    parts: tuple[MessagePart, ...]
    key: str = ""


def call_in(element: Element) -> PartnerCall:
    """Parse a request. Raises PortFault."""
    namespace = PROXY
    place, message = child(element, "address"), child(element, "message")
    address = address_in(place) if place is not None else ""
    operation, port_type = text_in(element, "operation"), text_in(element, "portType")
    style = text_in(element, "style") or "document"
    problems = [
        *(["<address> names no address: say where the partner is"] if not address else []),
        *(["<operation> is missing"] if not operation else []),
        *(["<portType> is missing: give it as {namespace}local"] if not port_type else []),
        *([f"<style> is document or rpc, not {style:.80}"] if style not in ("document", "rpc") else []),
        *(["<message> is missing: give its parts, or none"] if message is None else []),
    ]
    if problems or message is None:
        raise refusal(namespace, problems)
    given = [_part(each) for each in children(message, "part")]
    bound_style: Style = "rpc" if style == "rpc" else "document"
    return PartnerCall(
        key=text_in(element, "key"),
        activity=_activity_name(text_in(element, "activity") or operation),
        address=address,
        port_type=port_type,
        operation=operation,
        bound=SoapBinding(
            action=text_in(element, "action"), style=bound_style, namespace=text_in(element, "namespace")
        ),
        one_way=element.local == "post" or element.get("oneWay") in _TRUE,
        message={part.name: value for part, value in given},
        parts=tuple(part for part, _ in given),
        answer=tuple(_part_of(each, each.get("name") or "") for each in children(element, "answer")),
        faults={
            each.get("name") or "": _part_of(each, each.get("part") or FAILED) for each in children(element, "fault")
        },
    )


def _activity_name(text: str) -> str:
    return _UNSAFE_CHARS.sub("-", text)[:NAME_CHARS_MAX].strip("-") or "call"


def _part_of(element: Element, name: str) -> MessagePart:
    return MessagePart(name=name, element=element.get("element") or "", type=element.get("type") or "")


def _part(element: Element) -> tuple[MessagePart, Value]:
    name = element.get("name") or ""
    inner = next(element.elements(), None)
    if not name or inner is None:
        raise refusal(PROXY, [f"<part> {name!r:.80} has a name, and holds an element or a <value>"])
    if (inner.ns, inner.local) != (PROXY, "value"):
        return MessagePart(name=name, element=inner.name), element_value(write(inner))
    plain = not inner.attributes and all(isinstance(each, Text) for each in inner.children)
    return MessagePart(name=name, type="any"), inner.string() if plain else element_value(_without_namespace(inner))


def _without_namespace(element: Element) -> str:
    """A typed value, in an element without a namespace."""
    found = copy_element(element)
    found.ns = found.prefix = ""
    found.nsmap = {prefix: uri for prefix, uri in found.nsmap.items() if prefix}
    return write(found)


def flow_of(call: PartnerCall) -> Flow:
    """A flow of one invoke, with the message as its input and the answer as its output."""
    space = split_name(call.port_type)[0]
    asked, answered = qualified_name(space, "request"), qualified_name(space, "answer")
    faults = {name: qualified_name(space, f"fault-{name}") for name in call.faults}
    messages = {asked: call.parts, **({} if call.one_way else {answered: call.answer})}
    messages |= {faults[name]: (part,) for name, part in call.faults.items()}
    operation = Operation(name=call.operation, input=asked, output="" if call.one_way else answered, faults=faults)
    port = ServicePort(
        service=qualified_name(space, "partner"),
        name="partner",
        port_type=call.port_type,
        address=call.address,
        style=call.bound.style,
        operations={call.operation: call.bound},
    )
    world = XmlDefinitions(
        namespace=space,
        messages=messages,
        port_types={call.port_type: {call.operation: operation}},
        ports=(port,),
    )
    return Flow(
        name=FlowName(CALL_FLOW),
        description=f"calls {call.operation} of {call.port_type} at {call.address}",
        inputs={"message": Input(type="map", required=True)},
        body=_body(call, asked, answered),
        outputs={} if call.one_way else {"answer": "${{ answer }}"},
        xml=world,
    )


def _body(call: PartnerCall, asked: str, answered: str) -> Scope:
    def xml_message(variable: str) -> XmlMessage:
        return XmlMessage(partner_link=LINK, operation=call.operation, variable=variable)

    invoke = Invoke(
        name=call.activity,
        partner=LINK,
        operation=call.operation,
        sends=xml_message("request"),
        gets=None if call.one_way else xml_message("answer"),
    )
    return Scope(
        name="partner.called",
        body=invoke,
        variables={"request": "${{ inputs.message }}"},
        declared=ScopeDeclarations(
            types={"request": XmlType(message=asked), "answer": XmlType(message=answered)},
            partner_links={
                LINK: PartnerLink(type=qualified_name(split_name(call.port_type)[0], LINK), partner=call.port_type)
            },
        ),
    )


def declared_answer_of(flow: Flow) -> DeclaredAnswer:
    """What a flow that `flow_of` made knows of the answers to its call."""
    world = flow.xml
    assert world is not None, "a call is made in XML"
    [(port_type, operations)] = world.port_types.items()
    [operation] = operations.values()
    return DeclaredAnswer(
        port_type=port_type,
        answer=world.messages.get(operation.output, ()),
        faults={name: world.messages[message][0] for name, message in operation.faults.items()},
    )


def call_id_in(element: Element) -> str:
    return text_in(element, "callId")


def key_element(key: str) -> str:
    return write(new_element(PROXY, "openResponse", text_element(PROXY, "key", key)))


def progress_element(id: str, *, over: bool, ask_after_ms: int) -> str:
    """How far a call is. Whole seconds: not every engine reads fractions of them."""
    texts = {"callId": id, "over": "true" if over else "false", "askAfter": f"PT{ask_after_ms // 1000}S"}
    return write(new_element(PROXY, "progress", *(text_element(PROXY, *each) for each in texts.items())))


def answer_element(id: str, parts: tuple[MessagePart, ...], message: Value) -> str:
    """The partner's answer, as the answer of the proxy."""
    held = message if isinstance(message, dict) else {}
    elements = [_part_element(part, held[part.name]) for part in parts if part.name in held]
    inner = Element(PROXY, "message")
    for each in elements:
        inner.append(each)
    return write(new_element(PROXY, "callResponse", text_element(PROXY, "callId", id), inner))


def _part_element(part: MessagePart, value: Value) -> Element:
    """A part of a message as an element: a typed value is put into a <value>."""
    holder = Element(PROXY, "part")
    holder.set("", "name", part.name)
    text = element_text(value)
    if text is None:
        holder.append(text_element(PROXY, "value", text_of(value)))
        return holder
    inner = read(text)
    cut(inner)
    if not part.element:
        inner.ns, inner.local, inner.prefix = PROXY, "value", ""
    holder.append(inner)
    return holder


def failure(declared: DeclaredAnswer, fault: Fault) -> PortFault:
    """The fault of a call that failed: one that it declares, or the fault unchanged."""
    space, local = split_name(fault.name)
    part = declared.faults.get(local)
    data = fault.data if isinstance(fault.data, dict) else {}
    value = data.get("value")
    if (
        part is None
        or space != split_name(declared.port_type)[0]
        or not isinstance(value, dict)
        or part.name not in value
    ):
        return PortFault(fault.name, fault.message, partner=fault)
    elements = [
        text_element(PROXY, "name", fault.name),
        text_element(PROXY, "text", fault.message),
        _part_element(part, value[part.name]),
    ]
    return PortFault(qualified_name(PROXY, FAILED), fault.message, write(new_element(PROXY, FAILED, *elements)))
