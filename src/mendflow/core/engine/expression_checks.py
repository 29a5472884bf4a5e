"""Checks that the expressions of an activity can be parsed: language, syntax, functions.

Names are resolved only at evaluation. Most of a flow is plain data, which is ruled out first: a flow of ten thousand
jobs is checked in a moment."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from mendflow.core.expressions import ExpressionError, expressions_of, problem
from mendflow.core.expressions.scanner import RESERVED_WORDS, WORDS
from mendflow.core.model.expr import Expr
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

CACHED_MAX: Final = 50_000
"""How many results are cached: the same flow is checked when it is deployed and again with each case."""

_PLAIN_RESOURCES: Final = ResourceTemplates()
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PLAIN: Final = lazy_pattern(rf"\$\{{\{{\s*(?!(?:{'|'.join(RESERVED_WORDS | WORDS)})\b){_NAME}(?:\.{_NAME})*\s*\}}\}}")
"""An expression that is just a path needs no check."""


def expression_problems(activity: Any) -> Iterator[str]:
    """What is wrong with the expressions of an activity, a handler or the flow, except its parts."""
    for text, reason in _flaws(activity):
        name = getattr(activity, "name", "") or getattr(activity, "channel", "") or "an alarm"
        shown = " ".join(text.split())
        yield f"{name:.100}: in the expression `{shown[:57] + '...' if len(shown) > 60 else shown}`: {reason}"


def _flaws(activity: Any) -> Iterator[tuple[str, str]]:
    fields = FIELDS.get(type(activity), ())
    for field in (*OF_EACH, *fields) if isinstance(activity, ActivityNode) else fields:
        value = getattr(activity, field)
        if field == "publish":
            value = tuple(value.values())
        if field == "collect_files":
            yield from ((each.text, reason) for each in value.values() if (reason := _problem(each)))
            continue
        if not value or value is True or type(value) in (int, float):
            continue
        if isinstance(value, Expr):
            if reason := _problem(value):
                yield value.text, reason
        elif isinstance(value, ResourceTemplates):
            if value != _PLAIN_RESOURCES:
                yield from _flaws(value)
        elif isinstance(value, tuple) and isinstance(value[0], msgspec.Struct):
            for part in value:
                yield from _flaws(part)
        elif _needs_check(value):
            yield from _flaws_of_template(value)


@lru_cache(maxsize=CACHED_MAX)
def _problem(expr: Expr) -> str | None:
    return problem(expr)


def _needs_check(template: Any) -> bool:
    """Whether any text in it has an expression that is more than a path."""
    if isinstance(template, str):
        return "${{" in template and "${{" in _PLAIN.sub("", template)
    if isinstance(template, dict):
        return any(map(_needs_check, template)) or any(map(_needs_check, template.values()))
    return isinstance(template, (list, tuple)) and any(map(_needs_check, template))


def _flaws_of_template(template: Any) -> Iterator[tuple[str, str]]:
    try:
        found = expressions_of(template)
    except ExpressionError as error:
        yield str(template), error.message
        return
    for piece in found:
        if reason := _problem(Expr(piece.text)):
            yield piece.text, reason
