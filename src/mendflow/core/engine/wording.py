"""Whether the expressions of an activity can be read at all: their language, their syntax, their functions.

What they ask for is known only when they are evaluated. Most of a flow is plain data, so that is what is ruled out
first: a flow of ten thousand jobs is looked at in a moment."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mendflow.core.expressions import ExpressionError, expressions_of, is_template, problem
from mendflow.core.model.flow import (
    Assign,
    Branch,
    Call,
    Choose,
    Copy,
    Expr,
    Flow,
    ForEach,
    Invoke,
    Job,
    Mend,
    NeededResources,
    Node,
    OnAlarm,
    OnMessage,
    Pick,
    Receive,
    Reply,
    Scope,
    Source,
    Stage,
    Task,
    Throw,
    Until,
    Wait,
    While,
)

OF_EACH: Final = ("when", "join", "sources")
FIELDS: Final[dict[type, tuple[str, ...]]] = {
    Flow: ("outputs",),
    Assign: ("copies",),
    Copy: ("value",),
    Wait: ("duration", "until"),
    Throw: ("data", "message"),
    Choose: ("branches",),
    Branch: ("when",),
    Source: ("when",),
    While: ("condition",),
    Until: ("condition",),
    ForEach: ("items", "first", "last", "enough", "collect"),
    Scope: ("variables",),
    OnMessage: ("correlation",),
    OnAlarm: ("duration", "until", "every"),
    Pick: ("messages", "alarms"),
    Receive: ("correlation",),
    Reply: ("value",),
    Invoke: ("value",),
    Job: ("command", "args", "kwargs", "env", "inputs", "files", "resources"),
    NeededResources: NeededResources.__struct_fields__,
    Task: ("title", "description", "data", "deadline_ms"),
    Stage: ("files",),
    Call: ("inputs",),
    Mend: ("item", "settings"),
}
"""Where expressions and templates stand. What is not here is taken as it is written."""

_PLAIN_RESOURCES: Final = NeededResources()


def misworded(activity: Any) -> Iterator[str]:
    """What is wrong with the expressions of an activity, a handler or the flow, apart from what is inside it."""
    name = getattr(activity, "name", "") or getattr(activity, "channel", "") or "an alarm"
    for text, reason in _flaws(activity):
        shown = " ".join(text.split())
        yield f"{name:.100}: in the expression `{shown[:57] + '...' if len(shown) > 60 else shown}`: {reason}"


def _flaws(activity: Any) -> Iterator[tuple[str, str]]:
    for field in (*(OF_EACH if isinstance(activity, Node) else ()), *FIELDS.get(type(activity), ())):
        value = getattr(activity, field)
        if isinstance(value, Expr):
            if reason := problem(value):
                yield value.text, reason
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            for part in value:
                yield from _flaws(part)
        elif isinstance(value, NeededResources):
            if value != _PLAIN_RESOURCES:
                yield from _flaws(value)
        elif value and not isinstance(value, int) and is_template(value):
            yield from _flaws_of_template(value)


def _flaws_of_template(template: Any) -> Iterator[tuple[str, str]]:
    try:
        found = expressions_of(template)
    except ExpressionError as error:
        yield str(template), error.message
        return
    for piece in found:
        if reason := problem(Expr(piece.text)):
            yield piece.text, reason
