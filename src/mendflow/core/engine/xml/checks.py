"""Validates an activity's XML: names that must be declared around it, literals that must parse.

Authors of BPEL have seen these errors before, with the line; this is for flows from other sources, so that the engine
finds everything it needs. XPath is not checked here: its errors are faults at evaluation."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.model.flow import Assign, Catch, Flow, Invoke, OnMessage, Receive, Reply, Scope, Throw, Validate
from mendflow.core.model.xml import (
    Operation,
    ScopeDeclarations,
    XmlCopy,
    XmlDefinitions,
    XmlMessage,
    XmlType,
    element_text,
)
from mendflow.core.xml.parser import BadXml
from mendflow.core.xml.reader import read_shared


class XmlScope(msgspec.Struct, frozen=True):
    """The declarations around an activity, from the inside outwards."""

    world: XmlDefinitions
    types: Sequence[dict[str, XmlType]]
    declared: Sequence[ScopeDeclarations]

    def variable(self, name: str) -> bool:
        return any(name in each for each in self.types)

    def operation(self, how: XmlMessage, *, mine: bool) -> Operation | None:
        """The operation that a message belongs to: one that the flow offers, or one that it calls."""
        for each in self.declared:
            if (link := each.partner_links.get(how.partner_link)) is not None:
                port_type = link.mine if mine else link.partner
                return self.world.port_types.get(port_type, {}).get(how.operation)
        return None


def speaks_xml(activity: Any) -> bool:
    """Whether it requires a flow with WSDL files."""
    match activity:
        case Assign(xml=copies, validate=validates):
            return bool(copies) or validates
        case Validate():
            return True
        case Throw(variable=variable):
            return bool(variable)
        case Scope(declared=given) | Catch(holds=given) | Invoke(sends=given):
            return given is not None
        case Receive(xml=given) | Reply(xml=given) | OnMessage(xml=given):
            return given is not None
    return False


def undeclared_names(activity: Any, scope: XmlScope) -> Iterator[str]:
    """Undeclared names in an activity or a handler."""
    match activity:
        case Assign(xml=copies):
            yield from _copy_problems(copies, scope)
        case Validate(variables=names):
            yield from _variable_problems(names, scope)
        case Throw(variable=name):
            yield from _variable_problems((name,), scope)
        case Scope(declared=ScopeDeclarations(first=first)):
            yield from _copy_problems(first, scope)
        case OnMessage(declared=ScopeDeclarations(first=first)):
            yield from _copy_problems(first, scope)
    if isinstance(activity, (Receive, Reply, OnMessage)) and activity.xml is None:
        yield "all messages of a flow with XML are said in XML: give it the partner link and the operation"
    for how, mine in messages_of(activity):
        if scope.operation(how, mine=mine) is None:
            yield f"no partner link {how.partner_link:.80} with an operation {how.operation:.80} is declared around it"
        yield from _variable_problems((how.variable, *(each.variable for each in how.parts)), scope)
        sets = (each.set for each in how.correlations)
        known = {name for each in scope.declared for name in each.correlation_sets}
        yield from (f"no correlation set {name:.80} is declared around it" for name in sets if name not in known)


def misplaced_values(flow: Flow, declared: ScopeDeclarations) -> Iterator[str]:
    """Initial values that the process has no variable for."""
    assert flow.xml is not None, "only flows with XML have a process"
    for name, value in flow.variables.items():
        if name in declared.types:
            reason = flaw(flow.xml, declared.types[name], value)
        elif name.startswith("@") and name[1:] in declared.partner_links:
            shaped = isinstance(value, dict) and value.keys() == {"mine", "partner"}
            whole = shaped and all(each is None or element_text(each) is not None for each in value.values())
            reason = "" if whole else "it must say where the flow and its partner are"
        elif name.startswith("#") and name[1:] in declared.correlation_sets:
            reason = "" if isinstance(value, list) else "it must be the values of its properties"
        else:
            reason = "the process declares nothing of that name"
        if reason:
            yield f"the value of {name:.80} cannot be taken: {reason}"


def messages_of(activity: Any) -> Iterator[tuple[XmlMessage, bool]]:
    """The messages that an activity takes or makes, and whether the flow offers the operation."""
    match activity:
        case Receive(xml=how) | Reply(xml=how) | OnMessage(xml=how) if how is not None:
            yield how, True
        case Invoke(sends=sends, gets=gets):
            yield from ((how, False) for how in (sends, gets) if how is not None)


def _copy_problems(copies: Sequence[XmlCopy], scope: XmlScope) -> Iterator[str]:
    for copy in copies:
        source, target = copy.source, copy.target
        yield from _variable_problems((source.variable, target.variable), scope)
        for name in filter(None, (source.partner_link, target.partner_link)):
            if not any(name in each.partner_links for each in scope.declared):
                yield f"no partner link {name:.80} is declared around it"
        if source.literal is not None:
            try:
                read_shared(source.literal)
            except BadXml as refusal:
                yield f"a literal in it cannot be read: {refusal.message}"


def _variable_problems(names: Sequence[str], scope: XmlScope) -> Iterator[str]:
    return (f"no variable {name:.80} is declared around it" for name in names if name and not scope.variable(name))
