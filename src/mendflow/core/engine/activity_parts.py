"""The parts of an activity: its kind, the activities directly inside it, and its declarations."""

from typing import Any, Final

import msgspec

from mendflow.core.model.flow import (
    Activity,
    Assign,
    Catch,
    Choose,
    Flow,
    ForEach,
    OnAlarm,
    OnMessage,
    Parallel,
    Pick,
    Scope,
    Sequence,
    Until,
    While,
)
from mendflow.core.model.xml import ScopeDeclarations, XmlCopy, XmlType

TRANSFORM: Final = "transform"
"""An assign that uses style sheets."""


class HandlerBody(msgspec.Struct, frozen=True):
    """A handler that is just an activity."""

    body: Activity


COUNTER: Final = "{http://www.w3.org/2001/XMLSchema}unsignedInt"
"""The type of the counter of a for-each."""

HANDLERS_WITH_BODY: Final = frozenset({Flow, Scope, ForEach, While, Until, Catch, OnMessage, OnAlarm, HandlerBody})


def declarations_of(activity: Any) -> tuple[dict[str, XmlType], ScopeDeclarations | None]:
    """What an activity or a handler declares for its parts, in a flow with XML."""
    match activity:
        case Scope(declared=declared) | OnMessage(declared=declared) if declared is not None:
            return declared.types, declared
        case Catch(variable=variable, holds=XmlType() as held):
            return {variable: held}, None
        case ForEach(variable=variable, items=None):
            return {variable: XmlType(type=COUNTER)}, None
    return {}, None


def kind_of(activity: Activity) -> str:
    if isinstance(activity, Assign) and any(_transforms(copy) for copy in activity.xml):
        return TRANSFORM
    tag = type(activity).__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def _transforms(copy: XmlCopy) -> bool:
    return copy.source.expression is not None and "doXslTransform" in copy.source.expression.text


def parts_of(activity: Any) -> tuple[Activity, ...]:
    """The activities directly inside an activity or a handler, without its handlers."""
    match activity:
        case Sequence(body=steps):
            return steps
        case Parallel(branches=branches):
            return branches
        case Choose(branches=branches, otherwise=otherwise):
            return (*(branch.body for branch in branches), *((otherwise,) if otherwise is not None else ()))
        case Pick(messages=messages, alarms=alarms):
            return (*(each.body for each in messages), *(each.body for each in alarms))
    if type(activity) not in HANDLERS_WITH_BODY:
        return ()
    body: Activity = activity.body
    return (body,)
