"""Expressions that cannot work, and those in XPath 2.0 that may mean something else as XPath 1.0.

BPEL has an expression that cannot be parsed throw a fault when it is evaluated, which a process may catch. So these are
no reason to refuse a process; they are told to whoever checks one."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.expressions.xpath.calls import CallTerm
from mendflow.core.expressions.xpath.paths import FilterTerm, LocationPath
from mendflow.core.expressions.xpath.terms import ArithmeticTerm, ComparisonTerm, NumberTerm, Term
from mendflow.formats.bpel.analysis.process_view import ProcessView
from mendflow.formats.bpel.analysis.rules import Violation
from mendflow.formats.bpel.analysis.xpath_sources import COUNTERS, EXPRESSIONS, xpath_sources
from mendflow.formats.bpel.names import local_name
from mendflow.formats.bpel.reader import abbreviate, text_of
from mendflow.formats.bpel.vocabulary import XPATH_2_0

ORDER: Final = frozenset({"<", "<=", ">", ">="})
TEXTS: Final = ("string", "concat", "contains", "starts-with", "substring", "substring-before", "substring-after")
TEXT_FUNCTIONS: Final = frozenset(
    {*TEXTS, "string-length", "normalize-space", "translate", "number", "floor", "ceiling", "round"}
)


def flaws(view: ProcessView) -> Iterator[Violation]:
    """Expressions that are empty, or that cannot be parsed."""
    for at in view.all(*EXPRESSIONS, *COUNTERS, "query"):
        if not text_of(at).strip():
            yield Violation(at, f"<{local_name(at)}> is empty: write the expression that it is about")
    for source in xpath_sources(view):
        if (error := source.flaw()) is not None:
            yield Violation(source.at, f"{abbreviate(source.text)} can never be evaluated: {error}", source.file)


def differences(view: ProcessView) -> Iterator[Violation]:
    """Expressions in XPath 2.0 that XPath 1.0 understands, and perhaps in another way."""
    for source in xpath_sources(view, XPATH_2_0):
        term = source.term()
        for reason in dict.fromkeys(_differences(term) if term is not None else ()):
            yield Violation(source.at, f"{abbreviate(source.text)}: {reason}", source.file)


def _differences(whole: Term) -> Iterator[str]:
    for term in whole.all_terms():
        if isinstance(term, ComparisonTerm) and _orders_texts(term):
            yield "XPath 1.0 compares as numbers, and XPath 2.0 compares texts as texts, unless types are known"
        elif isinstance(term, ArithmeticTerm) and any(map(_is_path, term.inner())):
            yield "with a path that selects nothing XPath 1.0 calculates NaN, and XPath 2.0 nothing"
        elif isinstance(term, CallTerm) and term.name in TEXT_FUNCTIONS and any(map(_is_path, term.inner())):
            yield f"of several nodes {term.name}() takes the first in XPath 1.0, and XPath 2.0 refuses them"


def _orders_texts(term: ComparisonTerm) -> bool:
    ordered = any(operator in ORDER for operator, _ in term.rest)
    return ordered and not any(isinstance(each, NumberTerm | ArithmeticTerm) for each in term.inner())


def _is_path(term: Term) -> bool:
    """Whether it may select no node, or several; a variable alone is one value."""
    return isinstance(term, LocationPath | FilterTerm)
