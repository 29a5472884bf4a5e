"""Rules about activities that exchange messages with partners: their operations and variables."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import (
    MESSAGING,
    ProcessView,
    correlations,
    part_copies,
    word,
)
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import local_name, own_elements

INCOMING_VARIABLES: Final = {
    "receive": "variable",
    "onMessage": "variable",
    "onEvent": "variable",
    "invoke": "outputVariable",
}
OUTGOING_VARIABLES: Final = {"reply": "variable", "invoke": "inputVariable"}


@rule(5)
def port_types_agree(view: ProcessView) -> Iterator[Violation]:
    """A port type that is named is that of the partner link."""
    for at in view.all(*MESSAGING):
        named, meant = view.qname(at, "portType"), view.port_type(at)
        if named and meant and named != meant:
            yield Violation(
                at, f"the partner link {word(at, 'partnerLink')} has the port type {meant} here, not {named}"
            )


@rule(46)
def patterns_fit_the_operation(view: ProcessView) -> Iterator[Violation]:
    """Correlations of an invoke say which message they are about if it has an answer, and only then."""
    for at in view.all("invoke"):
        operation = view.operation(at)
        if operation is None:
            continue
        for each in correlations(at):
            if operation.output and each.get("pattern") is None:
                yield Violation(each, "this operation is answered: pattern has to say request, response, or both")
            elif not operation.output and each.get("pattern") is not None:
                yield Violation(each, "this operation is not answered, so there is no pattern to choose; take it out")


@rule(47)
def messages_have_variables(view: ProcessView) -> Iterator[Violation]:
    """What comes in goes somewhere, and what goes out comes from somewhere, unless the message has no parts."""
    for at in view.all(*MESSAGING):
        for message, variable, group in _message_directions(view, at):
            if message is None:
                if (
                    local_name(at) == "invoke"
                    and view.operation(at) is not None
                    and _has_variable_or_parts(at, variable, group)
                ):
                    yield Violation(at, f"the operation is not answered, so {variable} and <{group}> make no sense")
                continue
            parts = view.definitions.messages.get(message)
            if parts and not _has_variable_or_parts(at, variable, group):
                yield Violation(at, f"a message {message} has parts: name a {variable}, or give <{group}>")
            elif parts == () and next(own_elements(at, group), None) is not None:
                yield Violation(at, f"a message {message} has no parts, so there is nothing for <{group}>")


@rule(48)
def invoked_variables_fit(view: ProcessView) -> Iterator[Violation]:
    """The variables of an invoke hold the messages of its operation, or the element of a message's only part."""
    for at in view.all("invoke"):
        yield from _type_mismatches(view, at, "inputVariable", view.outgoing(at))
        yield from _type_mismatches(view, at, "outputVariable", view.incoming(at))


@rule(50)
def all_parts_are_given(view: ProcessView) -> Iterator[Violation]:
    """<toParts> gives every part of the message."""
    for at in view.all("invoke", "reply"):
        given = {word(each, "part") for each in part_copies(at, "toParts", "toPart")}
        parts = view.definitions.messages.get(view.outgoing(at) or "", ())
        missing = [part.name for part in parts if part.name not in given]
        if given and missing:
            yield Violation(at, f"<toParts> leaves out {', '.join(missing)}; every part of the message is needed")


@rule(51)
def inputs_come_from_one_place(view: ProcessView) -> Iterator[Violation]:
    """An invoke has an inputVariable or <toParts>."""
    yield from _double_sources(view, "invoke", "inputVariable", "toParts")


@rule(52)
def outputs_go_to_one_place(view: ProcessView) -> Iterator[Violation]:
    """An invoke has an outputVariable or <fromParts>."""
    yield from _double_sources(view, "invoke", "outputVariable", "fromParts")


@rule(53)
def parts_that_are_taken_exist(view: ProcessView) -> Iterator[Violation]:
    """<fromPart> names a part of the message."""
    for at in view.all(*INCOMING_VARIABLES):
        yield from _unknown_parts(view, part_copies(at, "fromParts", "fromPart"), view.incoming(at))


@rule(54)
def parts_that_are_given_exist(view: ProcessView) -> Iterator[Violation]:
    """<toPart> names a part of the message."""
    for at in view.all(*OUTGOING_VARIABLES):
        yield from _unknown_parts(view, part_copies(at, "toParts", "toPart"), view.outgoing(at))


@rule(55)
def received_goes_to_one_place(view: ProcessView) -> Iterator[Violation]:
    """A receive has a variable or <fromParts>."""
    yield from _double_sources(view, "receive", "variable", "fromParts")


@rule(58)
def variables_of_messages_fit(view: ProcessView) -> Iterator[Violation]:
    """The variable of a receive, an onMessage or a reply holds its message, or the element of a message's only part."""
    for at in view.all("receive", "onMessage", "reply"):
        message = view.outgoing(at) if local_name(at) == "reply" else view.incoming(at)
        yield from _type_mismatches(view, at, "variable", message)


@rule(59)
def replied_comes_from_one_place(view: ProcessView) -> Iterator[Violation]:
    """A reply has a variable or <toParts>."""
    yield from _double_sources(view, "reply", "variable", "toParts")


@rule(61)
def exchanges_are_declared(view: ProcessView) -> Iterator[Violation]:
    """An exchange that is named is declared around."""
    for at in view.all("receive", "onMessage", "reply"):
        if (name := word(at, "messageExchange")) and view.exchange(at, name) is None:
            yield Violation(at, f"no scope around declares the messageExchange {name}")


@rule(63)
def picked_goes_to_one_place(view: ProcessView) -> Iterator[Violation]:
    """An onMessage has a variable or <fromParts>."""
    yield from _double_sources(view, "onMessage", "variable", "fromParts")


@rule(84)
def links_of_event_handlers_are_declared(view: ProcessView) -> Iterator[Violation]:
    """The partner link of an onEvent is declared in its scope, or around, with a role of the process."""
    for at in view.all("onEvent"):
        if name := word(at, "partnerLink"):
            yield from _undeclared_links(view, at, name)


@rule(0)
def links_are_declared(view: ProcessView) -> Iterator[Violation]:
    """The partner link of an activity is declared around, with the role that the activity needs."""
    for at in view.all("receive", "onMessage", "reply", "invoke"):
        if name := word(at, "partnerLink"):
            yield from _undeclared_links(view, at, name)


@rule(85)
def events_go_to_one_place(view: ProcessView) -> Iterator[Violation]:
    """An onEvent has <fromParts>, or a variable with its type."""
    for at in view.all("onEvent"):
        given = [name for name in ("variable", "messageType", "element") if at.get(name) is not None]
        if given and next(own_elements(at, "fromParts"), None) is not None:
            yield Violation(at, f"an onEvent with <fromParts> has no {given[0]}; choose one of both")


@rule(87)
def types_of_events_fit(view: ProcessView) -> Iterator[Violation]:
    """The type of an onEvent's variable is that of the message, or the element of its only part."""
    for at in view.all("onEvent"):
        type = XmlType(message=view.qname(at, "messageType"), element=view.qname(at, "element"))
        message = view.incoming(at)
        if message is not None and type != XmlType() and not _fits(view, type, message):
            yield Violation(at, f"the message is {message}; that is not what the type of the variable says")


@rule(88)
def sets_of_event_handlers_are_declared(view: ProcessView) -> Iterator[Violation]:
    """A correlation set of an onEvent is declared in its scope, or around."""
    for at in view.all("onEvent"):
        yield from _unknown_sets(view, at)


@rule(0)
def sets_are_declared(view: ProcessView) -> Iterator[Violation]:
    """A correlation set that is named is declared around."""
    for at in view.all("receive", "onMessage", "reply", "invoke"):
        yield from _unknown_sets(view, at)


@rule(89)
def exchanges_of_event_handlers_are_declared(view: ProcessView) -> Iterator[Violation]:
    """An exchange of an onEvent is declared in its scope, or around."""
    for at in view.all("onEvent"):
        if (name := word(at, "messageExchange")) and view.exchange(at, name) is None:
            yield Violation(at, f"neither the scope of this onEvent nor one around declares the messageExchange {name}")


@rule(90)
def variables_of_events_have_a_type(view: ProcessView) -> Iterator[Violation]:
    """An onEvent with a variable says its message type or its element, and not both."""
    for at in view.all("onEvent"):
        given = [name for name in ("messageType", "element") if at.get(name) is not None]
        if word(at, "variable") and len(given) != 1:
            yield Violation(
                at, "an onEvent declares its variable: say a messageType or an element for it, and not both"
            )


@rule(0)
def variables_are_declared(view: ProcessView) -> Iterator[Violation]:
    """A variable that is named is declared around."""
    for at, attribute in _variable_uses(view):
        for name in word(at, attribute).split():
            if view.variable(at, name) is None:
                yield Violation(at, f"no variable {name} is declared around here")


def _variable_uses(view: ProcessView) -> Iterator[tuple[ParsedElement, str]]:
    """Where variables are named that must be there."""
    for at in view.all("receive", "onMessage", "reply", "from", "to"):
        yield at, "variable"
    for at in view.all("invoke"):
        yield from ((at, "inputVariable"), (at, "outputVariable"))
        yield from ((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))
    for at in view.all("receive", "onMessage"):
        yield from ((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))
    for at in view.all("toPart"):
        yield at, "fromVariable"
    for at in view.all("throw"):
        yield at, "faultVariable"
    for at in view.all("validate"):
        yield at, "variables"


def _message_directions(view: ProcessView, at: ParsedElement) -> Iterator[tuple[str | None, str, str]]:
    """The messages that an activity takes and sends, with where each may go to or come from."""
    if local_name(at) in INCOMING_VARIABLES:
        yield view.incoming(at), INCOMING_VARIABLES[local_name(at)], "fromParts"
    if local_name(at) in OUTGOING_VARIABLES:
        yield view.outgoing(at), OUTGOING_VARIABLES[local_name(at)], "toParts"


def _has_variable_or_parts(at: ParsedElement, variable: str, group: str) -> bool:
    return at.get(variable) is not None or next(own_elements(at, group), None) is not None


def _double_sources(view: ProcessView, element: str, variable: str, group: str) -> Iterator[Violation]:
    for at in view.all(element):
        if at.get(variable) is not None and next(own_elements(at, group), None) is not None:
            yield Violation(at, f"<{element}> has a {variable} and <{group}>; choose one of both")


def _unknown_parts(view: ProcessView, copies: list[ParsedElement], message: str | None) -> Iterator[Violation]:
    if message not in view.definitions.messages:
        return
    parts = {part.name for part in view.definitions.messages[message]}
    for each in copies:
        if word(each, "part") not in parts:
            yield Violation(each, f"a message {message} has no part {word(each, 'part')}")


def _type_mismatches(view: ProcessView, at: ParsedElement, attribute: str, message: str | None) -> Iterator[Violation]:
    variable = view.variable(at, word(at, attribute)) if word(at, attribute) else None
    if variable is None or message is None or message not in view.definitions.messages:
        return
    if variable.type != XmlType() and not _fits(view, variable.type, message):
        held = variable.type.message or variable.type.element or variable.type.type
        yield Violation(at, f"the message is {message}, and {variable.name} holds {held}")


def _fits(view: ProcessView, type: XmlType, message: str) -> bool:
    parts = view.definitions.messages.get(message, ())
    return type.message == message or (len(parts) == 1 and type.element != "" and type.element == parts[0].element)


def _undeclared_links(view: ProcessView, at: ParsedElement, name: str) -> Iterator[Violation]:
    link = view.link(at, name)
    role = "partnerRole" if local_name(at) == "invoke" else "myRole"
    if link is None:
        yield Violation(at, f"no partner link {name} is declared around here")
    elif not word(link, role):
        yield Violation(at, f"the partner link {name} has no {role}, so <{local_name(at)}> means nothing on it")


def _unknown_sets(view: ProcessView, at: ParsedElement) -> Iterator[Violation]:
    for each in correlations(at):
        if (name := word(each, "set")) and view.correlation_set(at, name) is None:
            yield Violation(each, f"no correlation set {name} is declared around here")
