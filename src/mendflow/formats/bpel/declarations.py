"""What a process or a scope declares: partner links, variables with their first values, correlation sets, exchanges."""

from typing import Final

from mendflow.core.model.expr import XPATH
from mendflow.core.model.xml import Declared, PartnerLink, XmlCopy, XmlPlace, XmlSource, XmlType
from mendflow.core.xml import Node
from mendflow.formats.bpel.around import Process, SeenLink
from mendflow.formats.bpel.copies import source_of
from mendflow.formats.bpel.expressions import TRANSFORM
from mendflow.formats.bpel.names import own
from mendflow.formats.bpel.reading import MANY
from mendflow.formats.bpel.vocabulary import PARTNER_LINKS
from mendflow.formats.spelling import nearest

DECLARING: Final = {"partnerLinks": 1, "messageExchanges": 1, "variables": 1, "correlationSets": 1}


def declared_in(process: Process, at: Node) -> Declared:
    variables = _each(process, at, "variables", "variable")
    exchanges = _each(process, at, "messageExchanges", "messageExchange")
    sets = _each(process, at, "correlationSets", "correlationSet")
    return Declared(
        types={process.needed(each, "name"): _type(process, each) for each in variables},
        first=tuple(_first(process, each) for each in variables if next(own(each, "from"), None) is not None),
        partner_links={
            process.needed(each, "name"): _link(process, each)
            for each in _each(process, at, "partnerLinks", "partnerLink")
        },
        correlation_sets={process.needed(each, "name"): _properties(process, each) for each in sets},
        exchanges=tuple(process.needed(each, "name") for each in exchanges),
    )


def seen(process: Process, declared: Declared) -> dict[str, SeenLink]:
    """The partner links that are in sight from here on."""
    return {name: SeenLink(link, process.channel(name)) for name, link in declared.partner_links.items()}


def _each(process: Process, at: Node, group: str, one: str) -> list[Node]:
    return [each for inside in own(at, group) for each in process.parts(inside, {one: MANY})[one]]


def _type(process: Process, at: Node) -> XmlType:
    process.only(at, ("name", "messageType", "type", "element"))
    process.parts(at, {"from": 1})
    return XmlType(
        message=process.qname(at, "messageType"), element=process.qname(at, "element"), type=process.qname(at, "type")
    )


def _first(process: Process, at: Node) -> XmlCopy:
    """The value that a variable begins with."""
    given = next(own(at, "from"))
    source: XmlSource = source_of(process, given)
    expression = source.expression
    if expression is not None and expression.language == XPATH and TRANSFORM.search(expression.text):
        process.problem(
            given,
            "doXslTransform cannot give a variable its first value: leave the variable empty, and transform in the "
            "<from> of an assign",
        )
    return XmlCopy(source=source, target=XmlPlace(variable=at.get("name", "").strip()))


def _link(process: Process, at: Node) -> PartnerLink:
    process.only(at, ("name", "partnerLinkType", "myRole", "partnerRole", "initializePartnerRole"))
    type = process.qname_needed(at, "partnerLinkType")
    mine, partner = at.get("myRole", "").strip(), at.get("partnerRole", "").strip()
    roles = process.definitions.partner_link_types.get(type, {})
    if type and type not in process.definitions.partner_link_types:
        told = f"SA00010: no WSDL that is imported defines the partner link type {type}"
        if type in process.definitions.earlier:
            told += f" in the words of WS-BPEL 2.0, whose namespace for it is {PARTNER_LINKS}"
        told += process.definitions.advice_on(type)
        process.problem(at, told, nearest(type, process.definitions.partner_link_types))
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


def _properties(process: Process, at: Node) -> tuple[str, ...]:
    process.only(at, ("name", "properties"))
    return tuple(process.resolved(at, each) for each in process.needed(at, "properties").split())
