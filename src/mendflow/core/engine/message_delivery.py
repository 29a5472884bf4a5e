"""Delivers messages: each goes to its listener, or waits in the case until there is one.

Two listeners for the same messages are a `conflictingReceive`. A message on a channel that the flow replies to is a
request, open until it is answered; a second one in the same exchange is a `conflictingRequest`, and one that is open
when the flow ends a `missingReply`. In flows with XML, correlation sets decide who listens for what, and a message that
fits several listeners is an `ambiguousReceive` for all of them."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from mendflow.core.engine.faults import (
    AMBIGUOUS_RECEIVE,
    CONFLICTING_RECEIVE,
    CONFLICTING_REQUEST,
    MISSING_REPLY,
    MISSING_REQUEST,
    FlowFault,
    flow_fault,
)
from mendflow.core.engine.messages import Deliver, ListenerAdded, SendReply
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Item, Listener, PickInstance, ReceiveItem, ScopeInstance
from mendflow.core.engine.xml import exchanges, listeners
from mendflow.core.engine.xml.correlation import Fit, correlate
from mendflow.core.engine.xml.declarations import operation_of, variable_at
from mendflow.core.engine.xml.listeners import MessageActivity, operation_for, outer_sets
from mendflow.core.engine.xml.parts import build_message, store_message
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import OnMessage, Receive, Reply
from mendflow.core.model.values import Value
from mendflow.core.model.xml import Correlation, XmlMessage

ListeningInstance = ReceiveItem | PickInstance | ScopeInstance


class ExchangeActivity(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def exchange(self) -> str: ...


def exchange_of(activity: ExchangeActivity) -> str:
    """The key that a request and its reply share."""
    return f"{activity.channel}#{activity.exchange}" if activity.exchange else activity.channel


def key_of(correlation: Value) -> str:
    """A correlation as text, for lookups. An empty one fits every message."""
    if correlation is None:
        return ""
    if isinstance(correlation, float) and correlation.is_integer():
        correlation = int(correlation)
    return msgspec.json.encode(correlation, order="deterministic").decode()


def listen(
    run: Run, instance: ListeningInstance, place: int, activity: MessageActivity, env: int, correlation: Value
) -> None:
    """Listen to a channel from now on."""
    channel = activity.channel
    key = key_of(correlation) if activity.xml is None else listeners.key_of(run.case, env, activity)
    if key in run.case.listeners.get(channel, ()):
        raise flow_fault(CONFLICTING_RECEIVE, f"another activity listens on {channel} for the same messages")
    run.case.listeners.setdefault(channel, {})[key] = Listener(instance.id, place)
    instance.listening.append((channel, key))
    if activity.xml is not None:
        run.orders.append(ListenerAdded(channel=channel))


def take_waiting(
    run: Run, instance: ListeningInstance, place: int, activity: MessageActivity, correlation: Value
) -> Deliver | None:
    """The first waiting message that fits."""
    waiting, key = run.case.mailbox.get(activity.channel, []), key_of(correlation)
    for at, message in enumerate(waiting):
        if activity.xml is None:
            fits = not key or key == key_of(message.correlation)
        else:
            fits = listeners.listener_fit(run.case, Listener(instance.id, place), message.value, {}) is not Fit.NOT
        if fits:
            del waiting[at]
            if not waiting:
                del run.case.mailbox[activity.channel]
            return message
    return None


def stop_listening(run: Run, instance: ListeningInstance) -> None:
    """Stop listening."""
    for channel, key in instance.listening:
        listeners = run.case.listeners[channel]
        del listeners[key]
        if not listeners:
            del run.case.listeners[channel]
    instance.listening.clear()


def deliver(run: Run, message: Deliver) -> None:
    """Deliver a message to the listener for exactly it, or else to one for all, or keep it."""
    chosen = _choose_listeners(run, message) if run.plan.flow.xml is None else _matching_listeners(run, message)
    if not chosen:
        run.case.mailbox.setdefault(message.channel, []).append(message)
    elif len(chosen) > 1:
        several = flow_fault(AMBIGUOUS_RECEIVE, f"a message on {message.channel} fits {len(chosen)} listeners")
        for listener in chosen:
            _fail_listener(run, listener.instance, several.fault)
    else:
        [listener] = chosen
        instance = run.instances[listener.instance]
        try:
            run.kinds[run.nodes[instance.node].kind].message_heard(run, instance, listener.place, message)
        except FlowFault as problem:
            _fail_listener(run, instance.id, problem.fault)


def _choose_listeners(run: Run, message: Deliver) -> list[Listener]:
    listeners = run.case.listeners.get(message.channel, {})
    for key in dict.fromkeys((key_of(message.correlation), "")):
        listener = listeners.get(key)
        if listener is not None and not _is_suspended(run, listener):
            return [listener]
    return []


def _matching_listeners(run: Run, message: Deliver) -> list[Listener]:
    """All listeners that the message fits; if there is none, the first whose correlation set it would violate."""
    found = [
        (listener, fit)
        for listener, fit in listeners.matching_listeners(run.case, message.channel, message.value)
        if fit is not Fit.NOT and not _is_suspended(run, listener)
    ]
    return [listener for listener, fit in found if fit is not Fit.AGAINST] or [listener for listener, _ in found[:1]]


def _is_suspended(run: Run, listener: Listener) -> bool:
    instance = run.instances[listener.instance]
    return isinstance(instance, Item) and instance.suspended


def _fail_listener(run: Run, id: int, fault: Fault) -> None:
    """Raise a fault in a listener, if it still exists."""
    instance = run.instances.get(id)
    if instance is not None:
        run.kinds[run.nodes[instance.node].kind].listening_failed(run, instance, fault)


def is_request(run: Run, env: int, activity: Receive | OnMessage) -> bool:
    """Whether the message must be answered."""
    if activity.xml is None:
        return activity.channel in run.plan.referenced_names
    return bool(operation_for(run.case, env, activity).output)


def open_request(run: Run, env: int, activity: Receive | OnMessage, message: Deliver) -> None:
    """Record an open request, in the nearest environment that keeps them."""
    if not is_request(run, env, activity):
        return
    if activity.xml is not None:
        exchanges.open_request(run.case, env, activity, message.id)
        return
    home = run.case.envs[env]
    while not home.home:
        home = run.case.envs[home.parent]
    requests = home.requests or {}
    exchange = exchange_of(activity)
    if exchange in requests:
        raise flow_fault(CONFLICTING_REQUEST, f"an earlier request on {activity.channel} has not been answered yet")
    requests[exchange] = message.id
    home.requests = requests


def close_request(run: Run, env: int, activity: Reply) -> str:
    """The message that a reply answers."""
    exchange, at = exchange_of(activity), env
    while at:
        home = run.case.envs[at]
        if home.requests and exchange in home.requests:
            return home.requests.pop(exchange)
        at = home.parent
    raise flow_fault(MISSING_REQUEST, f"there is no open request on {activity.channel} to reply to")


def correlate_heard(run: Run, env: int, activity: MessageActivity, message: Value) -> None:
    """Check a received message against the existing correlation sets."""
    correlate_with(run, env, outer_sets(activity), operation_for(run.case, env, activity).input, message)


def correlate_inside(run: Run, env: int, activity: OnMessage, message: Value) -> None:
    """Initiate the sets that the handler's own scope declares."""
    outer = outer_sets(activity)
    inner = [each for each in listeners.message_of(activity).correlations if each not in outer]
    correlate(run.case, env, inner, operation_for(run.case, env, activity).input, message)


def correlate_with(run: Run, env: int, correlations: Iterable[Correlation], message_type: str, message: Value) -> None:
    """Check a message against correlation sets, or initiate them with it. Listeners with an initiated set may match
    other messages from now on."""
    if correlate(run.case, env, correlations, message_type, message):
        run.orders.extend(ListenerAdded(channel=channel) for channel in run.case.listeners)


def assign_message(run: Run, env: int, activity: MessageActivity, message: Value) -> None:
    """Assign a message to its variables."""
    assert activity.xml is not None
    store_message(run.case, env, activity.xml, operation_for(run.case, env, activity).input, message)


def build_reply(run: Run, env: int, activity: Reply, how: XmlMessage) -> SendReply:
    """The content of an XML reply, and the message that it answers."""
    case = run.case
    request = exchanges.find_request(case, env, activity)
    operation = operation_of(case, env, how, mine=True)
    kind = operation.output
    if activity.fault:
        kind = operation.faults.get(activity.fault.rpartition("}")[2]) or _fault_message_type(run, env, how)
    value = build_message(case, env, how, kind)
    correlate_with(run, env, how.correlations, kind, value)
    exchanges.close_request(case, env, activity)
    return SendReply(
        serial=0, message=request, channel=activity.channel, value=value, fault=activity.fault, message_type=kind
    )


def _fault_message_type(run: Run, env: int, how: XmlMessage) -> str:
    """The message type for a fault that no WSDL declares: that of its variable."""
    return variable_at(run.case, env, how.variable)[1].message if how.variable else ""


def missing_reply(run: Run, scope: ScopeInstance) -> Fault | None:
    """In flows with XML: the fault of a scope that ends with an open request that nobody could answer."""
    if run.plan.flow.xml is None or not scope.inner:
        return None
    unanswered = exchanges.unanswered_channels(run.case, scope.inner)
    node = run.nodes[scope.node]
    if run.nodes[node.parent].kind == "for-each":
        unanswered += exchanges.unanswered_channels(run.case, scope.env)
    if not unanswered:
        return None
    what = node.shown or "an event handler"
    return flow_fault(MISSING_REPLY, f"{what} ended without a reply on {', '.join(unanswered)}").fault
