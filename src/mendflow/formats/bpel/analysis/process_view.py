"""A process as rules see it: its elements, and what a name means at a place.

Names are looked up outwards. A scope declares variables, partner links, correlation sets and exchanges; a `catch`, the
scope of a `forEach` and that of an `onEvent` declare variables by naming them. Names in an `onEvent` itself are looked
up in its scope first."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from mendflow.core.model.xml import Operation, PartnerLink, XmlDefinitions, XmlType
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.names import ACTIVITIES, OPAQUE_ELEMENTS, elements, local_name, namespace, own_elements
from mendflow.formats.bpel.reader import SourceDocument, XmlReader
from mendflow.formats.bpel.source_files import SourceFiles, UnreachableFile, resolve_location
from mendflow.formats.bpel.vocabulary import BPEL, SCHEMA

COUNTER: Final = f"{{{SCHEMA}}}unsignedInt"
INBOUND: Final = ("receive", "onMessage", "onEvent")
MESSAGING: Final = (*INBOUND, "reply", "invoke")
FCT_HANDLERS: Final = ("catch", "catchAll", "compensationHandler", "terminationHandler")
SCOPES: Final = ("process", "scope")


class VariableDeclaration(msgspec.Struct, frozen=True):
    """Its type is empty where nobody can say it."""

    name: str
    type: XmlType
    at: ParsedElement


class LinkEnds(msgspec.Struct, frozen=True):
    """A link with the activities that it leads from and to."""

    link: ParsedElement
    flow: ParsedElement
    sources: list[ParsedElement]
    targets: list[ParsedElement]

    def pairs(self) -> Iterator[tuple[ParsedElement, ParsedElement]]:
        return ((source, target) for source in self.sources for target in self.targets)


class ProcessView:
    def __init__(self, document: SourceDocument, definitions: Definitions, places: SourceFiles) -> None:
        self.root, self.file = document.root, document.file
        self.definitions, self._places = definitions, places
        self.world: XmlDefinitions = definitions.world(self.root.get("targetNamespace", ""), {})
        self._reader = XmlReader(document.file, [])
        self._every = list(_bpel(self.root))
        self._variables: dict[ParsedElement, dict[str, VariableDeclaration]] = {}
        self._names: dict[tuple[ParsedElement, str], dict[str, ParsedElement]] = {}

    # elements

    def all(self, *names: str) -> Iterator[ParsedElement]:
        """The elements of these names, in their order. What stands in literals is data."""
        wanted = {f"{{{BPEL}}}{name}" for name in names}
        return (each for each in self._every if each.tag in wanted)

    def every(self) -> Iterator[ParsedElement]:
        return iter(self._every)

    @cached_property
    def by_name(self) -> dict[str, list[ParsedElement]]:
        """The activities of each name."""
        found: dict[str, list[ParsedElement]] = {}
        for each in self.all(*ACTIVITIES):
            found.setdefault(word(each, "name"), []).append(each)
        return found

    def qname(self, at: ParsedElement, attribute: str) -> str:
        """The qualified name in an attribute. A prefix that means nothing is told of by the reader."""
        return self._reader.qname(at, attribute)

    def resolved(self, at: ParsedElement, name: str) -> str:
        return self._reader.resolved(at, name)

    def imported(self, at: ParsedElement) -> ParsedElement | None:
        """The document that an import of the process brings; None if there is none in reach."""
        try:
            found = self._places.documents.get(resolve_location(word(at, "location"), ""))
        except UnreachableFile:
            return None
        return found.root if found is not None else None

    # names

    def variable(self, at: ParsedElement, name: str) -> VariableDeclaration | None:
        for enclosing in outwards(at):
            if (found := self.variables_of(enclosing).get(name)) is not None:
                return found
        return None

    def variables_of(self, at: ParsedElement) -> dict[str, VariableDeclaration]:
        """Those that an element declares, by saying so or by naming them."""
        found = self._variables.get(at)
        if found is None:
            found = self._variables[at] = {each.name: each for each in self._declares(at)}
        return found

    def link(self, at: ParsedElement, name: str) -> ParsedElement | None:
        return self._declaration_of(at, "partnerLinks", "partnerLink", name)

    def correlation_set(self, at: ParsedElement, name: str) -> ParsedElement | None:
        return self._declaration_of(at, "correlationSets", "correlationSet", name)

    def exchange(self, at: ParsedElement, name: str) -> ParsedElement | None:
        return self._declaration_of(at, "messageExchanges", "messageExchange", name)

    def flow_link(self, end: ParsedElement) -> ParsedElement | None:
        """The link that a <source> or <target> means."""
        return self._declaration_of(activity_of(end), "links", "link", word(end, "linkName"), ("flow",))

    def link_ends(self) -> Iterator[ParsedElement]:
        """Every <source> and <target> that belongs to an activity."""
        for group in self.all("sources", "targets"):
            if group is not self.root:
                yield from own_elements(group, "source", "target")

    @cached_property
    def links(self) -> list[LinkEnds]:
        """All links of the process, with their ends."""
        found: dict[ParsedElement, LinkEnds] = {}
        for flow in self.all("flow"):
            named = {word(link, "name"): link for link in reversed(list(declarations_in(flow, "links", "link")))}
            found |= {link: LinkEnds(link, flow, [], []) for link in named.values()}
        for end in self.link_ends():
            if (link := self.flow_link(end)) is not None:
                side = found[link].sources if local_name(end) == "source" else found[link].targets
                side += [activity_of(end)] if activity_of(end) not in side else []
        return list(found.values())

    def _declaration_of(
        self, at: ParsedElement, group: str, one: str, name: str, kinds: tuple[str, ...] = SCOPES
    ) -> ParsedElement | None:
        for enclosing in outwards(at):
            if enclosing is not at and local_name(enclosing) in kinds:
                table = self._names.get((enclosing, group))
                if table is None:
                    each = reversed(list(declarations_in(enclosing, group, one)))
                    table = self._names[enclosing, group] = {word(node, "name"): node for node in each}
                if name in table:
                    return table[name]
        return None

    # partners

    def roles(self, link: ParsedElement) -> PartnerLink:
        """What a partner link says. A port type is empty where nobody knows it."""
        type = self.qname(link, "partnerLinkType")
        known = self.definitions.partner_link_types.get(type, {})
        mine, partner = word(link, "myRole"), word(link, "partnerRole")
        return PartnerLink(
            type=type,
            mine=known.get(mine, ""),
            partner=known.get(partner, ""),
            my_role=mine,
            partner_role=partner,
        )

    def port_type(self, at: ParsedElement) -> str:
        """The port type that an activity means by its partner link; empty if nobody can say."""
        link = self.link(at, word(at, "partnerLink"))
        if link is None:
            return ""
        return self.roles(link).partner if local_name(at) == "invoke" else self.roles(link).mine

    def operation(self, at: ParsedElement) -> Operation | None:
        return self.definitions.port_types.get(self.port_type(at), {}).get(word(at, "operation"))

    def incoming(self, at: ParsedElement) -> str | None:
        """The message type that an activity takes; None if it takes none, or nobody can say."""
        operation = self.operation(at)
        if operation is None or local_name(at) == "reply":
            return None
        return (operation.output if local_name(at) == "invoke" else operation.input) or None

    def outgoing(self, at: ParsedElement) -> str | None:
        """The message type that an activity sends."""
        operation = self.operation(at)
        if operation is None or local_name(at) in INBOUND:
            return None
        if local_name(at) == "invoke":
            return operation.input or None
        fault = word(at, "faultName").rpartition(":")[2]
        return (operation.faults.get(fault) if fault else operation.output) or None

    def _declares(self, at: ParsedElement) -> Iterator[VariableDeclaration]:
        if local_name(at) == "catch" and (name := word(at, "faultVariable")):
            message, element = self.qname(at, "faultMessageType"), self.qname(at, "faultElement")
            yield VariableDeclaration(name, XmlType(message=message, element=element), at)
        if local_name(at) not in SCOPES:
            return
        parent = at.getparent()
        if parent is not None and local_name(parent) == "forEach" and (name := word(parent, "counterName")):
            yield VariableDeclaration(name, XmlType(type=COUNTER), parent)
        if parent is not None and local_name(parent) == "onEvent":
            yield from self._implied(parent)
        for each in declarations_in(at, "variables", "variable"):
            yield VariableDeclaration(word(each, "name"), self._type(each), each)

    def _type(self, at: ParsedElement) -> XmlType:
        return XmlType(
            message=self.qname(at, "messageType"), element=self.qname(at, "element"), type=self.qname(at, "type")
        )

    def _implied(self, at: ParsedElement) -> Iterator[VariableDeclaration]:
        if name := word(at, "variable"):
            yield VariableDeclaration(name, self._type(at), at)
        parts = {part.name: part for part in self.definitions.messages.get(self.incoming(at) or "", ())}
        for each in part_copies(at, "fromParts", "fromPart"):
            part = parts.get(word(each, "part"))
            type = XmlType(element=part.element, type=part.type) if part is not None else XmlType()
            yield VariableDeclaration(word(each, "toVariable"), type, each)


def word(at: ParsedElement, attribute: str) -> str:
    return at.get(attribute, "").strip()


def outwards(at: ParsedElement) -> Iterator[ParsedElement]:
    """Where a name at this place is looked up, further and further out; for an event handler in its scope first."""
    if local_name(at) in ("onEvent", "forEach"):
        yield from own_elements(at, "scope")
    yield at
    yield from at.iterancestors()


def enclosing_scopes(at: ParsedElement) -> Iterator[ParsedElement]:
    """The scopes that an element stands in, and the process at last. A scope does not stand in itself."""
    return (each for each in at.iterancestors() if local_name(each) in SCOPES and namespace(each) == BPEL)


def declarations_in(at: ParsedElement, group: str, one: str) -> Iterator[ParsedElement]:
    """What a scope declares of a kind."""
    return (each for inside in own_elements(at, group) for each in own_elements(inside, one))


def part_copies(at: ParsedElement, group: str, one: str) -> list[ParsedElement]:
    return [each for inside in own_elements(at, group) for each in own_elements(inside, one)]


def correlations(at: ParsedElement) -> list[ParsedElement]:
    return [each for inside in own_elements(at, "correlations") for each in own_elements(inside, "correlation")]


def is_yes(at: ParsedElement, attribute: str) -> bool:
    return word(at, attribute) == "yes"


def activity_of(end: ParsedElement) -> ParsedElement:
    """The activity that has a <source> or <target>."""
    group = end.getparent()
    activity = group.getparent() if group is not None else None
    assert activity is not None
    outer = activity.getparent()
    return outer if outer is not None and local_name(outer) == "extensionActivity" else activity


def _bpel(at: ParsedElement) -> Iterator[ParsedElement]:
    """It and all elements of BPEL in it. Literals and documentation are no part of it, and of an activity of somebody
    else's only its links are."""
    yield at
    if local_name(at) == "extensionActivity":
        for child in elements(at):
            for group in child.iterchildren(f"{{{BPEL}}}sources", f"{{{BPEL}}}targets"):
                yield from _bpel(group)
    elif local_name(at) not in OPAQUE_ELEMENTS:
        for child in own_elements(at):
            yield from _bpel(child)
