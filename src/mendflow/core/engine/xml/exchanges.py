"""Open requests in flows with XML: each in a message exchange, held by the scope that declares it.

The process, each event handler and each iteration of a parallel for-each declare an unnamed exchange. A request is open
in its exchange for one partner link and one operation, until a reply answers it."""

from typing import Protocol

from mendflow.core.engine.faults import CONFLICTING_REQUEST, MISSING_REQUEST, flow_fault
from mendflow.core.engine.state import Case, Env
from mendflow.core.engine.xml.declarations import declaring_env, link_at
from mendflow.core.model.xml import XmlMessage


class XmlExchangeActivity(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def exchange(self) -> str: ...
    @property
    def xml(self) -> XmlMessage | None: ...


def exchange_env(case: Case, env: int, exchange: str) -> Env:
    """The environment that holds the open requests of an exchange."""
    if exchange:
        found = declaring_env(case, env, lambda declared: exchange in declared.exchanges)
        assert found is not None, f"no scope declares the message exchange {exchange}"
        return found
    home = case.envs[env]
    while not home.home:
        home = case.envs[home.parent]
    return home


def key_of(case: Case, env: int, activity: XmlExchangeActivity) -> str:
    """What a request and its reply have in common."""
    assert activity.xml is not None
    link, _ = link_at(case, env, activity.xml.partner_link)
    return f"{activity.channel}#{activity.exchange}@{link.id}"


def open_request(case: Case, env: int, activity: XmlExchangeActivity, message: str) -> None:
    """Remember that a reply is owed to a message."""
    home, key = exchange_env(case, env, activity.exchange), key_of(case, env, activity)
    requests = home.requests or {}
    if key in requests:
        raise flow_fault(CONFLICTING_REQUEST, f"an earlier request on {activity.channel} has not been answered yet")
    requests[key] = message
    home.requests = requests


def find_request(case: Case, env: int, activity: XmlExchangeActivity) -> str:
    """The message that a reply answers."""
    home, key = exchange_env(case, env, activity.exchange), key_of(case, env, activity)
    if not home.requests or key not in home.requests:
        raise flow_fault(MISSING_REQUEST, f"there is no open request on {activity.channel} to reply to")
    return home.requests[key]


def close_request(case: Case, env: int, activity: XmlExchangeActivity) -> None:
    """It is answered."""
    home = exchange_env(case, env, activity.exchange)
    assert home.requests is not None
    del home.requests[key_of(case, env, activity)]


def unanswered_channels(case: Case, env: int) -> list[str]:
    """The channels of requests that nobody can answer any more when what is declared in this environment is gone."""
    own = case.envs[env]
    found = list(own.requests or ())
    at = own.parent
    while at:
        outer = case.envs[at]
        found += [key for key in outer.requests or () if key.endswith(f"@{env}")]
        at = outer.parent
    return sorted({key.rpartition("#")[0] for key in found})
