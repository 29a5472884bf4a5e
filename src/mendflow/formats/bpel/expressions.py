"""Expressions and queries: their text, language and prefixes.

Whether an expression can be parsed is checked at evaluation, as in BPEL: it then throws `subLanguageExecutionFault`.
Only its language is checked here."""

import re
from typing import Final

import msgspec

from mendflow.core.model.expr import CEL, XPATH, Expr
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.names import local_name
from mendflow.formats.bpel.reader import XmlReader, abbreviate, text_of
from mendflow.formats.bpel.vocabulary import CEL_LANGUAGE, XPATH_1_0, XPATH_2_0

LANGUAGES: Final = {XPATH_1_0: XPATH, CEL_LANGUAGE: CEL}
PREFIX: Final = re.compile(r"([^\W\d][\w.-]*):(?!:)")
TRANSFORM: Final = re.compile(r"\bdoXslTransform\s*\(\s*(?:\"([^\"]*)\"|'([^']*)')?")


class Languages(msgspec.Struct, frozen=True):
    """What a process says its expressions and queries are in, where they do not say it themselves."""

    expressions: str = XPATH_1_0
    queries: str = XPATH_1_0


def expression_of(reader: XmlReader, at: ParsedElement, languages: Languages) -> Expr:
    """The expression that an element holds."""
    expr = expression_in(reader, at, "expressionLanguage", languages.expressions)
    if TRANSFORM.search(expr.text) and expr.language == XPATH and local_name(at) != "from":
        reader.problem(
            at,
            f"doXslTransform cannot stand in <{local_name(at)}>: transform in the <from> of an assign before it, into"
            " a variable, and use that here",
        )
    return expr


def query_of(reader: XmlReader, at: ParsedElement, languages: Languages) -> Expr:
    return expression_in(reader, at, "queryLanguage", languages.queries)


def expression_in(reader: XmlReader, at: ParsedElement, attribute: str, otherwise: str) -> Expr:
    for child in at.iterchildren("*"):
        reader.problem(child, f"<{local_name(at)}> holds an expression and no elements; it has <{local_name(child)}>")
    text = text_of(at).strip()
    language = language_of(reader, at, attribute, otherwise)
    return Expr(text, language, prefixes_used(at, text) if language == XPATH else ())


def language_of(reader: XmlReader, at: ParsedElement, attribute: str, otherwise: str) -> str:
    language = at.get(attribute, "").strip() or otherwise
    if language not in LANGUAGES:
        advice = f"write it in XPath 1.0, which is {XPATH_1_0}"
        if language == XPATH_2_0:
            advice += ", or have it read as that with --xpath2-as-1"
        reader.problem(at, f"SA00004: nobody here knows the language {abbreviate(language)}; {advice}")
    return LANGUAGES.get(language, XPATH)


def read_xpath_2_as_1(root: ParsedElement) -> None:
    """Let all that says it is in XPath 2.0 say that it is in XPath 1.0."""
    for each in root.iter("*"):
        for name in ("expressionLanguage", "queryLanguage"):
            if each.get(name, "").strip() == XPATH_2_0:
                each.set(name, XPATH_1_0)


def prefixes_used(at: ParsedElement, text: str) -> tuple[tuple[str, str], ...]:
    """The prefixes around an element that a text may use, in their order."""
    return tuple(sorted((prefix, at.nsmap[prefix]) for prefix in set(PREFIX.findall(text)) if prefix in at.nsmap))


def stylesheets_in(text: str) -> list[str]:
    """The style sheets that an expression names."""
    return [first or second for first, second in TRANSFORM.findall(text) if first or second]
