"""Checks that the expressions of an activity can be parsed: language, syntax, functions.

Names are resolved only at evaluation. Most of a flow is plain data, which is ruled out first: a flow of ten thousand
jobs is checked in a moment. What was found out of an expression is kept: the same flow is checked when it is deployed
and again with each case. Whoever has no time for a long check says so, and has it done elsewhere."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mendflow.core.expressions import ExpressionError, expressions_of, problem
from mendflow.core.expressions.scanner import RESERVED_WORDS, WORDS
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.flow import (
    ActivityNode,
    Assign,
    Branch,
    Call,
    Choose,
    Copy,
    Flow,
    ForEach,
    Invoke,
    JobActivity,
    LinkSource,
    OnAlarm,
    OnMessage,
    Pick,
    PrimitiveStep,
    Receive,
    Reply,
    Scope,
    Stage,
    Throw,
    Until,
    UserTask,
    Wait,
    While,
)
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.lazy import lazy_pattern

OF_EACH: Final = ("when", "join", "sources")
FIELDS: Final[dict[type, tuple[str, ...]]] = {
    Flow: ("outputs",),
    Assign: ("copies",),
    Copy: ("value",),
    Wait: ("duration", "until"),
    Throw: ("data", "message"),
    Choose: ("branches",),
    Branch: ("when",),
    LinkSource: ("when",),
    While: ("condition",),
    Until: ("condition",),
    ForEach: (
        *("items", "axes", "first", "last", "min_success", "min_ended", "tolerate"),
        *("collect", "collect_map", "collect_files"),
    ),
    Scope: ("variables",),
    OnMessage: ("correlation",),
    OnAlarm: ("duration", "until", "every"),
    Pick: ("messages", "alarms"),
    Receive: ("correlation",),
    Reply: ("value",),
    Invoke: ("value",),
    JobActivity: ("command", "args", "kwargs", "env", "inputs", "replicas", "files", "publish", "resources"),
    PublicationTemplate: PublicationTemplate.__struct_fields__,
    ResourceTemplates: ResourceTemplates.__struct_fields__,
    UserTask: ("title", "description", "data", "deadline_ms"),
    Stage: ("files",),
    Call: ("inputs",),
    PrimitiveStep: ("item", "settings"),
}
"""Fields with expressions and templates. All others are literal."""

KNOWN_MAX: Final = 50_000
KNOWN_CHARS_MAX: Final = 8_000_000
"""Of so many expressions, with so many characters in all, it is kept what is wrong with them."""

UNITS_PER_ACTIVITY, UNITS_PER_CHAR, UNITS_PER_KNOWN_CHAR = 45, 20, 2
"""What a check takes, in microseconds."""

FLOW_CHARS_MAX: Final = 2_000_000
"""All expressions of a flow that are more than a path, with those of the flows that it holds, have so many at most."""

_PLAIN_RESOURCES: Final = ResourceTemplates()
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PLAIN: Final = lazy_pattern(rf"\$\{{\{{\s*(?!(?:{'|'.join(RESERVED_WORDS | WORDS)})\b){_NAME}(?:\.{_NAME})*\s*\}}\}}")
"""An expression that is just a path needs no check."""


class _KnownProblems:
    """What is wrong with expressions, of those that were checked last. Several threads may ask, so each change is one
    step of the interpreter; at worst something is forgotten too early."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # empty: nothing is
        self._chars = 0

    def find(self, text: str) -> str | None:
        """None if it is not known."""
        return self._known.get(text)

    def learn(self, text: str, reason: str) -> None:
        self._known[text] = reason
        self._chars += len(text)
        if len(self._known) > KNOWN_MAX or self._chars > KNOWN_CHARS_MAX:
            for oldest in list(self._known)[: len(self._known) // 4 + 1]:
                self._known.pop(oldest, None)
            self._chars = sum(map(len, list(self._known)))


_KNOWN: Final = _KnownProblems()


class FlowJudge:
    """Counts what the check of one flow takes, about a microsecond a unit, and raises LongWork when that is more than
    `units_max`. `chars` are those of all expressions that were judged."""

    def __init__(self, units_max: int | None = None) -> None:
        self._room = units_max
        self.chars = 0

    def spend(self, units: int) -> None:
        if self._room is not None:
            self._room -= units
            if self._room < 0:
                raise LongWork

    def problem(self, expr: Expr) -> str | None:
        if expr.language != CEL:
            return problem(expr)
        text = expr.text
        self.chars += len(text)
        known = _KNOWN.find(text)
        self.spend(len(text) * (UNITS_PER_CHAR if known is None else UNITS_PER_KNOWN_CHAR))
        if known is None:
            known = problem(expr) or ""
            _KNOWN.learn(text, known)
        return known or None

    def problems_of_all(self) -> Iterator[str]:
        """What is wrong with all expressions that were judged, taken together."""
        if self.chars > FLOW_CHARS_MAX:
            yield (
                f"its expressions have {self.chars:,} characters in all; at most {FLOW_CHARS_MAX:,} are taken: compute"
                " this in a job"
            )


def expression_problems(activity: Any, judge: FlowJudge) -> Iterator[str]:
    """What is wrong with the expressions of an activity, a handler or the flow, except its parts."""
    judge.spend(UNITS_PER_ACTIVITY)
    for found in _expressions(activity):
        text, reason = (found.text, judge.problem(found)) if isinstance(found, Expr) else found
        if reason:
            name = getattr(activity, "name", "") or getattr(activity, "channel", "") or "an alarm"
            shown = " ".join(text.split())
            yield f"{name:.100}: in the expression `{shown[:57] + '...' if len(shown) > 60 else shown}`: {reason}"


def _expressions(activity: Any) -> Iterator[Expr | tuple[str, str]]:
    """The expressions of an activity that have to be checked; of a template that cannot be read, its text and why."""
    fields = FIELDS.get(type(activity), ())
    for field in (*OF_EACH, *fields) if isinstance(activity, ActivityNode) else fields:
        value = getattr(activity, field)
        if field == "publish":
            value = tuple(value.values())
        if field == "collect_files":
            yield from value.values()
            continue
        if not value or value is True or type(value) in (int, float):
            continue
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, ResourceTemplates):
            if value != _PLAIN_RESOURCES:
                yield from _expressions(value)
        elif isinstance(value, tuple) and isinstance(value[0], msgspec.Struct):
            for part in value:
                yield from _expressions(part)
        elif _needs_check(value):
            yield from _expressions_in(value)


def _needs_check(template: Any) -> bool:
    """Whether any text in it has an expression that is more than a path."""
    if isinstance(template, str):
        return "${{" in template and "${{" in _PLAIN.sub("", template)
    if isinstance(template, dict):
        return any(map(_needs_check, template)) or any(map(_needs_check, template.values()))
    return isinstance(template, (list, tuple)) and any(map(_needs_check, template))


def _expressions_in(template: Any) -> Iterator[Expr | tuple[str, str]]:
    try:
        found = expressions_of(template)
    except ExpressionError as error:
        yield str(template), error.message
        return
    yield from (Expr(piece.text) for piece in found)
