"""Writes scopes and their handlers."""

import msgspec

from mendflow.core.model.flow import Catch, Invoke, OnAlarm, OnMessage, Scope
from mendflow.core.model.xml import ScopeDeclarations, XmlType
from mendflow.formats.bpel.writing.activity_writer import InheritedAttributes, ProcessWriter, written_name
from mendflow.formats.bpel.writing.tags import XmlTag, new_tag


def scope(writer: ProcessWriter, at: Scope, inherited: InheritedAttributes) -> XmlTag:
    """An invoke in a scope of its own name, with handlers and nothing else, is an invoke with handlers."""
    if _is_invoke_with_handlers(at) and at.exit_on_standard_fault == inherited.exit_on_standard_fault:
        return _invoke_with_handlers(writer, at, inherited)
    return _scope(writer, at, inherited, [])


def _scope(writer: ProcessWriter, at: Scope, inherited: InheritedAttributes, declared: list[XmlTag]) -> XmlTag:
    made = new_tag("bpel:scope", {"isolated": "yes" if at.isolated else ""})
    inside = exits(made, at, inherited)
    declared = declared or (writer.parts.declared(at.declared) if at.declared is not None else [])
    return made.put(
        *declared,
        _faults(writer, at, inside),
        new_tag("bpel:compensationHandler", {}, writer.activity(at.compensation, inside)) if at.compensation else None,
        new_tag("bpel:terminationHandler", {}, writer.activity(at.termination, inside)) if at.termination else None,
        _events(writer, at, inside),
        writer.activity(at.body, inside),
    )


def process(writer: ProcessWriter, at: Scope, inherited: InheritedAttributes, imports: list[XmlTag]) -> XmlTag:
    """The outermost scope."""
    made = new_tag("bpel:process", {"suppressJoinFailure": "yes" if at.suppress_join_failure else ""})
    inside = exits(made, at, inherited)
    declared = writer.parts.declared(at.declared) if at.declared is not None else []
    return made.put(
        *imports, *declared, _faults(writer, at, inside), _events(writer, at, inside), writer.activity(at.body, inside)
    )


def exits(made: XmlTag, at: Scope, inherited: InheritedAttributes) -> InheritedAttributes:
    """What holds inside a scope, with what has to be said for that."""
    if at.exit_on_standard_fault != inherited.exit_on_standard_fault:
        made.attributes["exitOnStandardFault"] = "yes" if at.exit_on_standard_fault else "no"
    return msgspec.structs.replace(inherited, exit_on_standard_fault=at.exit_on_standard_fault)


def _faults(writer: ProcessWriter, at: Scope, inside: InheritedAttributes) -> XmlTag | None:
    return new_tag("bpel:faultHandlers", {}, *_catches(writer, at, inside)) if at.catches else None


def _catches(writer: ProcessWriter, at: Scope, inside: InheritedAttributes) -> list[XmlTag]:
    return [_catch(writer, each, inside) for each in at.catches]


def _catch(writer: ProcessWriter, at: Catch, inside: InheritedAttributes) -> XmlTag:
    body = writer.activity(at.body, inside)
    if at.fault is None and at.holds is None:
        return new_tag("bpel:catchAll", {}, body)
    holds = at.holds or XmlType()
    attributes = {
        "faultName": writer.fault(at.fault or ""),
        "faultVariable": at.variable,
        "faultMessageType": writer.spaces.name(holds.message),
        "faultElement": writer.spaces.name(holds.element),
    }
    return new_tag("bpel:catch", attributes, body)


def _events(writer: ProcessWriter, at: Scope, inside: InheritedAttributes) -> XmlTag | None:
    handlers = [
        *(_on_event(writer, each, inside) for each in at.messages),
        *(_on_alarm(writer, each, inside) for each in at.alarms),
    ]
    return new_tag("bpel:eventHandlers", {}, *handlers) if handlers else None


def _on_event(writer: ProcessWriter, at: OnMessage, inherited: InheritedAttributes) -> XmlTag:
    """What its scope declares is held by the handler, with the variables that the handler implies."""
    xml, declared = writer.message(at), at.declared or ScopeDeclarations()
    implied = frozenset({xml.variable, *(each.variable for each in xml.parts)} - {""})
    body = at.body
    assert isinstance(body, Scope), "an event handler for a message has a scope"
    inside = msgspec.structs.replace(inherited, suppress_join_failure=body.suppress_join_failure)
    made = _scope(writer, body, inside, writer.parts.declared(declared, implied))
    attributes = {
        "partnerLink": xml.partner_link,
        "operation": xml.operation,
        "variable": xml.variable,
        "messageExchange": at.exchange,
        **(writer.parts.type(declared.types[xml.variable]) if xml.variable in declared.types else {}),
    }
    return new_tag(
        "bpel:onEvent",
        attributes,
        writer.parts.correlations(xml.correlations),
        writer.parts.from_parts(xml),
        writer.with_standard(made, body, inherited),
    )


def _on_alarm(writer: ProcessWriter, at: OnAlarm, inside: InheritedAttributes) -> XmlTag:
    every = writer.parts.expression("repeatEvery", writer.duration(at.every)) if at.every is not None else None
    return new_tag("bpel:onAlarm", {}, *writer.when(at.duration, at.until), every, writer.activity(at.body, inside))


def _is_invoke_with_handlers(at: Scope) -> bool:
    body = at.body
    return (
        isinstance(body, Invoke)
        and written_name(body.name) == written_name(at.name)
        and body.suppress_join_failure == at.suppress_join_failure
        and not (body.targets or body.sources)
        and bool(at.catches or at.compensation is not None)
        and not (at.declared or at.messages or at.alarms or at.termination or at.isolated)
    )


def _invoke_with_handlers(writer: ProcessWriter, at: Scope, inherited: InheritedAttributes) -> XmlTag:
    made = writer.activity(at.body, inherited)
    made.put(*_catches(writer, at, inherited))
    if at.compensation is not None:
        made.put(new_tag("bpel:compensationHandler", {}, writer.activity(at.compensation, inherited)))
    # Correlations, handlers and parts come in this order.
    order = ("correlations", "catch", "catchAll", "compensationHandler", "toParts", "fromParts")
    made.children.sort(key=lambda child: order.index(child.name.partition(":")[2]) if isinstance(child, XmlTag) else 0)
    return made
