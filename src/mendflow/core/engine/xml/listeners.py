"""Which listener gets a message, in flows with XML.

Listeners of a channel differ by partner link and correlation sets, each of which belongs to one environment; the values
of the sets are compared when a message arrives. The scope of an event handler starts with the message: sets and links
that it declares itself have no values yet, and match every message."""

from collections.abc import Iterator
from typing import Literal

from mendflow.core.engine.state import Case, Listener, PickInstance, ScopeInstance
from mendflow.core.engine.xml.correlation import Fit, correlation_values, fit_of, holder_of
from mendflow.core.engine.xml.declarations import link_at, operation_of, world_of
from mendflow.core.engine.xml.properties import ROUTING_WORK_MAX
from mendflow.core.expressions.work_budget import WORK
from mendflow.core.model.flow import OnMessage, Receive
from mendflow.core.model.values import Value
from mendflow.core.model.xml import Correlation, Operation, ScopeDeclarations, XmlMessage

MessageActivity = Receive | OnMessage


def declared_by(activity: MessageActivity) -> ScopeDeclarations:
    """What the scope of an event handler declares."""
    return (activity.declared if isinstance(activity, OnMessage) else None) or ScopeDeclarations()


def message_of(activity: MessageActivity) -> XmlMessage:
    assert activity.xml is not None, "only what is said in XML gets here"
    return activity.xml


def outer_sets(activity: MessageActivity) -> tuple[Correlation, ...]:
    """The correlations by sets that are there before the message comes."""
    own = declared_by(activity).correlation_sets
    return tuple(each for each in message_of(activity).correlations if each.set not in own)


def operation_for(case: Case, env: int, activity: MessageActivity) -> Operation:
    """The operation whose messages are heard."""
    how = message_of(activity)
    own = declared_by(activity).partner_links.get(how.partner_link)
    if own is None:
        return operation_of(case, env, how, mine=True)
    return world_of(case).port_types[own.mine][how.operation]


def key_of(case: Case, env: int, activity: MessageActivity) -> str:
    """Equal for listeners that no message could distinguish."""
    how, own = message_of(activity), declared_by(activity)
    link = 0 if how.partner_link in own.partner_links else link_at(case, env, how.partner_link)[0].id
    homes = (
        (0 if each.set in own.correlation_sets else holder_of(case, env, each.set)[0].id, each.set)
        for each in how.correlations
    )
    return " ".join([f"@{link}", *(f"{home}.{name}" for home, name in sorted(homes))])


def listener_activity(case: Case, listener: Listener) -> tuple[MessageActivity, int]:
    """What a listener does with a message, and the environment that it listens in."""
    instance = case.instances[listener.instance]
    node = case.plan.nodes[instance.node]
    heard: MessageActivity = node.activity
    if isinstance(instance, ScopeInstance):
        heard = case.plan.nodes[node.messages[listener.place]].activity
        return heard, instance.inner
    if isinstance(instance, PickInstance):
        heard = node.activity.messages[listener.place]
    return heard, instance.env


def listener_fit(case: Case, listener: Listener, message: Value, known: dict[str, Value]) -> Fit:
    """How well a message fits a listener of its channel."""
    activity, env = listener_activity(case, listener)
    message_type = operation_for(case, env, activity).input
    return fit_of(case, env, outer_sets(activity), message_type, message, known)


def listened_type(case: Case, channel: str) -> str | None:
    """The type of the messages that somebody listens for on a channel; None if nobody does."""
    listener = next(iter(case.listeners.get(channel, {}).values()), None)
    if listener is None:
        return None
    activity, env = listener_activity(case, listener)
    return None if activity.xml is None else operation_for(case, env, activity).input


def conversations(case: Case, channel: str) -> list[tuple[tuple[str, ...], Value] | None]:
    """The property values that a message on the channel must have, for each listener; None: no condition."""
    return [
        correlation_values(case, env, outer_sets(activity))
        for activity, env in (
            listener_activity(case, listener) for listener in case.listeners.get(channel, {}).values()
        )
        if activity.xml is not None
    ]


def matching_listeners(case: Case, channel: str, message: Value) -> Iterator[tuple[Listener, Fit]]:
    """The listeners of a channel, each with how well the message fits it."""
    known: dict[str, Value] = {}
    for listener in case.listeners.get(channel, {}).values():
        yield listener, listener_fit(case, listener, message, known)


def match_kind(case: Case, channel: str, message: Value) -> Literal["no", "plain", "correlated"]:
    """Whether a listener of the case would take the message now: because it belongs to the same conversation, or
    because nothing excludes it. Whoever looks for the case of a message asks this, and the steps of a case never do."""
    with WORK.of_at_most(ROUTING_WORK_MAX):
        best = max((each for _, each in matching_listeners(case, channel, message)), default=Fit.NOT)
    return "no" if best is Fit.NOT else "correlated" if best is Fit.CORRELATED else "plain"
