"""Writes copies, messages and declarations as BPEL."""

from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.xml import (
    Correlation,
    PartCopy,
    PartnerLink,
    ScopeDeclarations,
    XmlCopy,
    XmlMessage,
    XmlSource,
    XmlTarget,
    XmlType,
)
from mendflow.formats.bpel.vocabulary import CEL_LANGUAGE
from mendflow.formats.bpel.writing.namespaces import NamespacePrefixes
from mendflow.formats.bpel.writing.tags import RawXml, XmlTag, new_tag, text

YES_NO = {True: "yes", False: "no", None: ""}


class ElementWriter:
    """Writes what is inside activities."""

    def __init__(self, spaces: NamespacePrefixes) -> None:
        self.spaces = spaces

    def expression(self, name: str, expr: Expr, attributes: dict[str, str] | None = None) -> XmlTag:
        return self._spoken(name, expr, "expressionLanguage", attributes)

    def _spoken(self, name: str, expr: Expr, which: str, attributes: dict[str, str] | None = None) -> XmlTag:
        language = {which: CEL_LANGUAGE} if expr.language == CEL else {}
        return new_tag(
            f"bpel:{name}", {**(attributes or {}), **language, **self.spaces.declared(expr)}, text(expr.text)
        )

    # copies

    def copy(self, copy: XmlCopy) -> XmlTag:
        options = {
            "keepSrcElementName": "yes" if copy.keep_name else "",
            "ignoreMissingFromData": "yes" if copy.ignore_missing else "",
        }
        return new_tag("bpel:copy", options, self.source(copy.source), self._target(copy.target))

    def source(self, source: XmlSource) -> XmlTag:
        if source.literal is not None:
            return new_tag("bpel:from", {}, RawXml(_literal(source.literal)))
        if source.expression is not None:
            return self.expression("from", source.expression)
        if source.partner_link:
            return new_tag("bpel:from", {"partnerLink": source.partner_link, "endpointReference": source.endpoint})
        return self._place("from", source)

    def _target(self, target: XmlTarget) -> XmlTag:
        if target.expression is not None:
            return self.expression("to", target.expression)
        if target.partner_link:
            return new_tag("bpel:to", {"partnerLink": target.partner_link})
        return self._place("to", target)

    def _place(self, name: str, place: XmlSource | XmlTarget) -> XmlTag:
        attributes = {"variable": place.variable, "part": place.part, "property": self.spaces.name(place.property)}
        query = self._spoken("query", place.query, "queryLanguage") if place.query is not None else None
        return new_tag(f"bpel:{name}", attributes, query)

    # messages

    def correlations(self, given: tuple[Correlation, ...]) -> XmlTag | None:
        inside = [
            new_tag("bpel:correlation", {"set": each.set, "initiate": each.initiate, "pattern": each.pattern})
            for each in given
        ]
        return new_tag("bpel:correlations", {}, *inside) if inside else None

    def to_parts(self, message: XmlMessage) -> XmlTag | None:
        return self._parts("toPart", "fromVariable", message.parts)

    def from_parts(self, message: XmlMessage) -> XmlTag | None:
        return self._parts("fromPart", "toVariable", message.parts)

    def _parts(self, name: str, variable: str, parts: tuple[PartCopy, ...]) -> XmlTag | None:
        inside = [new_tag(f"bpel:{name}", {"part": each.part, variable: each.variable}) for each in parts]
        return new_tag(f"bpel:{name}s", {}, *inside) if inside else None

    # declarations

    def type(self, type: XmlType) -> dict[str, str]:
        return {
            "messageType": self.spaces.name(type.message),
            "element": self.spaces.name(type.element),
            "type": self.spaces.name(type.type),
        }

    def declared(self, declared: ScopeDeclarations, implied: frozenset[str] = frozenset()) -> list[XmlTag]:
        """All that a scope declares, without the variables that its event handler implies."""
        firsts = {copy.target.variable: copy for copy in declared.first}
        groups = {
            "partnerLinks": [self._link(name, link) for name, link in declared.partner_links.items()],
            "messageExchanges": [new_tag("bpel:messageExchange", {"name": name}) for name in declared.exchanges],
            "variables": [
                self._variable(name, type, firsts.get(name))
                for name, type in declared.types.items()
                if name not in implied
            ],
            "correlationSets": [
                new_tag(
                    "bpel:correlationSet", {"name": name, "properties": " ".join(map(self.spaces.name, properties))}
                )
                for name, properties in declared.correlation_sets.items()
            ],
        }
        return [new_tag(f"bpel:{name}", {}, *inside) for name, inside in groups.items() if inside]

    def _link(self, name: str, link: PartnerLink) -> XmlTag:
        attributes = {
            "name": name,
            "partnerLinkType": self.spaces.name(link.type),
            "myRole": link.my_role,
            "partnerRole": link.partner_role,
            "initializePartnerRole": YES_NO[link.initialize],
        }
        return new_tag("bpel:partnerLink", attributes)

    def _variable(self, name: str, type: XmlType, first: XmlCopy | None) -> XmlTag:
        begun = self.source(first.source) if first is not None else None
        return new_tag("bpel:variable", {"name": name, **self.type(type)}, begun)


def _literal(literal: str) -> str:
    """The literal as it was read, in BPEL's namespace."""
    inside = literal.removeprefix("<literal")
    if inside.endswith("</literal>"):
        inside = f"{inside.removesuffix('</literal>')}</bpel:literal>"
    return f"<bpel:literal{inside}"
