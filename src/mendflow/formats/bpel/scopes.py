"""Scopes and their handlers. A process is a scope, and an invoke with handlers means one."""

from typing import Final

import msgspec

from mendflow.core.model.flow import Activity, Catch, OnAlarm, OnMessage, Scope, Sequence
from mendflow.core.model.xml import ScopeDeclarations, XmlType
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel import message_activities
from mendflow.formats.bpel.basic_activities import alarm_times, fault_name
from mendflow.formats.bpel.declarations import DECLARING, declared_in, visible_links
from mendflow.formats.bpel.expressions import expression_of
from mendflow.formats.bpel.names import ACTIVITIES, local_name, needs_scope, own_elements, written_name
from mendflow.formats.bpel.process_reader import ActivityReader, ProcessReader, ScopeContext
from mendflow.formats.bpel.reader import MANY

HANDLERS: Final = {"faultHandlers": 1, "eventHandlers": 1}
UNDO_HANDLERS: Final = {"compensationHandler": 1, "terminationHandler": 1}
FAULTS: Final = {"catch": MANY, "catchAll": 1}
CATCHING: Final = ("faultName", "faultVariable", "faultMessageType", "faultElement")
ONE_ACTIVITY: Final = dict.fromkeys(ACTIVITIES, MANY)
"""How many there are is told where the body is read."""


def scope(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    return scope_with(process, at, context, declared_in(process, at))


def bare_scope(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    """The scope of an event handler, which declares everything for it."""
    return scope_with(process, at, context, ScopeDeclarations())


def scope_with(process: ProcessReader, at: ParsedElement, context: ScopeContext, declared: ScopeDeclarations) -> Scope:
    process.parts_of(at, DECLARING | HANDLERS | UNDO_HANDLERS | ONE_ACTIVITY, ("isolated", "exitOnStandardFault"))
    name = process.names.of(at)
    context.inner[written_name(at)] = name
    inside = inner_context(process, at, context, declared)
    found = scope_of(process, at, inside, declared, name)
    handling = inside.but(compensable=inside.inner, inner={})
    undoing = [process.body(each, handling) for each in own_elements(at, "compensationHandler")]
    ending = [process.body(each, handling) for each in own_elements(at, "terminationHandler")]
    return msgspec.structs.replace(
        found,
        isolated=process.truth(at, "isolated"),
        compensation=undoing[0] if undoing else None,
        termination=ending[0] if ending else None,
    )


def inner_context(
    process: ProcessReader, at: ParsedElement, context: ScopeContext, declared: ScopeDeclarations
) -> ScopeContext:
    """What is seen inside a scope."""
    exits = process.truth(at, "exitOnStandardFault", context.exit_on_standard_fault)
    return context.but(
        exit_on_standard_fault=exits, links={**context.links, **visible_links(process, declared)}, inner={}
    )


def scope_of(
    process: ProcessReader, at: ParsedElement, inside: ScopeContext, declared: ScopeDeclarations, name: str
) -> Scope:
    """What a process and a scope have in common. Its body comes first: handlers may name the scopes in it."""
    body = process.body(at, inside)
    messages, alarms = _events(process, at, inside)
    handling = inside.but(compensable=inside.inner, inner={})
    groups = [group for group in own_elements(at, "faultHandlers") if process.parts(group, FAULTS)]
    return Scope(
        name=name,
        body=body,
        catches=tuple(catch for group in groups for catch in catches_of(process, group, handling)),
        messages=messages,
        alarms=alarms,
        exit_on_standard_fault=inside.exit_on_standard_fault,
        declared=declared if declared != ScopeDeclarations() else None,
    )


def catches_of(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> list[Catch]:
    """The fault handlers in an element, that for all faults last."""
    parts = {"catch": list(own_elements(at, "catch")), "catchAll": list(own_elements(at, "catchAll"))}
    found = []
    for each in parts["catch"]:
        process.only(each, CATCHING)
        holds = XmlType(message=process.qname(each, "faultMessageType"), element=process.qname(each, "faultElement"))
        found.append(
            Catch(
                body=process.body(each, context),
                fault=fault_name(process, each) or None,
                variable=each.get("faultVariable", "").strip(),
                holds=holds if holds != XmlType() else None,
            )
        )
    return found + [Catch(body=process.body(each, context), variable="") for each in parts["catchAll"]]


def invoke(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> Activity:
    """An invoke; with handlers of its own it stands in a scope that has them."""
    known = {"correlations": 1, "toParts": 1, "fromParts": 1, "compensationHandler": 1} | FAULTS
    process.parts_of(at, known, (*message_activities.PARTNER, "inputVariable", "outputVariable"))
    call = message_activities.invoke(process, at, context)
    if not needs_scope(at):
        return call
    name = process.names.of_scope_for(at)
    context.inner[written_name(at)] = name
    inside = context.but(compensable={}, inner={})
    undoing = [process.body(each, inside) for each in own_elements(at, "compensationHandler")]
    return Scope(
        name=name,
        body=msgspec.structs.replace(call, suppress_join_failure=context.suppress_join_failure),
        catches=tuple(catches_of(process, at, inside)),
        compensation=undoing[0] if undoing else None,
        exit_on_standard_fault=context.exit_on_standard_fault,
    )


def _events(
    process: ProcessReader, at: ParsedElement, context: ScopeContext
) -> tuple[tuple[OnMessage, ...], tuple[OnAlarm, ...]]:
    messages, alarms = [], []
    for group in own_elements(at, "eventHandlers"):
        parts = process.parts(group, {"onEvent": MANY, "onAlarm": MANY})
        messages += [_on_event(process, each, context) for each in parts["onEvent"]]
        alarms += [on_alarm(process, each, context, repeats=True) for each in parts["onAlarm"]]
    return tuple(messages), tuple(alarms)


def _on_event(process: ProcessReader, at: ParsedElement, context: ScopeContext) -> OnMessage:
    """An event handler for a message. Its scope is there before the message is taken: what the scope declares, the
    handler itself may use, so the handler declares it."""
    process.only(at, (*message_activities.INBOUND_ATTRIBUTES, "messageType", "element"))
    process.parts(at, message_activities.PARTS | ONE_ACTIVITY)
    inside = list(own_elements(at, *ACTIVITIES))
    if len(inside) != 1 or local_name(inside[0]) != "scope":
        process.problem(at, "an <onEvent> holds one <scope>: put what it does into one")
        return OnMessage(channel="", body=Sequence(name=process.names.claim("sequence"), body=()))
    declared = declared_in(process, inside[0])
    inner = context.but(links={**context.links, **visible_links(process, declared)})
    types = message_activities.implied_variables(process, at, inner)
    heard = message_activities.on_message(process, at, inner, process.activity(inside[0], inner, bare_scope))
    return msgspec.structs.replace(heard, declared=message_activities.with_variables(declared, types))


def on_alarm(process: ProcessReader, at: ParsedElement, context: ScopeContext, repeats: bool = False) -> OnAlarm:
    every = {"repeatEvery": 1} if repeats else {}
    process.only(at, ())
    parts = process.parts(at, {"for": 1, "until": 1} | every | ONE_ACTIVITY)
    duration, until = alarm_times(process, at, parts)
    again = parts.get("repeatEvery", [])
    return OnAlarm(
        body=process.body(at, context),
        duration=duration,
        until=until,
        every=expression_of(process, again[0], process.languages) if again else None,
    )


READERS: Final[dict[str, ActivityReader]] = {"scope": scope, "invoke": invoke}
