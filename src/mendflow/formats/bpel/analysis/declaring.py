"""Rules about what a process and its scopes declare: partner links, variables, correlation sets."""

import re
from collections.abc import Iterator
from typing import Final

from mendflow.core.model.xml import XmlType
from mendflow.core.xml import Node
from mendflow.core.xml.schema import builtin_of
from mendflow.formats.bpel.analysis.rules import Finding, rule
from mendflow.formats.bpel.analysis.sight import SCOPES, Sight, declared, part_copies, word
from mendflow.formats.bpel.names import own
from mendflow.formats.bpel.reading import shown

VARIABLE_NAME: Final = re.compile(r"[^\W\d][\w\-\u00b7]*")
NAMING: Final = (("variable", "name"), ("catch", "faultVariable"), ("forEach", "counterName"))


@rule(16)
def partner_links_have_a_role(sight: Sight) -> Iterator[Finding]:
    """A partner link has a role of the process, or of the partner, or both."""
    for link in sight.all("partnerLink"):
        if not word(link, "myRole") and not word(link, "partnerRole"):
            yield Finding(link, f"the partner link {word(link, 'name')} needs a myRole or a partnerRole, or both")


@rule(17)
def only_partners_are_initialized(sight: Sight) -> Iterator[Finding]:
    """Only a partner link with a role of the partner says whether that is known from the beginning."""
    for link in sight.all("partnerLink"):
        if link.get("initializePartnerRole") is not None and not word(link, "partnerRole"):
            yield Finding(link, "initializePartnerRole says something of a partnerRole, and there is none")


@rule(18)
def names_of_partner_links_are_unique(sight: Sight) -> Iterator[Finding]:
    """Partner links of one scope have names of their own."""
    yield from _unique(sight, "partnerLinks", "partnerLink")


@rule(23)
def names_of_variables_are_unique(sight: Sight) -> Iterator[Finding]:
    """Variables of one scope have names of their own."""
    yield from _unique(sight, "variables", "variable")


@rule(24)
def names_of_variables_have_no_dot(sight: Sight) -> Iterator[Finding]:
    """The name of a variable begins with a letter and has no dot in it, since `$variable.part` means a part."""
    for element, attribute in NAMING:
        for at in sight.all(element):
            if at.get(attribute) is not None and not VARIABLE_NAME.fullmatch(word(at, attribute)):
                yield Finding(at, f"{shown(word(at, attribute))} is no name for a variable: letters, digits, `_`, `-`")
    for at in sight.all("onEvent"):
        implied = [(at, "variable"), *((each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))]
        for place, attribute in implied:
            if place.get(attribute) is not None and not VARIABLE_NAME.fullmatch(word(place, attribute)):
                yield Finding(place, f"{shown(word(place, attribute))} is no name for a variable")


@rule(25)
def variables_have_one_type(sight: Sight) -> Iterator[Finding]:
    """A variable has one of a message type, a type and an element."""
    for at in sight.all("variable"):
        types = [name for name in ("messageType", "type", "element") if at.get(name) is not None]
        if len(types) != 1:
            said = " and ".join(types) or "none of them"
            yield Finding(at, f"a variable has one of messageType, type and element; this one has {said}")


@rule(44)
def names_of_correlation_sets_are_unique(sight: Sight) -> Iterator[Finding]:
    """Correlation sets of one scope have names of their own."""
    yield from _unique(sight, "correlationSets", "correlationSet")


@rule(45)
def correlated_properties_are_simple(sight: Sight) -> Iterator[Finding]:
    """The properties of a correlation set are of simple types."""
    for at in sight.all("correlationSet"):
        for name in word(at, "properties").split():
            property = sight.resolved(at, name)
            type = sight.definitions.properties.get(property)
            if type is not None and builtin_of(sight.world, XmlType(type=type)) is None:
                yield Finding(at, f"the property {name} is of {type}, which is no simple type, so it cannot correlate")


@rule(76)
def loops_declare_their_counter_alone(sight: Sight) -> Iterator[Finding]:
    """The scope in a forEach does not declare a variable that is called as the counter is."""
    for at in sight.all("forEach"):
        for scope in own(at, "scope"):
            yield from _declared_again(scope, word(at, "counterName"), "the counter of the forEach")


@rule(86)
def event_handlers_declare_their_variables_alone(sight: Sight) -> Iterator[Finding]:
    """The scope in an onEvent does not declare the variables that the onEvent names: naming declares them."""
    for at in sight.all("onEvent"):
        names = [word(at, "variable"), *(word(each, "toVariable") for each in part_copies(at, "fromParts", "fromPart"))]
        for scope in own(at, "scope"):
            for name in filter(None, names):
                yield from _declared_again(scope, name, "a variable of the onEvent")


def _declared_again(scope: Node, name: str, what: str) -> Iterator[Finding]:
    for each in declared(scope, "variables", "variable"):
        if word(each, "name") == name:
            yield Finding(each, f"{name} is {what}, which declares it already; take this out")


def _unique(sight: Sight, group: str, one: str) -> Iterator[Finding]:
    for scope in sight.all(*SCOPES):
        seen: set[str] = set()
        for each in declared(scope, group, one):
            name = word(each, "name")
            if name in seen:
                yield Finding(each, f"the scope declares another {one} {name}; call one of them otherwise")
            seen.add(name)
