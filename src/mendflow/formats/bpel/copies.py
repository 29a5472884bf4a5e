"""The forms of `from` and `to`."""

from copy import deepcopy
from typing import Final, Literal

from lxml import etree

from mendflow.core.model.expr import XPATH
from mendflow.core.model.xml import XmlCopy, XmlSource, XmlTarget
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.expressions import PREFIX, expression_of, query_of, stylesheets_in
from mendflow.formats.bpel.names import local_name, own_elements
from mendflow.formats.bpel.process_reader import ProcessReader
from mendflow.formats.bpel.reader import text_of
from mendflow.formats.bpel.stylesheets import add_stylesheet

FROM: Final = ("variable", "part", "property", "partnerLink", "endpointReference", "expressionLanguage")
TO: Final = ("variable", "part", "property", "partnerLink", "expressionLanguage")
ROLES: Final = ("myRole", "partnerRole")
PLACES: Final = (
    frozenset({"variable", "part", "<query>"}),
    frozenset({"variable", "property"}),
    frozenset({"expressionLanguage", "an expression"}),
)
FROM_FORMS: Final = (*PLACES, frozenset({"partnerLink", "endpointReference"}), frozenset({"<literal>"}))
TO_FORMS: Final = (*PLACES, frozenset({"partnerLink"}))
"""What may stand together."""


def copy_of(process: ProcessReader, at: ParsedElement) -> XmlCopy:
    process.only(at, ("keepSrcElementName", "ignoreMissingFromData"))
    parts = process.parts(at, {"from": 1, "to": 1})
    for name in ("from", "to"):
        if not parts[name]:
            process.problem(at, f"a <copy> needs a <{name}>")
    return XmlCopy(
        source=source_of(process, parts["from"][0]) if parts["from"] else XmlSource(empty=True),
        target=target_of(process, parts["to"][0]) if parts["to"] else XmlTarget(),
        keep_name=process.truth(at, "keepSrcElementName"),
        ignore_missing=process.truth(at, "ignoreMissingFromData"),
    )


def source_of(process: ProcessReader, at: ParsedElement) -> XmlSource:
    """A `from` in any of its forms."""
    process.only(at, FROM)
    _one_form(process, at, FROM_FORMS)
    literals, queries = list(own_elements(at, "literal")), list(own_elements(at, "query"))
    if literals:
        return XmlSource(literal=literal_of(literals[0]))
    if at.get("partnerLink") is not None:
        process.needed(at, "endpointReference")
        return XmlSource(partner_link=process.needed(at, "partnerLink"), endpoint=_role(process, at))
    if at.get("variable") is not None:
        return XmlSource(
            variable=process.needed(at, "variable"),
            part=at.get("part", "").strip(),
            property=process.qname(at, "property"),
            query=query_of(process, queries[0], process.languages) if queries else None,
        )
    if not at.attrib and not text_of(at).strip():
        return XmlSource(empty=True)
    expression = expression_of(process, at, process.languages)
    if expression.language == XPATH:
        for address in stylesheets_in(expression.text):
            add_stylesheet(address, process.places, process.sheets)
    return XmlSource(expression=expression)


def target_of(process: ProcessReader, at: ParsedElement) -> XmlTarget:
    """A `to` in any of its forms."""
    process.only(at, TO)
    _one_form(process, at, TO_FORMS)
    queries = list(own_elements(at, "query"))
    if at.get("partnerLink") is not None:
        return XmlTarget(partner_link=process.needed(at, "partnerLink"))
    if at.get("variable") is not None:
        return XmlTarget(
            variable=process.needed(at, "variable"),
            part=at.get("part", "").strip(),
            property=process.qname(at, "property"),
            query=query_of(process, queries[0], process.languages) if queries else None,
        )
    if not at.attrib and not text_of(at).strip():
        return XmlTarget()
    return XmlTarget(expression=expression_of(process, at, process.languages))


def _one_form(process: ProcessReader, at: ParsedElement, forms: tuple[frozenset[str], ...]) -> None:
    """Refuse what is of several forms at once."""
    given = {name for name in map(str, at.keys()) if not name.startswith("{")}
    given |= {f"<{local_name(each)}>" for each in own_elements(at) if local_name(each) != "documentation"}
    given |= {"an expression"} if text_of(at).strip() else set()
    if given == {"expressionLanguage"}:
        process.problem(at, f"SA00032: <{local_name(at)}> names a language and has no expression: write one")
    if not any(given <= form for form in forms):
        listed = ", ".join(sorted(given))
        process.problem(at, f"SA00032: <{local_name(at)}> has {listed}, which do not go together: choose one form")


def literal_of(at: ParsedElement) -> str:
    """The content of a literal with every prefix that it uses, in names or in texts."""
    spoken = {str(each.prefix) for each in at.iter("*") if each is not at and each.prefix}
    for each in at.iter("*"):
        texts = (text_of(each), *each.values(), *map(str, each.keys()))
        spoken |= {prefix for text in texts for prefix in PREFIX.findall(text)}
    kept = {prefix: uri for prefix, uri in at.nsmap.items() if prefix in spoken}
    root = etree.Element(local_name(at), nsmap=kept)
    root.text = at.text
    root.extend(deepcopy(child) for child in at)
    etree.cleanup_namespaces(root, keep_ns_prefixes=sorted(spoken))
    return etree.tostring(root, encoding="unicode")


def _role(process: ProcessReader, at: ParsedElement) -> Literal["myRole", "partnerRole"]:
    return "myRole" if process.one_of(at, "endpointReference", ROLES, "partnerRole") == "myRole" else "partnerRole"
