"""Rules about copies, and about properties of variables."""

from collections.abc import Iterator

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import ParsedElement
from mendflow.core.xml.schema import builtin_of
from mendflow.formats.bpel.analysis.process_view import ProcessView, correlations, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.analysis.xpath_sources import property_calls
from mendflow.formats.bpel.names import elements, local_name, own_elements
from mendflow.formats.bpel.reader import text_of


@rule(21)
def properties_have_aliases(view: ProcessView) -> Iterator[Violation]:
    """A property is used where an alias says where it stands."""
    for at, type, property in _uses(view):
        if not any(alias.property == property and alias.of == type for alias in view.definitions.aliases):
            of = type.message or type.element or type.type
            yield Violation(at, f"no propertyAlias says where the property {property} stands in {of}")


@rule(34)
def only_messages_have_parts(view: ProcessView) -> Iterator[Violation]:
    """A part is named of a message variable only."""
    for at in view.all("from", "to"):
        type = _variable_type(view, at)
        if type is not None and at.get("part") is not None and (type.element or type.type):
            yield Violation(at, f"{word(at, 'variable')} is no message, so it has no part {word(at, 'part')}")


@rule(35)
def own_addresses_have_a_role(view: ProcessView) -> Iterator[Violation]:
    """The own address of a partner link is read only if it has a myRole."""
    yield from _role_violations(view, "from", "myRole")


@rule(36)
def partners_addresses_have_a_role(view: ProcessView) -> Iterator[Violation]:
    """The partner's address of a partner link is read only if it has a partnerRole."""
    yield from _role_violations(view, "from", "partnerRole")


@rule(37)
def addresses_are_given_to_partners(view: ProcessView) -> Iterator[Violation]:
    """An address is written to a partner link that has a partnerRole."""
    yield from _role_violations(view, "to", "partnerRole")


@rule(38)
def literals_are_one_thing(view: ProcessView) -> Iterator[Violation]:
    """A literal is one element, or a text."""
    for at in view.all("literal"):
        inside = len(list(elements(at)))
        if inside > 1 or (inside == 1 and text_of(at).strip()):
            yield Violation(at, "a literal is one element or one text; put several things into an element")


@rule(42)
def names_are_kept_of_elements(view: ProcessView) -> Iterator[Violation]:
    """keepSrcElementName says something where an element is copied to an element, and stands only there."""
    for at in view.all("copy"):
        if at.get("keepSrcElementName") is not None:
            plain = next((each for each in own_elements(at, "from", "to") if _is_no_element(view, each)), None)
            if plain is not None:
                yield Violation(at, f"<{local_name(plain)}> is no element here, so keepSrcElementName means nothing")


@rule(43)
def messages_are_copied_to_messages(view: ProcessView) -> Iterator[Violation]:
    """A whole message is copied to a whole message. That it is one of the same type is seen when it is copied."""
    for at in view.all("copy"):
        whole = [_is_whole_message(view, each) for each in own_elements(at, "from", "to")]
        if True in whole and False in whole:
            yield Violation(at, "a whole message and what is none are copied into each other; copy part by part")


def _uses(view: ProcessView) -> Iterator[tuple[ParsedElement, XmlType, str]]:
    """Where properties are used: at, of what, which."""
    for at in view.all("from", "to"):
        property, type = view.qname(at, "property"), _variable_type(view, at)
        if property and type is not None:
            yield at, type, property
    for at, variable, property in property_calls(view):
        found = view.variable(at, variable)
        if found is not None and found.type != XmlType():
            yield at, found.type, property
    for at in view.all("receive", "onMessage", "onEvent", "reply", "invoke"):
        for each in correlations(at):
            known = view.correlation_set(at, word(each, "set"))
            if known is None:
                continue
            for name in word(known, "properties").split():
                for message in _correlated_messages(view, at, word(each, "pattern")):
                    yield each, XmlType(message=message), view.resolved(known, name)


def _correlated_messages(view: ProcessView, at: ParsedElement, pattern: str) -> Iterator[str]:
    """The messages that a correlation is about."""
    sent = view.outgoing(at) if pattern in ("", "request", "request-response") else None
    taken = view.incoming(at) if local_name(at) != "invoke" or "response" in pattern else None
    return filter(None, (sent, taken))


def _variable_type(view: ProcessView, at: ParsedElement) -> XmlType | None:
    """The type of the variable that a <from> or <to> names; None if nobody can say."""
    found = view.variable(at, word(at, "variable")) if at.get("variable") is not None else None
    return found.type if found is not None and found.type != XmlType() else None


def _role_violations(view: ProcessView, element: str, role: str) -> Iterator[Violation]:
    for at in view.all(element):
        name = word(at, "partnerLink")
        link = view.link(at, name) if name else None
        asked = element == "to" or word(at, "endpointReference") == role
        if link is not None and asked and not word(link, role):
            yield Violation(at, f"the partner link {name} has no {role}, so it has no such address")


def _is_no_element(view: ProcessView, at: ParsedElement) -> bool:
    """Whether what is copied, or where it goes to, is certainly no element."""
    type = _variable_type(view, at)
    literal = next(own_elements(at, "literal"), None)
    if literal is not None:
        return next(elements(literal), None) is None
    if at.get("property") is not None:
        return True
    if type is None or next(own_elements(at, "query"), None) is not None:
        return False
    if type.message:
        parts = {part.name: part for part in view.definitions.messages.get(type.message, ())}
        part = parts.get(word(at, "part"))
        return part is None or (part.type != "" and builtin_of(view.world, XmlType(type=part.type)) is not None)
    return builtin_of(view.world, type) is not None


def _is_whole_message(view: ProcessView, at: ParsedElement) -> bool | None:
    """Whether it is a whole message; None where nobody can say."""
    if at.get("variable") is None:
        is_other = at.get("partnerLink") is not None or next(own_elements(at, "literal"), None) is not None
        return False if is_other else None
    type = _variable_type(view, at)
    if type is None:
        return None
    partial = (
        at.get("part") is not None
        or at.get("property") is not None
        or next(own_elements(at, "query"), None) is not None
    )
    return type.message != "" and not partial
