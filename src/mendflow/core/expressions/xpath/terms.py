"""The terms of an expression, each of which gives its value at a focus. A chain of operators of one precedence is one
term, so that a long one is no deeper than a short one."""

import math
from collections.abc import Callable, Iterable, Iterator
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Final

import msgspec

from mendflow.core.expressions.xpath.evaluation import Focus, UninitializedVariable
from mendflow.core.expressions.xpath.values import XValue, compare, to_boolean, to_number, to_xpath_value


class FocusPart(Flag):
    """What a focus has: a context node, its position, and how many there are."""

    NODE = auto()
    POSITION = auto()
    SIZE = auto()


class Term(msgspec.Struct, frozen=True, kw_only=True):
    asks: FocusPart = FocusPart(0)
    """What it may ask of the focus. What asks nothing gives the same at every focus of an evaluation."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "asks", self.asked_of_focus())

    def value(self, focus: Focus) -> XValue:
        """What it gives there; each kind of term in its own way."""
        raise AssertionError(f"{type(self).__name__} gives nothing")

    def inner(self) -> Iterable["Term"]:
        """The terms that it is made of."""
        return ()

    def asked_of_focus(self) -> FocusPart:
        return reduce(or_, (term.asks for term in self.inner()), FocusPart(0))

    @property
    def attribute(self) -> str:
        """The name of the context node's attribute that it is, if it is one and no more."""
        return ""

    def all_terms(self) -> Iterator["Term"]:
        """It and all within it."""
        yield self
        for term in self.inner():
            yield from term.all_terms()


class StringTerm(Term, frozen=True):
    text: str

    def value(self, focus: Focus) -> XValue:
        return self.text


class NumberTerm(Term, frozen=True):
    number: float

    def value(self, focus: Focus) -> XValue:
        return self.number


class VariableTerm(Term, frozen=True):
    """`$name`, or `$name.part`. A name with a dot may also be one whole name, as names of links are."""

    name: str

    def value(self, focus: Focus) -> XValue:
        lookup = focus.run.world.lookup
        name, _, part = self.name.partition(".")
        try:
            held = lookup(name)
        except KeyError:
            return self._whole(focus, name, part)
        if not part:
            return to_xpath_value(held, f"${name}")
        if not isinstance(held, dict):
            return self._whole(focus, name, part)
        if part not in held:
            raise UninitializedVariable(name, part)
        return to_xpath_value(held[part], f"${self.name}")

    def _whole(self, focus: Focus, name: str, part: str) -> XValue:
        try:
            held = focus.run.world.lookup(self.name) if part else None
        except KeyError:
            held = None
        if held is None:
            raise UninitializedVariable(name, part)
        return to_xpath_value(held, f"${self.name}")


class NegationTerm(Term, frozen=True):
    term: Term

    def inner(self) -> Iterable[Term]:
        return (self.term,)

    def value(self, focus: Focus) -> XValue:
        return -to_number(self.term.value(focus), focus.run)


class LogicTerm(Term, frozen=True):
    """`and` or `or`: what decides ends it, and nothing behind that is looked at."""

    operator: str
    parts: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.parts

    def value(self, focus: Focus) -> XValue:
        values = (to_boolean(part.value(focus)) for part in self.parts)
        return any(values) if self.operator == "or" else all(values)


class ComparisonTerm(Term, frozen=True):
    """From left to right: `3 > 2 > 1` compares 1 with what `3 > 2` gave."""

    first: Term
    rest: tuple[tuple[str, Term], ...]

    def inner(self) -> Iterable[Term]:
        return (self.first, *(term for _, term in self.rest))

    def value(self, focus: Focus) -> XValue:
        found = self.first.value(focus)
        for operator, term in self.rest:
            found = compare(operator, found, term.value(focus), focus.run)
        return found


class ArithmeticTerm(Term, frozen=True):
    first: Term
    rest: tuple[tuple[str, Term], ...]

    def inner(self) -> Iterable[Term]:
        return (self.first, *(term for _, term in self.rest))

    def value(self, focus: Focus) -> XValue:
        found = to_number(self.first.value(focus), focus.run)
        for operator, term in self.rest:
            found = OPERATORS[operator](found, to_number(term.value(focus), focus.run))
        return found


def _div(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _mod(a: float, b: float) -> float:
    return math.nan if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


OPERATORS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "div": _div,
    "mod": _mod,
}
