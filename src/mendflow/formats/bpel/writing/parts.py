"""Where copies come from and go to, how messages are made and taken, and what a scope declares: as BPEL writes them."""

from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.xml import (
    Correlation,
    Declared,
    PartCopy,
    PartnerLink,
    XmlCopy,
    XmlMessage,
    XmlPlace,
    XmlSource,
    XmlType,
)
from mendflow.formats.bpel.vocabulary import CEL_LANGUAGE
from mendflow.formats.bpel.writing.spaces import Spaces
from mendflow.formats.bpel.writing.tags import Raw, Tag, tag, text

YES_NO = {True: "yes", False: "no", None: ""}


class Parts:
    """Writes what is inside activities."""

    def __init__(self, spaces: Spaces) -> None:
        self.spaces = spaces

    def expression(self, name: str, expr: Expr, attributes: dict[str, str] | None = None) -> Tag:
        return self._spoken(name, expr, "expressionLanguage", attributes)

    def _spoken(self, name: str, expr: Expr, which: str, attributes: dict[str, str] | None = None) -> Tag:
        language = {which: CEL_LANGUAGE} if expr.language == CEL else {}
        return tag(f"bpel:{name}", {**(attributes or {}), **language, **self.spaces.declared(expr)}, text(expr.text))

    # copies

    def copy(self, copy: XmlCopy) -> Tag:
        options = {
            "keepSrcElementName": "yes" if copy.keep_name else "",
            "ignoreMissingFromData": "yes" if copy.ignore_missing else "",
        }
        return tag("bpel:copy", options, self.source(copy.source), self._target(copy.target))

    def source(self, source: XmlSource) -> Tag:
        if source.literal is not None:
            return tag("bpel:from", {}, Raw(_literal(source.literal)))
        if source.expression is not None:
            return self.expression("from", source.expression)
        if source.partner_link:
            return tag("bpel:from", {"partnerLink": source.partner_link, "endpointReference": source.endpoint})
        return self._place("from", source)

    def _target(self, target: XmlPlace) -> Tag:
        if target.expression is not None:
            return self.expression("to", target.expression)
        if target.partner_link:
            return tag("bpel:to", {"partnerLink": target.partner_link})
        return self._place("to", target)

    def _place(self, name: str, place: XmlSource | XmlPlace) -> Tag:
        attributes = {"variable": place.variable, "part": place.part, "property": self.spaces.name(place.property)}
        query = self._spoken("query", place.query, "queryLanguage") if place.query is not None else None
        return tag(f"bpel:{name}", attributes, query)

    # messages

    def correlations(self, given: tuple[Correlation, ...]) -> Tag | None:
        inside = [
            tag("bpel:correlation", {"set": each.set, "initiate": each.initiate, "pattern": each.pattern})
            for each in given
        ]
        return tag("bpel:correlations", {}, *inside) if inside else None

    def to_parts(self, message: XmlMessage) -> Tag | None:
        return self._parts("toPart", "fromVariable", message.parts)

    def from_parts(self, message: XmlMessage) -> Tag | None:
        return self._parts("fromPart", "toVariable", message.parts)

    def _parts(self, name: str, variable: str, parts: tuple[PartCopy, ...]) -> Tag | None:
        inside = [tag(f"bpel:{name}", {"part": each.part, variable: each.variable}) for each in parts]
        return tag(f"bpel:{name}s", {}, *inside) if inside else None

    # declarations

    def type(self, type: XmlType) -> dict[str, str]:
        return {
            "messageType": self.spaces.name(type.message),
            "element": self.spaces.name(type.element),
            "type": self.spaces.name(type.type),
        }

    def declared(self, declared: Declared, implied: frozenset[str] = frozenset()) -> list[Tag]:
        """All that a scope declares, without the variables that its event handler implies."""
        firsts = {copy.target.variable: copy for copy in declared.first}
        groups = {
            "partnerLinks": [self._link(name, link) for name, link in declared.partner_links.items()],
            "messageExchanges": [tag("bpel:messageExchange", {"name": name}) for name in declared.exchanges],
            "variables": [
                self._variable(name, type, firsts.get(name))
                for name, type in declared.types.items()
                if name not in implied
            ],
            "correlationSets": [
                tag("bpel:correlationSet", {"name": name, "properties": " ".join(map(self.spaces.name, properties))})
                for name, properties in declared.correlation_sets.items()
            ],
        }
        return [tag(f"bpel:{name}", {}, *inside) for name, inside in groups.items() if inside]

    def _link(self, name: str, link: PartnerLink) -> Tag:
        attributes = {
            "name": name,
            "partnerLinkType": self.spaces.name(link.type),
            "myRole": link.my_role,
            "partnerRole": link.partner_role,
            "initializePartnerRole": YES_NO[link.initialize],
        }
        return tag("bpel:partnerLink", attributes)

    def _variable(self, name: str, type: XmlType, first: XmlCopy | None) -> Tag:
        begun = self.source(first.source) if first is not None else None
        return tag("bpel:variable", {"name": name, **self.type(type)}, begun)


def _literal(literal: str) -> str:
    """The literal as it was read, in BPEL's namespace."""
    inside = literal.removeprefix("<literal")
    if inside.endswith("</literal>"):
        inside = f"{inside.removesuffix('</literal>')}</bpel:literal>"
    return f"<bpel:literal{inside}"
