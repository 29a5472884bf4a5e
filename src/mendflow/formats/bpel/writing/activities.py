"""Activities as BPEL writes them, a function for each kind.

What every activity may have is inherited in BPEL where it is not said, and said of each in the model. So it is written
only where it is another one than around it."""

from collections.abc import Callable
from typing import Any, Final

from mendflow.core.model.flow import (
    Assign,
    Choose,
    Compensate,
    Empty,
    Exit,
    ForEach,
    Invoke,
    Node,
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
from mendflow.formats.bpel.writing.around import Around, Writer, written_name
from mendflow.formats.bpel.writing.tags import Tag, tag


def empty(_writer: Writer, _at: Empty, _around: Around) -> Tag:
    return tag("bpel:empty")


def exit_(_writer: Writer, _at: Exit, _around: Around) -> Tag:
    return tag("bpel:exit")


def rethrow(_writer: Writer, _at: Rethrow, _around: Around) -> Tag:
    return tag("bpel:rethrow")


def throw(writer: Writer, at: Throw, _around: Around) -> Tag:
    return tag("bpel:throw", {"faultName": writer.fault(at.fault), "faultVariable": at.variable})


def wait(writer: Writer, at: Wait, _around: Around) -> Tag:
    return tag("bpel:wait", {}, *writer.when(at.duration, at.until))


def assign(writer: Writer, at: Assign, _around: Around) -> Tag:
    validated = "yes" if at.validate else ""
    return tag("bpel:assign", {"validate": validated}, *(writer.parts.copy(copy) for copy in at.xml))


def validate(_writer: Writer, at: Validate, _around: Around) -> Tag:
    return tag("bpel:validate", {"variables": " ".join(at.variables)})


def compensate(_writer: Writer, at: Compensate, _around: Around) -> Tag:
    if at.scope is None:
        return tag("bpel:compensate")
    return tag("bpel:compensateScope", {"target": written_name(at.scope)})


def sequence(writer: Writer, at: Sequence, around: Around) -> Tag:
    return tag("bpel:sequence", {}, *(writer.activity(each, around) for each in at.body))


def flow(writer: Writer, at: Parallel, around: Around) -> Tag:
    links = [tag("bpel:link", {"name": written_name(name)}) for name in at.links]
    group = tag("bpel:links", {}, *links) if links else None
    return tag("bpel:flow", {}, group, *(writer.activity(each, around) for each in at.branches))


def if_(writer: Writer, at: Choose, around: Around) -> Tag:
    first, *others = at.branches
    otherwise = tag("bpel:else", {}, writer.activity(at.otherwise, around)) if at.otherwise is not None else None
    return tag(
        "bpel:if",
        {},
        writer.parts.expression("condition", first.when),
        writer.activity(first.body, around),
        *(
            tag(
                "bpel:elseif",
                {},
                writer.parts.expression("condition", each.when),
                writer.activity(each.body, around),
            )
            for each in others
        ),
        otherwise,
    )


def while_(writer: Writer, at: While, around: Around) -> Tag:
    condition = writer.parts.expression("condition", at.condition)
    return tag("bpel:while", {}, condition, writer.activity(at.body, around))


def repeat_until(writer: Writer, at: Until, around: Around) -> Tag:
    condition = writer.parts.expression("condition", at.condition)
    return tag("bpel:repeatUntil", {}, writer.activity(at.body, around), condition)


def for_each(writer: Writer, at: ForEach, around: Around) -> Tag:
    condition, wanted = None, at.min_ended if at.min_success is None else at.min_success
    if wanted is not None:
        successful = {"successfulBranchesOnly": "" if at.min_success is None else "yes"}
        branches = writer.parts.expression("branches", writer.number(wanted), successful)
        condition = tag("bpel:completionCondition", {}, branches)
    return tag(
        "bpel:forEach",
        {"counterName": at.variable, "parallel": "yes" if at.parallel else "no"},
        writer.parts.expression("startCounterValue", writer.number(at.first)),
        writer.parts.expression("finalCounterValue", writer.number(at.last)),
        condition,
        writer.activity(at.body, around),
    )


def receive(writer: Writer, at: Receive, _around: Around) -> Tag:
    xml = writer.message(at)
    creates = "yes" if xml.creates else ""
    return tag("bpel:receive", {**taken(xml, at.exchange), "createInstance": creates}, *_inside(writer, xml))


def reply(writer: Writer, at: Reply, _around: Around) -> Tag:
    xml = writer.message(at)
    return tag(
        "bpel:reply",
        {**taken(xml, at.exchange), "faultName": writer.fault(at.fault)},
        writer.parts.correlations(xml.correlations),
        writer.parts.to_parts(xml),
    )


def invoke(writer: Writer, at: Invoke, _around: Around) -> Tag:
    sends, gets = at.sends, at.gets
    assert sends is not None, "what is no call of a partner link was refused before"
    said = list(sends.correlations)
    said += [each for each in (gets.correlations if gets is not None else ()) if each not in said]
    return tag(
        "bpel:invoke",
        {
            "partnerLink": sends.partner_link,
            "operation": sends.operation,
            "inputVariable": sends.variable,
            "outputVariable": gets.variable if gets is not None else "",
        },
        writer.parts.correlations(tuple(said)),
        writer.parts.to_parts(sends),
        writer.parts.from_parts(gets) if gets is not None else None,
    )


def pick(writer: Writer, at: Pick, around: Around) -> Tag:
    creates = any(each.xml is not None and each.xml.creates for each in at.messages)
    return tag(
        "bpel:pick",
        {"createInstance": "yes" if creates else ""},
        *(_on_message(writer, each, around) for each in at.messages),
        *(_on_alarm(writer, each, around) for each in at.alarms),
    )


def _on_message(writer: Writer, at: OnMessage, around: Around) -> Tag:
    xml = writer.message(at)
    body = writer.activity(at.body, around)
    return tag("bpel:onMessage", taken(xml, at.exchange), *_inside(writer, xml), body)


def _on_alarm(writer: Writer, at: OnAlarm, around: Around) -> Tag:
    return tag("bpel:onAlarm", {}, *writer.when(at.duration, at.until), writer.activity(at.body, around))


def taken(xml: XmlMessage, exchange: str) -> dict[str, str]:
    return {
        "partnerLink": xml.partner_link,
        "operation": xml.operation,
        "variable": xml.variable,
        "messageExchange": exchange,
    }


def _inside(writer: Writer, xml: XmlMessage) -> list[Tag | None]:
    return [writer.parts.correlations(xml.correlations), writer.parts.from_parts(xml)]


WRITERS: Final[dict[type[Node], Callable[[Writer, Any, Around], Tag]]] = {
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
