"""Activities that exchange messages with partners: variables, correlations and channels."""

from typing import Final, cast, get_args

import msgspec

from mendflow.core.model.flow import Activity, Invoke, OnMessage, Receive, Reply
from mendflow.core.model.xml import (
    Correlation,
    Initiate,
    Operation,
    PartCopy,
    Pattern,
    ScopeDeclarations,
    XmlMessage,
    XmlType,
)
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.basic_activities import fault_name
from mendflow.formats.bpel.names import own_elements
from mendflow.formats.bpel.process_reader import ActivityReader, ProcessReader, ScopeContext
from mendflow.formats.bpel.reader import MANY

INITIATE: Final = get_args(Initiate)
PATTERNS: Final = get_args(Pattern)
PARTNER: Final = ("partnerLink", "portType", "operation")
INBOUND_ATTRIBUTES: Final = (*PARTNER, "variable", "messageExchange")
PARTS: Final = {"correlations": 1, "fromParts": 1}


def receive(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    process.parts_of(at, PARTS, (*INBOUND_ATTRIBUTES, "createInstance"))
    link, operation = process.offered(at, context)
    return Receive(
        name=process.names.of(at),
        channel=f"{link.channel}.{operation.name}",
        exchange=at.get("messageExchange", "").strip(),
        xml=incoming_message(process, at, operation, creates=process.truth(at, "createInstance")),
    )


def reply(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    process.parts_of(at, {"correlations": 1, "toParts": 1}, (*INBOUND_ATTRIBUTES, "faultName"))
    link, operation = process.offered(at, context)
    return Reply(
        name=process.names.of(at),
        channel=f"{link.channel}.{operation.name}",
        fault=fault_name(process, at),
        exchange=at.get("messageExchange", "").strip(),
        xml=outgoing_message(process, at, operation, "variable"),
    )


def invoke(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Invoke:
    """Its own handlers are read elsewhere: they make a scope around it."""
    operation = process.called(at, context)
    sends = outgoing_message(process, at, operation, "inputVariable", ("", "request", "request-response"))
    gets = None
    if operation.output:
        gets = XmlMessage(
            partner_link=sends.partner_link,
            operation=operation.name,
            variable=at.get("outputVariable", "").strip(),
            parts=_parts(process, at, "fromParts", "fromPart", "toVariable"),
            correlations=_correlations(process, at, ("response", "request-response")),
        )
    return Invoke(
        name=process.names.of(at), partner=sends.partner_link, operation=operation.name, sends=sends, gets=gets
    )


def on_message(
    process: ProcessReader, at: ParsedElement, context: ScopeContext, body: Activity, creates: bool = False
) -> OnMessage:
    """One of several messages that are waited for."""
    link, operation = process.offered(at, context)
    return OnMessage(
        channel=f"{link.channel}.{operation.name}",
        body=body,
        variable="",
        exchange=at.get("messageExchange", "").strip(),
        xml=incoming_message(process, at, operation, creates),
    )


def implied_variables(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> dict[str, XmlType]:
    """The variables that an event handler declares by naming them: of the type that it says, or of a part's."""
    operation = process.offered(at, context)[1]
    types = {part.name: part for part in process.definitions.messages.get(operation.input, ())}
    found = {}
    for copy in _parts(process, at, "fromParts", "fromPart", "toVariable"):
        part = types.get(copy.part)
        found[copy.variable] = XmlType(element=part.element, type=part.type) if part else XmlType()
    if variable := at.get("variable", "").strip():
        message, element = process.qname(at, "messageType"), process.qname(at, "element")
        found[variable] = XmlType(message=message or (operation.input if not element else ""), element=element)
    return found


def with_variables(declared: ScopeDeclarations, types: dict[str, XmlType]) -> ScopeDeclarations:
    return msgspec.structs.replace(declared, types={**types, **declared.types})


def incoming_message(
    process: ProcessReader, at: ParsedElement, operation: Operation, creates: bool = False
) -> XmlMessage:
    """How a message comes in."""
    return XmlMessage(
        partner_link=at.get("partnerLink", "").strip(),
        operation=operation.name,
        variable=at.get("variable", "").strip(),
        parts=_parts(process, at, "fromParts", "fromPart", "toVariable"),
        correlations=_correlations(process, at, PATTERNS),
        creates=creates,
    )


def outgoing_message(
    process: ProcessReader, at: ParsedElement, operation: Operation, variable: str, patterns: tuple[str, ...] = PATTERNS
) -> XmlMessage:
    """How a message goes out. Only correlations with one of these patterns are about it."""
    return XmlMessage(
        partner_link=at.get("partnerLink", "").strip(),
        operation=operation.name,
        variable=at.get(variable, "").strip(),
        parts=_parts(process, at, "toParts", "toPart", "fromVariable"),
        correlations=_correlations(process, at, patterns),
    )


def _parts(process: ProcessReader, at: ParsedElement, group: str, one: str, variable: str) -> tuple[PartCopy, ...]:
    return tuple(
        PartCopy(part=process.needed(each, "part"), variable=process.needed(each, variable))
        for parts in own_elements(at, group)
        for each in process.parts(parts, {one: MANY})[one]
    )


def _correlations(process: ProcessReader, at: ParsedElement, patterns: tuple[str, ...]) -> tuple[Correlation, ...]:
    found = []
    for group in own_elements(at, "correlations"):
        for each in process.parts(group, {"correlation": MANY})["correlation"]:
            process.only(each, ("set", "initiate", "pattern"))
            initiate, pattern = process.one_of(each, "initiate", INITIATE, "no"), pattern_of(process, each)
            if pattern in patterns:
                found.append(
                    Correlation(
                        set=process.needed(each, "set"),
                        initiate=cast(Initiate, initiate),
                        pattern=cast(Pattern, pattern),
                    )
                )
    return tuple(found)


def pattern_of(process: ProcessReader, at: ParsedElement) -> str:
    return process.one_of(at, "pattern", PATTERNS, "") if at.get("pattern") is not None else ""


READERS: Final[dict[str, ActivityReader]] = {"receive": receive, "reply": reply}
