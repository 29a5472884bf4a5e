"""Rules about expressions and queries. Only expressions that can be parsed, or at least tokenized, are checked: others
throw `subLanguageExecutionFault` when they are evaluated."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.expressions.xpath.calls import CallTerm
from mendflow.core.expressions.xpath.flow_functions import PROPERTY, TRANSFORM
from mendflow.core.expressions.xpath.paths import FilterTerm, LocationPath
from mendflow.core.expressions.xpath.terms import LogicTerm, Term, VariableTerm
from mendflow.formats.bpel.analysis.process_view import ProcessView, word
from mendflow.formats.bpel.analysis.rules import Violation, rule
from mendflow.formats.bpel.analysis.xpath_sources import (
    QNAME,
    XPathFunctionCall,
    XPathSource,
    function_calls,
    is_join,
    xpath_sources,
)
from mendflow.formats.bpel.names import local_name, own_elements
from mendflow.formats.bpel.reader import abbreviate

BOOLEAN: Final = frozenset({"not", "true", "false", "boolean"})


@rule(27)
def expressions_begin_with_a_variable(view: ProcessView) -> Iterator[Violation]:
    """A path in an expression begins with a variable, since there is nothing else that it could begin from. A lone name
    is left to the evaluation, which throws `subLanguageExecutionFault`."""
    for expression in _of_kind(view, "expression"):
        term = expression.term()
        if term is not None and any(_has_no_start(path) for path in _outermost_paths(term)):
            yield _finding(expression, f"{abbreviate(expression.text)} has a path that does not begin with a variable")


@rule(28)
def joins_call_no_function(view: ProcessView) -> Iterator[Violation]:
    """A join condition calls no function of BPEL."""
    for expression in filter(is_join, _of_kind(view, "expression")):
        for call in function_calls(expression):
            yield _finding(expression, f"a joinCondition knows nothing but links: {call.name}() cannot stand in it")


@rule(29)
def aliases_ask_for_nothing_else(view: ProcessView) -> Iterator[Violation]:
    """The query of a property alias uses no variable and no function of BPEL."""
    for query in _of_kind(view, "alias"):
        term = query.term()
        used = (
            [f"${each.name}" for each in term.all_terms() if isinstance(each, VariableTerm)] if term is not None else []
        )
        for name in (*used, *(f"{call.name}()" for call in function_calls(query))):
            yield _finding(query, f"the query of an alias sees only the part that it is about, and not {name}")


@rule(30)
def properties_are_asked_for_by_texts(view: ProcessView) -> Iterator[Violation]:
    """The arguments of getVariableProperty are texts in quotation marks."""
    for call in _calls(view, PROPERTY):
        if len(call.arguments) != 2 or None in call.arguments:
            yield _finding(call.where, "getVariableProperty takes two texts in quotation marks: a variable, a property")


@rule(31)
def properties_are_asked_for_by_names(view: ProcessView) -> Iterator[Violation]:
    """The second argument of getVariableProperty is a qualified name."""
    for call in _calls(view, PROPERTY):
        if len(call.arguments) == 2 and call.arguments[1] is not None and not _is_name(call, call.arguments[1]):
            yield _finding(
                call.where, f"{abbreviate(call.arguments[1])} is no qualified name whose prefix is declared here"
            )


@rule(33)
def places_begin_with_a_variable(view: ProcessView) -> Iterator[Violation]:
    """The expression in a <to> begins with a variable."""
    for expression in _of_kind(view, "expression"):
        if local_name(expression.at) == "to" and not expression.text.startswith("$"):
            yield _finding(expression, f"{abbreviate(expression.text)} has to begin with a variable, as in $order/item")


@rule(39)
def sheets_are_named_by_texts(view: ProcessView) -> Iterator[Violation]:
    """The first argument of doXslTransform is a text in quotation marks."""
    for call in _calls(view, TRANSFORM):
        if not call.arguments or call.arguments[0] is None:
            yield _finding(
                call.where, "the first argument of doXslTransform is a style sheet's address in quotation marks"
            )


@rule(40)
def parameters_come_in_pairs(view: ProcessView) -> Iterator[Violation]:
    """After style sheet and source, doXslTransform has pairs of a name and a value."""
    for call in _calls(view, TRANSFORM):
        if len(call.arguments) < 2 or len(call.arguments) % 2:
            yield _finding(call.where, "doXslTransform takes a style sheet, a source, and pairs of a name and a value")


@rule(41)
def parameters_have_names(view: ProcessView) -> Iterator[Violation]:
    """The names of doXslTransform's parameters are qualified names in quotation marks."""
    for call in _calls(view, TRANSFORM):
        for name in call.arguments[2::2]:
            if name is None or not _is_name(call, name):
                yield _finding(
                    call.where, "a parameter of doXslTransform is named by a qualified name in quotation marks"
                )


@rule(73)
def joins_are_about_links(view: ProcessView) -> Iterator[Violation]:
    """A join condition is made of the links that lead to its activity, with and, or and not."""
    for expression in filter(is_join, _of_kind(view, "expression")):
        term = expression.term()
        targets = expression.at.getparent()
        if term is None or targets is None or function_calls(expression):
            continue
        links = {word(each, "linkName") for each in own_elements(targets, "target")}
        if strange := next((each for each in term.all_terms() if not _is_join_condition(each, links)), None):
            named = f"${strange.name}" if isinstance(strange, VariableTerm) else abbreviate(expression.text)
            yield _finding(expression, f"{named}: a joinCondition has the activity's own links, and, or, not()")


def _of_kind(view: ProcessView, kind: str) -> Iterator[XPathSource]:
    return (expression for expression in xpath_sources(view) if expression.kind == kind)


def _calls(view: ProcessView, name: str) -> Iterator[XPathFunctionCall]:
    return (call for expression in xpath_sources(view) for call in function_calls(expression) if call.name == name)


def _finding(expression: XPathSource, message: str) -> Violation:
    return Violation(expression.at, message, expression.file)


def _is_name(call: XPathFunctionCall, name: str) -> bool:
    prefix = name.rpartition(":")[0]
    return QNAME.fullmatch(name) is not None and (not prefix or prefix in call.where.at.nsmap)


def _outermost_paths(term: Term) -> Iterator[LocationPath]:
    """The paths of an expression that begin from its own context; those in predicates have another one."""
    if isinstance(term, LocationPath):
        if term.start is None:
            yield term
        else:
            yield from _outermost_paths(term.start)
    elif isinstance(term, FilterTerm):
        yield from _outermost_paths(term.start)
    else:
        for inner in term.inner():
            yield from _outermost_paths(inner)


def _has_no_start(path: LocationPath) -> bool:
    lone_name = not path.absolute and len(path.steps) == 1 and path.steps[0].axis == "child"
    return not lone_name


def _is_join_condition(term: Term, links: set[str]) -> bool:
    if isinstance(term, VariableTerm):
        return term.name in links
    return isinstance(term, LogicTerm) or (isinstance(term, CallTerm) and term.name in BOOLEAN)
