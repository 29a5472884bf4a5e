"""Rules about what a process and its scopes declare: partner links, variables, correlation sets."""

import re
from collections.abc import Iterator
from typing import Final

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import ParsedElement
from mendflow.core.xml.schema import builtin_of
from mendflow.formats.bpel.analysis.process_view import SCOPES, ProcessView, declarations_in, part_copies, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.names import own_elements
from mendflow.formats.bpel.reader import abbreviate

VARIABLE_NAME: Final = re.compile(r"[^\W\d][\w\-\u00b7]*")
VARIABLE_NAMING: Final = (("variable", "name"), ("catch", "faultVariable"), ("forEach", "counterName"))


@rule(16)
def partner_links_have_a_role(view: ProcessView) -> Iterator[Violation]:
    """A partner link has a role of the process, or of the partner, or both."""
    for link in view.all("partnerLink"):
        if not word(link, "myRole") and not word(link, "partnerRole"):
            yield Violation(link, f"the partner link {word(link, 'name')} needs a myRole or a partnerRole, or both")


@rule(17)
def only_partners_are_initialized(view: ProcessView) -> Iterator[Violation]:
    """Only a partner link with a role of the partner says whether that is known from the beginning."""
    for link in view.all("partnerLink"):
        if link.get("initializePartnerRole") is not None and not word(link, "partnerRole"):
            yield Violation(link, "initializePartnerRole says something of a partnerRole, and there is none")


@rule(18)
def names_of_partner_links_are_unique(view: ProcessView) -> Iterator[Violation]:
    """Partner links of one scope have names of their own."""
    yield from _duplicates(view, "partnerLinks", "partnerLink")


@rule(23)
def names_of_variables_are_unique(view: ProcessView) -> Iterator[Violation]:
    """Variables of one scope have names of their own."""
    yield from _duplicates(view, "variables", "variable")


@rule(24)
def names_of_variables_have_no_dot(view: ProcessView) -> Iterator[Violation]:
    """The name of a variable begins with a letter and has no dot in it, since `$variable.part` means a part."""
    for element, attribute in VARIABLE_NAMING:
        for at in view.all(element):
            if at.get(attribute) is not None and not VARIABLE_NAME.fullmatch(word(at, attribute)):
                yield Violation(
                    at,
                    f"{abbreviate(word(at, attribute))} is not a valid name for a variable: letters, digits, `_`, `-`",
                )
    for at in view.all("onEvent"):
        implied = [(at, "variable"), *((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))]
        for place, attribute in implied:
            if place.get(attribute) is not None and not VARIABLE_NAME.fullmatch(word(place, attribute)):
                yield Violation(place, f"{abbreviate(word(place, attribute))} is not a valid name for a variable")


@rule(25)
def variables_have_one_type(view: ProcessView) -> Iterator[Violation]:
    """A variable has one of a message type, a type and an element."""
    for at in view.all("variable"):
        types = [name for name in ("messageType", "type", "element") if at.get(name) is not None]
        if len(types) != 1:
            text = " and ".join(types) or "none of them"
            yield Violation(at, f"a variable has one of messageType, type and element; this one has {text}")


@rule(44)
def names_of_correlation_sets_are_unique(view: ProcessView) -> Iterator[Violation]:
    """Correlation sets of one scope have names of their own."""
    yield from _duplicates(view, "correlationSets", "correlationSet")


@rule(45)
def correlated_properties_are_simple(view: ProcessView) -> Iterator[Violation]:
    """The properties of a correlation set are of simple types."""
    for at in view.all("correlationSet"):
        for name in word(at, "properties").split():
            property = view.resolved(at, name)
            type = view.definitions.properties.get(property)
            if type is not None and builtin_of(view.world, XmlType(type=type)) is None:
                yield Violation(
                    at, f"the property {name} is of {type}, which is no simple type, so it cannot correlate"
                )


@rule(76)
def loops_declare_their_counter_alone(view: ProcessView) -> Iterator[Violation]:
    """The scope in a forEach does not declare a variable that is called as the counter is."""
    for at in view.all("forEach"):
        for scope in own_elements(at, "scope"):
            yield from _redeclarations(scope, word(at, "counterName"), "the counter of the forEach")


@rule(86)
def event_handlers_declare_their_variables_alone(view: ProcessView) -> Iterator[Violation]:
    """The scope in an onEvent does not declare the variables that the onEvent names: naming declares them."""
    for at in view.all("onEvent"):
        names = [word(at, "variable"), *(word(each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))]
        for scope in own_elements(at, "scope"):
            for name in filter(None, names):
                yield from _redeclarations(scope, name, "a variable of the onEvent")


def _redeclarations(scope: ParsedElement, name: str, what: str) -> Iterator[Violation]:
    for each in declarations_in(scope, "variables", "variable"):
        if word(each, "name") == name:
            yield Violation(each, f"{name} is {what}, which declares it already; take this out")


def _duplicates(view: ProcessView, group: str, one: str) -> Iterator[Violation]:
    for scope in view.all(*SCOPES):
        seen: set[str] = set()
        for each in declarations_in(scope, group, one):
            name = word(each, "name")
            if name in seen:
                yield Violation(each, f"the scope declares another {one} {name}; call one of them otherwise")
            seen.add(name)
