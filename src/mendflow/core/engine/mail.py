"""Messages: each goes to the one who listens for it, or waits in the case until somebody does.

Two listeners that the same message could not choose between are a `conflictingReceive`. A message on a channel that the
flow replies to is a request, open until it is answered; a second one in the same exchange is a `conflictingRequest`,
and one that is open when the flow ends a `missingReply`."""

from typing import Protocol

import msgspec

from mendflow.core.engine.faults import CONFLICTING_RECEIVE, CONFLICTING_REQUEST, MISSING_REQUEST, Thrown, thrown
from mendflow.core.engine.messages import Deliver
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Item, Listener, Picking, ReceiveItem, ScopeInstance
from mendflow.core.model.values import Value

Listening = ReceiveItem | Picking | ScopeInstance


class Exchanging(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def exchange(self) -> str: ...


def exchange_of(activity: Exchanging) -> str:
    """What a request and its reply have in common."""
    return f"{activity.channel}#{activity.exchange}" if activity.exchange else activity.channel


def key_of(correlation: Value) -> str:
    """A correlation as text, so that it is found without a search. Nothing fits every message."""
    if correlation is None:
        return ""
    if isinstance(correlation, float) and correlation.is_integer():
        correlation = int(correlation)
    return msgspec.json.encode(correlation, order="deterministic").decode()


def listen(run: Run, instance: Listening, place: int, channel: str, correlation: Value) -> None:
    """Hear the messages of a channel from now on."""
    listeners = run.case.listeners.setdefault(channel, {})
    key = key_of(correlation)
    if key in listeners:
        raise thrown(CONFLICTING_RECEIVE, f"somebody else is listening on {channel} for the same messages")
    listeners[key] = Listener(instance.id, place)
    instance.listening.append((channel, key))


def take(run: Run, channel: str, correlation: Value) -> Deliver | None:
    """The first message that came already and fits."""
    waiting, key = run.case.mailbox.get(channel, []), key_of(correlation)
    for place, message in enumerate(waiting):
        if not key or key == key_of(message.correlation):
            del waiting[place]
            if not waiting:
                del run.case.mailbox[channel]
            return message
    return None


def ignore(run: Run, instance: Listening) -> None:
    """Listen no more."""
    for channel, key in instance.listening:
        listeners = run.case.listeners[channel]
        del listeners[key]
        if not listeners:
            del run.case.listeners[channel]
    instance.listening.clear()


def deliver(run: Run, message: Deliver) -> None:
    """Give a message to who listens for exactly it, or else to who listens for all, or keep it."""
    listeners = run.case.listeners.get(message.channel, {})
    for key in dict.fromkeys((key_of(message.correlation), "")):
        listener = listeners.get(key)
        if listener is None:
            continue
        instance = run.instances[listener.instance]
        if isinstance(instance, Item) and instance.suspended:
            continue
        try:
            run.kinds[run.nodes[instance.node].kind].heard(run, instance, listener.place, message)
        except Thrown as problem:
            run.fail(instance, problem.fault)
        return
    run.case.mailbox.setdefault(message.channel, []).append(message)


def open_request(run: Run, env: int, activity: Exchanging, message: Deliver) -> None:
    """Remember that a reply is owed, in the nearest environment that keeps such."""
    if activity.channel not in run.plan.asked:
        return
    home = run.case.envs[env]
    while not home.home:
        home = run.case.envs[home.parent]
    requests = home.requests or {}
    exchange = exchange_of(activity)
    if exchange in requests:
        raise thrown(CONFLICTING_REQUEST, f"an earlier request on {activity.channel} has not been answered yet")
    requests[exchange] = message.id
    home.requests = requests


def close_request(run: Run, env: int, activity: Exchanging) -> str:
    """The message that a reply answers."""
    exchange, at = exchange_of(activity), env
    while at:
        home = run.case.envs[at]
        if home.requests and exchange in home.requests:
            return home.requests.pop(exchange)
        at = home.parent
    raise thrown(MISSING_REQUEST, f"there is no open request on {activity.channel} to reply to")
