"""The XPath expressions of a process: where they are, and which functions of BPEL they call.

Calls are found among the tokens of an expression, not in its tree: a wrong call often cannot be parsed, and that is
what rules check."""

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from mendflow.core.expressions.xpath.evaluation import XPathError
from mendflow.core.expressions.xpath.flow_functions import PROPERTY, TRANSFORM
from mendflow.core.expressions.xpath.lexer import XPathToken, tokenize
from mendflow.core.expressions.xpath.parser import parse
from mendflow.core.expressions.xpath.terms import Term
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import ProcessView, word
from mendflow.formats.bpel.names import local_name, own_elements
from mendflow.formats.bpel.reader import text_of
from mendflow.formats.bpel.vocabulary import BPEL, PROPERTIES, XPATH_1_0

EXPRESSIONS: Final = ("condition", "joinCondition", "transitionCondition", "for", "until", "repeatEvery")
COUNTERS: Final = ("startCounterValue", "finalCounterValue", "branches")
QNAME: Final = re.compile(r"[^\W\d][\w.\-]*(:[^\W\d][\w.\-]*)?")

Kind = Literal["expression", "query", "alias"]


class XPathSource(msgspec.Struct, frozen=True):
    """An expression or a query in XPath, and the file that it stands in, if that is not the process."""

    at: ParsedElement
    text: str
    kind: Kind
    file: str = ""

    def term(self) -> Term | None:
        """None for what cannot be parsed: that is seen when it is evaluated, as BPEL has it."""
        try:
            return self._parsed()
        except XPathError:
            return None

    def flaw(self) -> XPathError | None:
        """Why it cannot be parsed; None if it can."""
        try:
            self._parsed()
        except XPathError as error:
            return error
        return None

    def _parsed(self) -> Term:
        return parse(self.text, {prefix: uri for prefix, uri in self.at.nsmap.items() if prefix})


class XPathFunctionCall(msgspec.Struct, frozen=True):
    """A call of a function of BPEL. Each argument is a text in quotation marks, without them, or None."""

    where: XPathSource
    name: str
    arguments: tuple[str | None, ...]


def xpath_sources(view: ProcessView, language: str = XPATH_1_0) -> Iterator[XPathSource]:
    """All that is in XPath, by default in XPath 1.0, but for what is empty."""
    for at in view.all(*EXPRESSIONS, *COUNTERS):
        yield from _in(view, at, "expression", language)
    for at in view.all("from", "to"):
        if (
            not any(at.get(name) is not None for name in ("variable", "partnerLink"))
            and next(own_elements(at), None) is None
        ):
            yield from _in(view, at, "expression", language)
    for at in view.all("query"):
        yield from _in(view, at, "query", language)
    for document in view.definitions.documents:
        for alias in document.root.iterchildren(f"{{{PROPERTIES}}}propertyAlias"):
            for query in alias.iterchildren(f"{{{PROPERTIES}}}query"):
                if (text := text_of(query).strip()) and (word(query, "queryLanguage") or XPATH_1_0) == language:
                    yield XPathSource(query, text, "alias", document.file)


def function_calls(expression: XPathSource) -> list[XPathFunctionCall]:
    """The functions of BPEL that it calls."""
    try:
        words = tokenize(expression.text)
    except XPathError:
        return []
    return [
        XPathFunctionCall(expression, word.text.rpartition(":")[2], _arguments(words[at + 2 :]))
        for at, word in enumerate(words[:-1])
        if word.kind == "name" and words[at + 1].text == "(" and _is_ours(expression.at, word.text)
    ]


def property_calls(view: ProcessView) -> Iterator[tuple[ParsedElement, str, str]]:
    """Where a property is asked for in an expression: the variable and the property, by its full name."""
    for expression in xpath_sources(view):
        for call in function_calls(expression):
            if call.name == PROPERTY and len(call.arguments) == 2 and all(call.arguments):
                variable, property = call.arguments
                assert variable is not None and property is not None
                prefix = property.rpartition(":")[0]
                if QNAME.fullmatch(property) and (not prefix or prefix in expression.at.nsmap):
                    yield expression.at, variable, view.resolved(expression.at, property) if prefix else property


def _in(view: ProcessView, at: ParsedElement, kind: Kind, language: str) -> Iterator[XPathSource]:
    attribute = "queryLanguage" if kind == "query" else "expressionLanguage"
    spoken = word(at, attribute) or word(view.root, attribute) or XPATH_1_0
    if (text := text_of(at).strip()) and spoken == language:
        yield XPathSource(at, text, kind)


def _is_ours(at: ParsedElement, name: str) -> bool:
    prefix, _, function = name.rpartition(":")
    return function in (PROPERTY, TRANSFORM) and at.nsmap.get(prefix or None) == BPEL


def _arguments(words: list[XPathToken]) -> tuple[str | None, ...]:
    """What stands between the parentheses, the first of which is gone already."""
    depth, found, now = 0, [], list[XPathToken]()
    for token in words:
        if token.text in (")", "end") and depth == 0:
            break
        if token.text == "," and depth == 0:
            found.append(now)
            now = []
            continue
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        now.append(token)
    return tuple(map(_quoted, [*found, now])) if now or found else ()


def _quoted(words: list[XPathToken]) -> str | None:
    return words[0].text[1:-1] if len(words) == 1 and words[0].kind == "literal" else None


def is_join(expression: XPathSource) -> bool:
    return local_name(expression.at) == "joinCondition"
