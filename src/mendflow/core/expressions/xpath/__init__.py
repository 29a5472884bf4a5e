"""XPath 1.0, with BPEL's additions, on our own trees.

An expression is parsed once and cached. It reads the flow through an `XPathEnvironment`; an error is an `XPathError`,
which has the standard fault of BPEL."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from mendflow.core.expressions.xpath.calls import CallTerm
from mendflow.core.expressions.xpath.evaluation import (
    Evaluation,
    Focus,
    TooMuchXPathWork,
    UninitializedVariable,
    XPathEnvironment,
    XPathError,
)
from mendflow.core.expressions.xpath.flow_functions import PROPERTY, value_of
from mendflow.core.expressions.xpath.parser import parse
from mendflow.core.expressions.xpath.paths import nodes_of
from mendflow.core.expressions.xpath.terms import StringTerm, Term, VariableTerm
from mendflow.core.expressions.xpath.values import XValue, to_boolean, to_number, to_string
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value
from mendflow.core.xml.tree import Node

T = TypeVar("T")

__all__ = [
    "TooMuchXPathWork",
    "UninitializedVariable",
    "XPathEnvironment",
    "XPathError",
    "XValue",
    "evaluate",
    "flaw",
    "names",
    "number",
    "select",
    "text",
    "truth",
    "value",
]


def evaluate(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> XValue:
    """What it gives: a truth value, a number, a text, or a list of nodes in document order."""
    return _evaluated(expr, world, context, _whole)


def value(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> Value:
    """What it gives, as a value of the flow."""
    return _evaluated(expr, world, context, value_of)


def select(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> list[Node]:
    """The nodes that it selects, in document order."""
    return nodes_of(evaluate(expr, world, context), f"`{expr.text:.80}` gives")


def truth(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> bool:
    return to_boolean(evaluate(expr, world, context))


def text(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> str:
    return _evaluated(expr, world, context, to_string)


def number(expr: Expr, world: XPathEnvironment, context: Node | None = None) -> float:
    return _evaluated(expr, world, context, to_number)


def _whole(value: XValue, _: Evaluation) -> XValue:
    """A list of nodes may be the tree's own, so who asked gets another."""
    return list(value) if isinstance(value, list) else value


def _evaluated(
    expr: Expr, world: XPathEnvironment, context: Node | None, wanted: Callable[[XValue, Evaluation], T]
) -> T:
    term, run = _term(expr), Evaluation(world)
    try:
        return wanted(term.value(Focus(run, context)), run)
    finally:
        run.end()


def names(expr: Expr) -> frozenset[str]:
    """The variables that it asks for. One that cannot be parsed asks for none."""
    found = _compiled(expr.text, expr.namespaces)
    return frozenset() if isinstance(found, XPathError) else frozenset(_asked_by(found))


def flaw(expr: Expr) -> XPathError | None:
    """Why it can never give anything, or None."""
    found = _compiled(expr.text, expr.namespaces)
    return found if isinstance(found, XPathError) else None


def _term(expr: Expr) -> Term:
    found = _compiled(expr.text, expr.namespaces)
    if isinstance(found, XPathError):
        raise XPathError(found.message, found.offset, found.fault)
    return found


@lru_cache(maxsize=4096)
def _compiled(text: str, namespaces: tuple[tuple[str, str], ...]) -> Term | XPathError:
    try:
        return parse(text, dict(namespaces))
    except XPathError as error:
        return error


def _asked_by(term: Term) -> set[str]:
    found = set()
    for each in term.all_terms():
        if isinstance(each, VariableTerm):
            found.add(each.name.partition(".")[0])
        elif isinstance(each, CallTerm) and each.name == PROPERTY and isinstance(each.arguments[0], StringTerm):
            found.add(each.arguments[0].text)
    return found
