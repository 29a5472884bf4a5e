"""What XPath expressions may read from a case: variables, links, properties, and results of style sheets."""

from collections.abc import Mapping
from math import inf
from typing import Final

from mendflow.core.engine.faults import INVALID_EXPRESSION_VALUE, UNINITIALIZED_VARIABLE, FlowFault, flow_fault
from mendflow.core.engine.name_lookup import NameLookup
from mendflow.core.engine.state import Case
from mendflow.core.engine.xml.declarations import parts_of, type_of_part, variable_at, world_of
from mendflow.core.engine.xml.properties import property_of
from mendflow.core.expressions import xpath
from mendflow.core.expressions.xpath.evaluation import StyleSheetRunner
from mendflow.core.model.expr import Expr
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_text
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.times import deadline_ms, duration_ms
from mendflow.core.xml.tree import Node

COUNTER_MAX: Final = 2**32 - 1
"""The most that an xsd:unsignedInt can say."""


FLOATS: Final = frozenset({"float", "double"})
INFINITE: Final = {"INF": inf, "-INF": -inf}


class XPathVariables:
    """The variables that an expression sees. `trees` are shown instead of what the variables hold; `links` are the
    states of links, in a join condition, which knows them by the names that they had before these were made unique."""

    def __init__(self, case: Case, env: int, links: Mapping[str, bool] | None = None) -> None:
        self.case, self.env = case, env
        self.names = NameLookup(case, env)
        self.links = {name.partition("~")[0]: state for name, state in (links or {}).items()}
        self.trees: dict[str, Value | Node] = {}
        self.transform: StyleSheetRunner | None = None

    def lookup(self, name: str) -> Value | Node:
        if name in self.links:
            return self.links[name]
        if name in self.trees:
            return self.trees[name]
        value = self.names(name)
        for text in texts_in(value):
            self.case.meter.look(text)
        return self._with_infinity(name, value) if self.case.plan.flow.xml is not None else value

    def _with_infinity(self, name: str, value: Value) -> Value:
        """JSON has no infinity, so it is kept as XML Schema writes it; to XPath it is a number."""
        texts = [value] if isinstance(value, str) else list(value.values()) if isinstance(value, dict) else []
        if not any(isinstance(text, str) and text in INFINITE for text in texts):
            return value
        world, (_, type) = world_of(self.case), variable_at(self.case, self.env, name)
        if not type.message:
            return INFINITE[value] if builtin_of(world, type) in FLOATS else value
        floats = [
            part.name for part in parts_of(self.case, type.message) if builtin_of(world, type_of_part(part)) in FLOATS
        ]
        return {part: INFINITE.get(held, held) if part in floats else held for part, held in value.items()}

    def property_of(self, variable: str, name: str) -> Value:
        holder, type = variable_at(self.case, self.env, variable)
        if variable not in holder.variables:
            raise flow_fault(UNINITIALIZED_VARIABLE, f"the variable {variable} has no value yet")
        return property_of(world_of(self.case), name, type, holder.variables[variable])

    @property
    def world(self) -> xpath.XPathEnvironment:
        return xpath.XPathEnvironment(self.lookup, self.property_of, self.transform, self.case.meter.spend)


def texts_in(value: Value) -> list[str]:
    """The texts of the elements that a variable holds: itself, or its parts."""
    parts = [value, *value.values()] if isinstance(value, dict) else []
    return [text for part in parts if (text := element_text(part)) is not None]


def fault_of(error: xpath.XPathError, expr: Expr) -> FlowFault:
    return flow_fault(error.fault, f"`{expr.text:.200}`: {error}")


def truth(case: Case, env: int, expr: Expr, links: Mapping[str, bool] | None = None) -> bool:
    """Whether a condition holds."""
    try:
        return xpath.truth(expr, XPathVariables(case, env, links).world)
    except xpath.XPathError as error:
        raise fault_of(error, expr) from None


def result(case: Case, env: int, expr: Expr) -> Value:
    """What an expression gives, as data."""
    try:
        return xpath.value(expr, XPathVariables(case, env).world)
    except xpath.XPathError as error:
        raise fault_of(error, expr) from None


def number(case: Case, env: int, expr: Expr) -> float:
    try:
        return xpath.number(expr, XPathVariables(case, env).world)
    except xpath.XPathError as error:
        raise fault_of(error, expr) from None


def duration(case: Case, env: int, expr: Expr, since: Instant) -> int:
    """How long an xsd:duration lasts, in milliseconds from an instant on."""
    text = _text(case, env, expr)
    found = duration_ms(text, since)
    if found is None:
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"`{expr.text:.200}` gives {text!r:.80}; it must be an xsd:duration")
    return found


def deadline(case: Case, env: int, expr: Expr) -> Instant:
    """The instant of an xsd:dateTime or xsd:date."""
    text = _text(case, env, expr)
    found = deadline_ms(text)
    if found is None:
        wanted = "an xsd:dateTime or an xsd:date"
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"`{expr.text:.200}` gives {text!r:.80}; it must be {wanted}")
    return found


def _text(case: Case, env: int, expr: Expr) -> str:
    try:
        return xpath.text(expr, XPathVariables(case, env).world)
    except xpath.XPathError as error:
        raise fault_of(error, expr) from None
