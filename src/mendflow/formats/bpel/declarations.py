"""The declarations of a process or scope: partner links, variables with initial values, correlation sets, exchanges."""

from typing import Final

from mendflow.core.model.expr import XPATH
from mendflow.core.model.xml import PartnerLink, ScopeDeclarations, XmlCopy, XmlSource, XmlTarget, XmlType
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.copies import source_of
from mendflow.formats.bpel.expressions import TRANSFORM
from mendflow.formats.bpel.names import own_elements
from mendflow.formats.bpel.process_reader import ProcessReader, VisibleLink
from mendflow.formats.bpel.reader import MANY
from mendflow.formats.bpel.vocabulary import PARTNER_LINKS
from mendflow.formats.spelling import nearest_word

DECLARING: Final = {"partnerLinks": 1, "messageExchanges": 1, "variables": 1, "correlationSets": 1}


def declared_in(process: ProcessReader, at: ParsedElement) -> ScopeDeclarations:
    variables = _declared_elements(process, at, "variables", "variable")
    exchanges = _declared_elements(process, at, "messageExchanges", "messageExchange")
    sets = _declared_elements(process, at, "correlationSets", "correlationSet")
    return ScopeDeclarations(
        types={process.needed(each, "name"): _type(process, each) for each in variables},
        first=tuple(
            _initial_value(process, each) for each in variables if next(own_elements(each, "from"), None) is not None
        ),
        partner_links={
            process.needed(each, "name"): _link(process, each)
            for each in _declared_elements(process, at, "partnerLinks", "partnerLink")
        },
        correlation_sets={process.needed(each, "name"): _properties(process, each) for each in sets},
        exchanges=tuple(process.needed(each, "name") for each in exchanges),
    )


def visible_links(process: ProcessReader, declared: ScopeDeclarations) -> dict[str, VisibleLink]:
    """The partner links that are in sight from here on."""
    return {name: VisibleLink(link, process.channel(name)) for name, link in declared.partner_links.items()}


def _declared_elements(process: ProcessReader, at: ParsedElement, group: str, one: str) -> list[ParsedElement]:
    return [each for inside in own_elements(at, group) for each in process.parts(inside, {one: MANY})[one]]


def _type(process: ProcessReader, at: ParsedElement) -> XmlType:
    process.only(at, ("name", "messageType", "type", "element"))
    process.parts(at, {"from": 1})
    return XmlType(
        message=process.qname(at, "messageType"), element=process.qname(at, "element"), type=process.qname(at, "type")
    )


def _initial_value(process: ProcessReader, at: ParsedElement) -> XmlCopy:
    """The value that a variable begins with."""
    given = next(own_elements(at, "from"))
    source: XmlSource = source_of(process, given)
    expression = source.expression
    if expression is not None and expression.language == XPATH and TRANSFORM.search(expression.text):
        process.problem(
            given,
            "doXslTransform cannot give a variable its first value: leave the variable empty, and transform in the "
            "<from> of an assign",
        )
    return XmlCopy(source=source, target=XmlTarget(variable=at.get("name", "").strip()))


def _link(process: ProcessReader, at: ParsedElement) -> PartnerLink:
    process.only(at, ("name", "partnerLinkType", "myRole", "partnerRole", "initializePartnerRole"))
    type = process.qname_needed(at, "partnerLinkType")
    mine, partner = at.get("myRole", "").strip(), at.get("partnerRole", "").strip()
    roles = process.definitions.partner_link_types.get(type, {})
    if type and type not in process.definitions.partner_link_types:
        text = f"SA00010: no WSDL that is imported defines the partner link type {type}"
        if type in process.definitions.earlier:
            text += f" in the words of WS-BPEL 2.0, whose namespace for it is {PARTNER_LINKS}"
        text += process.definitions.advice_on(type)
        process.problem(at, text, nearest_word(type, process.definitions.partner_link_types))
    else:
        for role in filter(None, (mine, partner)):
            if role not in roles:
                process.problem(at, f"the partner link type {type} has no role {role}; it has {', '.join(roles)}")
    if why := process.definitions.unspoken_reason(roles.get(partner, "")):
        process.problem(at, f"the port type {roles[partner]} cannot be called: {why}")
    initialize = at.get("initializePartnerRole")
    return PartnerLink(
        type=type,
        mine=roles.get(mine, ""),
        partner=roles.get(partner, ""),
        my_role=mine,
        partner_role=partner,
        initialize=None if initialize is None else process.truth(at, "initializePartnerRole"),
    )


def _properties(process: ProcessReader, at: ParsedElement) -> tuple[str, ...]:
    process.only(at, ("name", "properties"))
    return tuple(process.resolved(at, each) for each in process.needed(at, "properties").split())
