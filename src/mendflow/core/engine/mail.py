"""Messages: each goes to the one who listens for it, or waits in the case until somebody does.

Two listeners that the same message could not choose between are a `conflictingReceive`. A message on a channel that the
flow replies to is a request, open until it is answered; a second one in the same exchange is a `conflictingRequest`."""

from typing import Protocol

from mendflow.core.engine.faults import CONFLICTING_RECEIVE, CONFLICTING_REQUEST, MISSING_REQUEST, Thrown, thrown
from mendflow.core.engine.messages import Deliver
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import Item, Listener
from mendflow.core.model.values import Value


class Exchanging(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def exchange(self) -> str: ...


def exchange_of(activity: Exchanging) -> str:
    """What a request and its reply have in common."""
    return f"{activity.channel}#{activity.exchange}" if activity.exchange else activity.channel


def fits(correlation: Value, message: Deliver) -> bool:
    return correlation is None or correlation == message.correlation


def listen(
    run: Run, instance: int, place: int, channel: str, correlation: Value, *, stays: bool = False
) -> list[Deliver]:
    """Take what has come already: the first that fits, or all for who stays. Then, or else, listen."""
    case = run.case
    others = case.listeners.get(channel, [])
    if any(each.instance != instance and each.correlation == correlation for each in others):
        raise thrown(CONFLICTING_RECEIVE, f"somebody else is listening on {channel} for the same messages")
    waiting = case.mailbox.get(channel, [])
    taken = [message for message in waiting if fits(correlation, message)]
    taken = taken if stays else taken[:1]
    if taken:
        kept = [message for message in waiting if message not in taken]
        if kept:
            case.mailbox[channel] = kept
        else:
            del case.mailbox[channel]
    if stays or not taken:
        case.listeners.setdefault(channel, []).append(Listener(instance, place, correlation))
    return taken


def ignore(run: Run, instance: int, channel: str) -> None:
    """Listen no more."""
    others = run.case.listeners.get(channel)
    if others is None:
        return
    others[:] = [each for each in others if each.instance != instance]
    if not others:
        del run.case.listeners[channel]


def deliver(run: Run, message: Deliver) -> None:
    """Give a message to the first who listens for it, or keep it."""
    for listener in run.case.listeners.get(message.channel, ()):
        instance = run.instances[listener.instance]
        asleep = isinstance(instance, Item) and instance.suspended
        if fits(listener.correlation, message) and not asleep:
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
