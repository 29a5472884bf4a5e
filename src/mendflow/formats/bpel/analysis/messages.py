"""Rules about activities that speak to partners: which operation they mean, and what their variables hold."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import Node
from mendflow.formats.bpel.analysis.rules import Finding, rule
from mendflow.formats.bpel.analysis.sight import (
    MESSAGING,
    Sight,
    correlations,
    part_copies,
    word,
)
from mendflow.formats.bpel.names import local, own

TAKING: Final = {"receive": "variable", "onMessage": "variable", "onEvent": "variable", "invoke": "outputVariable"}
SENDING: Final = {"reply": "variable", "invoke": "inputVariable"}


@rule(5)
def port_types_agree(sight: Sight) -> Iterator[Finding]:
    """A port type that is named is that of the partner link."""
    for at in sight.all(*MESSAGING):
        said, meant = sight.qname(at, "portType"), sight.port_type(at)
        if said and meant and said != meant:
            yield Finding(at, f"the partner link {word(at, 'partnerLink')} has the port type {meant} here, not {said}")


@rule(46)
def patterns_fit_the_operation(sight: Sight) -> Iterator[Finding]:
    """Correlations of an invoke say which message they are about if it has an answer, and only then."""
    for at in sight.all("invoke"):
        operation = sight.operation(at)
        if operation is None:
            continue
        for each in correlations(at):
            if operation.output and each.get("pattern") is None:
                yield Finding(each, "this operation is answered: pattern has to say request, response, or both")
            elif not operation.output and each.get("pattern") is not None:
                yield Finding(each, "this operation is not answered, so there is no pattern to choose; take it out")


@rule(47)
def messages_have_variables(sight: Sight) -> Iterator[Finding]:
    """What comes in goes somewhere, and what goes out comes from somewhere, unless the message has no parts."""
    for at in sight.all(*MESSAGING):
        for message, variable, group in _ways(sight, at):
            if message is None:
                if local(at) == "invoke" and sight.operation(at) is not None and _says(at, variable, group):
                    yield Finding(at, f"the operation is not answered, so {variable} and <{group}> make no sense")
                continue
            parts = sight.definitions.messages.get(message)
            if parts and not _says(at, variable, group):
                yield Finding(at, f"a message {message} has parts: name a {variable}, or give <{group}>")
            elif parts == () and next(own(at, group), None) is not None:
                yield Finding(at, f"a message {message} has no parts, so there is nothing for <{group}>")


@rule(48)
def invoked_variables_fit(sight: Sight) -> Iterator[Finding]:
    """The variables of an invoke hold the messages of its operation, or the element of a message's only part."""
    for at in sight.all("invoke"):
        yield from _unfit(sight, at, "inputVariable", sight.outgoing(at))
        yield from _unfit(sight, at, "outputVariable", sight.incoming(at))


@rule(50)
def all_parts_are_given(sight: Sight) -> Iterator[Finding]:
    """<toParts> gives every part of the message."""
    for at in sight.all("invoke", "reply"):
        given = {word(each, "part") for each in part_copies(at, "toParts", "toPart")}
        parts = sight.definitions.messages.get(sight.outgoing(at) or "", ())
        missing = [part.name for part in parts if part.name not in given]
        if given and missing:
            yield Finding(at, f"<toParts> leaves out {', '.join(missing)}; every part of the message is needed")


@rule(51)
def inputs_come_from_one_place(sight: Sight) -> Iterator[Finding]:
    """An invoke has an inputVariable or <toParts>."""
    yield from _both(sight, "invoke", "inputVariable", "toParts")


@rule(52)
def outputs_go_to_one_place(sight: Sight) -> Iterator[Finding]:
    """An invoke has an outputVariable or <fromParts>."""
    yield from _both(sight, "invoke", "outputVariable", "fromParts")


@rule(53)
def parts_that_are_taken_exist(sight: Sight) -> Iterator[Finding]:
    """<fromPart> names a part of the message."""
    for at in sight.all(*TAKING):
        yield from _strange(sight, part_copies(at, "fromParts", "fromPart"), sight.incoming(at))


@rule(54)
def parts_that_are_given_exist(sight: Sight) -> Iterator[Finding]:
    """<toPart> names a part of the message."""
    for at in sight.all(*SENDING):
        yield from _strange(sight, part_copies(at, "toParts", "toPart"), sight.outgoing(at))


@rule(55)
def received_goes_to_one_place(sight: Sight) -> Iterator[Finding]:
    """A receive has a variable or <fromParts>."""
    yield from _both(sight, "receive", "variable", "fromParts")


@rule(58)
def variables_of_messages_fit(sight: Sight) -> Iterator[Finding]:
    """The variable of a receive, an onMessage or a reply holds its message, or the element of a message's only part."""
    for at in sight.all("receive", "onMessage", "reply"):
        message = sight.outgoing(at) if local(at) == "reply" else sight.incoming(at)
        yield from _unfit(sight, at, "variable", message)


@rule(59)
def replied_comes_from_one_place(sight: Sight) -> Iterator[Finding]:
    """A reply has a variable or <toParts>."""
    yield from _both(sight, "reply", "variable", "toParts")


@rule(61)
def exchanges_are_declared(sight: Sight) -> Iterator[Finding]:
    """An exchange that is named is declared around."""
    for at in sight.all("receive", "onMessage", "reply"):
        if (name := word(at, "messageExchange")) and sight.exchange(at, name) is None:
            yield Finding(at, f"no scope around declares the messageExchange {name}")


@rule(63)
def picked_goes_to_one_place(sight: Sight) -> Iterator[Finding]:
    """An onMessage has a variable or <fromParts>."""
    yield from _both(sight, "onMessage", "variable", "fromParts")


@rule(84)
def links_of_event_handlers_are_declared(sight: Sight) -> Iterator[Finding]:
    """The partner link of an onEvent is declared in its scope, or around, with a role of the process."""
    for at in sight.all("onEvent"):
        if name := word(at, "partnerLink"):
            yield from _unlinked(sight, at, name)


@rule(0)
def links_are_declared(sight: Sight) -> Iterator[Finding]:
    """The partner link of an activity is declared around, with the role that the activity needs."""
    for at in sight.all("receive", "onMessage", "reply", "invoke"):
        if name := word(at, "partnerLink"):
            yield from _unlinked(sight, at, name)


@rule(85)
def events_go_to_one_place(sight: Sight) -> Iterator[Finding]:
    """An onEvent has <fromParts>, or a variable with its type."""
    for at in sight.all("onEvent"):
        said = [name for name in ("variable", "messageType", "element") if at.get(name) is not None]
        if said and next(own(at, "fromParts"), None) is not None:
            yield Finding(at, f"an onEvent with <fromParts> has no {said[0]}; choose one of both")


@rule(87)
def types_of_events_fit(sight: Sight) -> Iterator[Finding]:
    """The type of an onEvent's variable is that of the message, or the element of its only part."""
    for at in sight.all("onEvent"):
        type = XmlType(message=sight.qname(at, "messageType"), element=sight.qname(at, "element"))
        message = sight.incoming(at)
        if message is not None and type != XmlType() and not _fits(sight, type, message):
            yield Finding(at, f"the message is {message}; that is not what the type of the variable says")


@rule(88)
def sets_of_event_handlers_are_declared(sight: Sight) -> Iterator[Finding]:
    """A correlation set of an onEvent is declared in its scope, or around."""
    for at in sight.all("onEvent"):
        yield from _unknown_sets(sight, at)


@rule(0)
def sets_are_declared(sight: Sight) -> Iterator[Finding]:
    """A correlation set that is named is declared around."""
    for at in sight.all("receive", "onMessage", "reply", "invoke"):
        yield from _unknown_sets(sight, at)


@rule(89)
def exchanges_of_event_handlers_are_declared(sight: Sight) -> Iterator[Finding]:
    """An exchange of an onEvent is declared in its scope, or around."""
    for at in sight.all("onEvent"):
        if (name := word(at, "messageExchange")) and sight.exchange(at, name) is None:
            yield Finding(at, f"neither the scope of this onEvent nor one around declares the messageExchange {name}")


@rule(90)
def variables_of_events_have_a_type(sight: Sight) -> Iterator[Finding]:
    """An onEvent with a variable says its message type or its element, and not both."""
    for at in sight.all("onEvent"):
        said = [name for name in ("messageType", "element") if at.get(name) is not None]
        if word(at, "variable") and len(said) != 1:
            yield Finding(at, "an onEvent declares its variable: say a messageType or an element for it, and not both")


@rule(0)
def variables_are_declared(sight: Sight) -> Iterator[Finding]:
    """A variable that is named is declared around."""
    for at, attribute in _naming(sight):
        for name in word(at, attribute).split():
            if sight.variable(at, name) is None:
                yield Finding(at, f"no variable {name} is declared around here")


def _naming(sight: Sight) -> Iterator[tuple[Node, str]]:
    """Where variables are named that must be there."""
    for at in sight.all("receive", "onMessage", "reply", "from", "to"):
        yield at, "variable"
    for at in sight.all("invoke"):
        yield from ((at, "inputVariable"), (at, "outputVariable"))
        yield from ((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))
    for at in sight.all("receive", "onMessage"):
        yield from ((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))
    for at in sight.all("toPart"):
        yield at, "fromVariable"
    for at in sight.all("throw"):
        yield at, "faultVariable"
    for at in sight.all("validate"):
        yield at, "variables"


def _ways(sight: Sight, at: Node) -> Iterator[tuple[str | None, str, str]]:
    """The messages that an activity takes and sends, with where each may go to or come from."""
    if local(at) in TAKING:
        yield sight.incoming(at), TAKING[local(at)], "fromParts"
    if local(at) in SENDING:
        yield sight.outgoing(at), SENDING[local(at)], "toParts"


def _says(at: Node, variable: str, group: str) -> bool:
    return at.get(variable) is not None or next(own(at, group), None) is not None


def _both(sight: Sight, element: str, variable: str, group: str) -> Iterator[Finding]:
    for at in sight.all(element):
        if at.get(variable) is not None and next(own(at, group), None) is not None:
            yield Finding(at, f"<{element}> has a {variable} and <{group}>; choose one of both")


def _strange(sight: Sight, copies: list[Node], message: str | None) -> Iterator[Finding]:
    if message not in sight.definitions.messages:
        return
    parts = {part.name for part in sight.definitions.messages[message]}
    for each in copies:
        if word(each, "part") not in parts:
            yield Finding(each, f"a message {message} has no part {word(each, 'part')}")


def _unfit(sight: Sight, at: Node, attribute: str, message: str | None) -> Iterator[Finding]:
    variable = sight.variable(at, word(at, attribute)) if word(at, attribute) else None
    if variable is None or message is None or message not in sight.definitions.messages:
        return
    if variable.type != XmlType() and not _fits(sight, variable.type, message):
        said = variable.type.message or variable.type.element or variable.type.type
        yield Finding(at, f"the message is {message}, and {variable.name} holds {said}")


def _fits(sight: Sight, type: XmlType, message: str) -> bool:
    parts = sight.definitions.messages.get(message, ())
    return type.message == message or (len(parts) == 1 and type.element != "" and type.element == parts[0].element)


def _unlinked(sight: Sight, at: Node, name: str) -> Iterator[Finding]:
    link = sight.link(at, name)
    role = "partnerRole" if local(at) == "invoke" else "myRole"
    if link is None:
        yield Finding(at, f"no partner link {name} is declared around here")
    elif not word(link, role):
        yield Finding(at, f"the partner link {name} has no {role}, so <{local(at)}> means nothing on it")


def _unknown_sets(sight: Sight, at: Node) -> Iterator[Finding]:
    for each in correlations(at):
        if (name := word(each, "set")) and sight.correlation_set(at, name) is None:
            yield Finding(each, f"no correlation set {name} is declared around here")
