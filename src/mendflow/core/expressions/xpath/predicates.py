"""Predicates, each decided with as few visited nodes as possible.

Most select one node by number, or compare something of each node with a constant. The first kind visits no node, and
constants are evaluated once. The kind is determined when the predicate is parsed, so the work is the same each time."""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.expressions.xpath.calls import CallTerm
from mendflow.core.expressions.xpath.evaluation import Evaluation, Focus
from mendflow.core.expressions.xpath.terms import (
    ArithmeticTerm,
    ComparisonTerm,
    FocusPart,
    LogicTerm,
    NegationTerm,
    NumberTerm,
    StringTerm,
    Term,
)
from mendflow.core.expressions.xpath.values import SWAPPED, XValue, compare, text_number, to_boolean, to_number
from mendflow.core.xml.tree import Attribute, Element, Node

ONE_BY_ONE: Final = FocusPart.NODE | FocusPart.POSITION


class Predicate(msgspec.Struct, frozen=True):
    """One of no special kind: each node is looked at. `asked` is the term as it is written, `term` the same with all
    that need not be found again marked."""

    asked: Term
    term: Term

    def apply(self, nodes: list[Node], run: Evaluation) -> list[Node]:
        """Those that it holds for. A number asks for the position. The list that came in stays as it is."""
        run.spend(len(nodes))
        size, found = len(nodes), []
        for place, node in enumerate(nodes, 1):
            value = self.term.value(Focus(run, node, place, size))
            if value == place if isinstance(value, float) else to_boolean(value):
                found.append(node)
        return found


class ConstantPredicate(Predicate, frozen=True):
    """One that says the same of all nodes: a number picks one of them, anything else takes all or none."""

    def apply(self, nodes: list[Node], run: Evaluation) -> list[Node]:
        run.spend(1)
        if not nodes:
            return []
        value = self.term.value(Focus(run, None, 1, len(nodes)))
        if isinstance(value, float):
            return _at(nodes, "=", value)
        return list(nodes) if to_boolean(value) else []


class PositionPredicate(Predicate, frozen=True):
    """`position() = term`, or another comparison with it."""

    operator: str

    def apply(self, nodes: list[Node], run: Evaluation) -> list[Node]:
        run.spend(1)
        if not nodes:
            return []
        value = self.term.value(Focus(run, None, 1, len(nodes)))
        if isinstance(value, float | str):
            return _at(nodes, self.operator, to_number(value, run))
        run.spend(len(nodes))
        return [node for place, node in enumerate(nodes, 1) if compare(self.operator, float(place), value, run)]


class AttributePredicate(Predicate, frozen=True):
    """`@name = term`."""

    name: str

    def apply(self, nodes: list[Node], run: Evaluation) -> list[Node]:
        run.spend(2 * len(nodes))
        if not nodes:
            return []
        value = self.term.value(Focus(run, None, 1, len(nodes)))
        if isinstance(value, str):
            return [node for node in nodes if (mark := self._of(node)) is not None and mark.value == value]
        if isinstance(value, float):
            return [
                node
                for node in nodes
                if (mark := self._of(node)) is not None and text_number(run.string(mark)) == value
            ]
        marks = [(node, self._of(node)) for node in nodes]
        return [node for node, mark in marks if compare("=", [] if mark is None else [mark], value, run)]

    def _of(self, node: Node) -> Attribute | None:
        return node.attributes.get(self.name) if isinstance(node, Element) else None


def _at(nodes: list[Node], operator: str, number: float) -> list[Node]:
    """Those whose position compares so with a number."""
    if math.isnan(number):
        return []
    number = min(max(number, 0.0), len(nodes) + 1.0)
    below, up_to = max(math.ceil(number) - 1, 0), math.floor(number)
    match operator:
        case "<":
            return nodes[:below]
        case "<=":
            return nodes[:up_to]
        case ">":
            return nodes[up_to:]
        case ">=":
            return nodes[below:]
    return nodes[below:up_to]


class CachedTerm(Term, frozen=True):
    """A term that gives the same at every focus: it is asked once in an evaluation."""

    term: Term

    def inner(self) -> Iterable[Term]:
        return (self.term,)

    def value(self, focus: Focus) -> XValue:
        kept = focus.run.once
        found: XValue | None = kept.get(id(self))
        if found is None:
            found = kept[id(self)] = self.term.value(focus)
        return found


def predicate_of(asked: Term) -> Predicate:
    """The predicate that a term is."""
    if not asked.asks & ONE_BY_ONE:
        return ConstantPredicate(asked, cache_constant_terms(asked))
    if isinstance(asked, ComparisonTerm) and len(asked.rest) == 1:
        ((operator, right),) = asked.rest
        for one, other, how in ((asked.first, right, operator), (right, asked.first, SWAPPED[operator])):
            if other.asks & ONE_BY_ONE:
                continue
            if isinstance(one, CallTerm) and one.function.asks == FocusPart.POSITION and how != "!=":
                return PositionPredicate(asked, cache_constant_terms(other), how)
            if one.attribute and how == "=":
                return AttributePredicate(asked, cache_constant_terms(other), one.attribute)
    return Predicate(asked, cache_constant_terms(asked))


def cache_constant_terms(term: Term) -> Term:
    """The term, with each largest part that gives the same at every focus made one that is asked once."""
    if isinstance(term, NumberTerm | StringTerm):
        return term
    if not term.asks:
        return CachedTerm(term)
    match term:
        case ComparisonTerm(first, rest) | ArithmeticTerm(first, rest):
            return type(term)(
                cache_constant_terms(first), tuple((operator, cache_constant_terms(each)) for operator, each in rest)
            )
        case LogicTerm(operator, parts):
            return LogicTerm(operator, tuple(map(cache_constant_terms, parts)))
        case NegationTerm(inner):
            return NegationTerm(cache_constant_terms(inner))
        case CallTerm(name, function, arguments):
            return CallTerm(name, function, tuple(map(cache_constant_terms, arguments)))
    return term
