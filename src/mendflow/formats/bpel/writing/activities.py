"""Writes activities, one function for each kind.

In BPEL, common attributes are inherited; in the model each activity has them. So they are written only where they
differ from those around."""

from collections.abc import Callable
from typing import Any, Final

from mendflow.core.model.flow import (
    ActivityNode,
    Assign,
    Choose,
    Compensate,
    Empty,
    Exit,
    ForEach,
    Invoke,
    OnAlarm,
    OnMessage,
    Parallel,
    Pick,
    Receive,
    Reply,
    Rethrow,
    Scope,
    Sequence,
    Throw,
    Until,
    Validate,
    Wait,
    While,
)
from mendflow.core.model.xml import XmlMessage
from mendflow.formats.bpel.writing import scopes
from mendflow.formats.bpel.writing.activity_writer import InheritedAttributes, ProcessWriter, written_name
from mendflow.formats.bpel.writing.tags import XmlTag, new_tag


def empty(_writer: ProcessWriter, _at: Empty, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:empty")


def exit_(_writer: ProcessWriter, _at: Exit, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:exit")


def rethrow(_writer: ProcessWriter, _at: Rethrow, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:rethrow")


def throw(writer: ProcessWriter, at: Throw, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:throw", {"faultName": writer.fault(at.fault), "faultVariable": at.variable})


def wait(writer: ProcessWriter, at: Wait, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:wait", {}, *writer.when(at.duration, at.until))


def assign(writer: ProcessWriter, at: Assign, _inherited: InheritedAttributes) -> XmlTag:
    validated = "yes" if at.validate else ""
    return new_tag("bpel:assign", {"validate": validated}, *(writer.parts.copy(copy) for copy in at.xml))


def validate(_writer: ProcessWriter, at: Validate, _inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:validate", {"variables": " ".join(at.variables)})


def compensate(_writer: ProcessWriter, at: Compensate, _inherited: InheritedAttributes) -> XmlTag:
    if at.scope is None:
        return new_tag("bpel:compensate")
    return new_tag("bpel:compensateScope", {"target": written_name(at.scope)})


def sequence(writer: ProcessWriter, at: Sequence, inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:sequence", {}, *(writer.activity(each, inherited) for each in at.body))


def flow(writer: ProcessWriter, at: Parallel, inherited: InheritedAttributes) -> XmlTag:
    links = [new_tag("bpel:link", {"name": written_name(name)}) for name in at.links]
    group = new_tag("bpel:links", {}, *links) if links else None
    return new_tag("bpel:flow", {}, group, *(writer.activity(each, inherited) for each in at.branches))


def if_(writer: ProcessWriter, at: Choose, inherited: InheritedAttributes) -> XmlTag:
    first, *others = at.branches
    otherwise = new_tag("bpel:else", {}, writer.activity(at.otherwise, inherited)) if at.otherwise is not None else None
    return new_tag(
        "bpel:if",
        {},
        writer.parts.expression("condition", first.when),
        writer.activity(first.body, inherited),
        *(
            new_tag(
                "bpel:elseif",
                {},
                writer.parts.expression("condition", each.when),
                writer.activity(each.body, inherited),
            )
            for each in others
        ),
        otherwise,
    )


def while_(writer: ProcessWriter, at: While, inherited: InheritedAttributes) -> XmlTag:
    condition = writer.parts.expression("condition", at.condition)
    return new_tag("bpel:while", {}, condition, writer.activity(at.body, inherited))


def repeat_until(writer: ProcessWriter, at: Until, inherited: InheritedAttributes) -> XmlTag:
    condition = writer.parts.expression("condition", at.condition)
    return new_tag("bpel:repeatUntil", {}, writer.activity(at.body, inherited), condition)


def for_each(writer: ProcessWriter, at: ForEach, inherited: InheritedAttributes) -> XmlTag:
    condition, wanted = None, at.min_ended if at.min_success is None else at.min_success
    if wanted is not None:
        successful = {"successfulBranchesOnly": "" if at.min_success is None else "yes"}
        branches = writer.parts.expression("branches", writer.number(wanted), successful)
        condition = new_tag("bpel:completionCondition", {}, branches)
    return new_tag(
        "bpel:forEach",
        {"counterName": at.variable, "parallel": "yes" if at.parallel else "no"},
        writer.parts.expression("startCounterValue", writer.number(at.first)),
        writer.parts.expression("finalCounterValue", writer.number(at.last)),
        condition,
        writer.activity(at.body, inherited),
    )


def receive(writer: ProcessWriter, at: Receive, _inherited: InheritedAttributes) -> XmlTag:
    xml = writer.message(at)
    creates = "yes" if xml.creates else ""
    return new_tag(
        "bpel:receive",
        {**inbound_attributes(xml, at.exchange), "createInstance": creates},
        *_message_parts(writer, xml),
    )


def reply(writer: ProcessWriter, at: Reply, _inherited: InheritedAttributes) -> XmlTag:
    xml = writer.message(at)
    return new_tag(
        "bpel:reply",
        {**inbound_attributes(xml, at.exchange), "faultName": writer.fault(at.fault)},
        writer.parts.correlations(xml.correlations),
        writer.parts.to_parts(xml),
    )


def invoke(writer: ProcessWriter, at: Invoke, _inherited: InheritedAttributes) -> XmlTag:
    sends, gets = at.sends, at.gets
    assert sends is not None, "what is no call of a partner link was refused before"
    correlations = list(sends.correlations)
    correlations += [each for each in (gets.correlations if gets is not None else ()) if each not in correlations]
    return new_tag(
        "bpel:invoke",
        {
            "partnerLink": sends.partner_link,
            "operation": sends.operation,
            "inputVariable": sends.variable,
            "outputVariable": gets.variable if gets is not None else "",
        },
        writer.parts.correlations(tuple(correlations)),
        writer.parts.to_parts(sends),
        writer.parts.from_parts(gets) if gets is not None else None,
    )


def pick(writer: ProcessWriter, at: Pick, inherited: InheritedAttributes) -> XmlTag:
    creates = any(each.xml is not None and each.xml.creates for each in at.messages)
    return new_tag(
        "bpel:pick",
        {"createInstance": "yes" if creates else ""},
        *(_on_message(writer, each, inherited) for each in at.messages),
        *(_on_alarm(writer, each, inherited) for each in at.alarms),
    )


def _on_message(writer: ProcessWriter, at: OnMessage, inherited: InheritedAttributes) -> XmlTag:
    xml = writer.message(at)
    body = writer.activity(at.body, inherited)
    return new_tag("bpel:onMessage", inbound_attributes(xml, at.exchange), *_message_parts(writer, xml), body)


def _on_alarm(writer: ProcessWriter, at: OnAlarm, inherited: InheritedAttributes) -> XmlTag:
    return new_tag("bpel:onAlarm", {}, *writer.when(at.duration, at.until), writer.activity(at.body, inherited))


def inbound_attributes(xml: XmlMessage, exchange: str) -> dict[str, str]:
    return {
        "partnerLink": xml.partner_link,
        "operation": xml.operation,
        "variable": xml.variable,
        "messageExchange": exchange,
    }


def _message_parts(writer: ProcessWriter, xml: XmlMessage) -> list[XmlTag | None]:
    return [writer.parts.correlations(xml.correlations), writer.parts.from_parts(xml)]


WRITERS: Final[dict[type[ActivityNode], Callable[[ProcessWriter, Any, InheritedAttributes], XmlTag]]] = {
    Empty: empty,
    Exit: exit_,
    Rethrow: rethrow,
    Throw: throw,
    Wait: wait,
    Assign: assign,
    Validate: validate,
    Compensate: compensate,
    Sequence: sequence,
    Parallel: flow,
    Choose: if_,
    While: while_,
    Until: repeat_until,
    ForEach: for_each,
    Receive: receive,
    Reply: reply,
    Invoke: invoke,
    Pick: pick,
    Scope: scopes.scope,
}
