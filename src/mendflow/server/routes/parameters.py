"""Dependencies that handlers ask for by name, and what several handlers share."""

from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote

from litestar import Request, Response
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, PathParameter, QueryParameter, SkipValidation

from mendflow.core.model.principals import Principal
from mendflow.server.access import RequestOrigin
from mendflow.server.event_feed import EventFeed
from mendflow.server.open_requests import OpenRequests
from mendflow.server.sign_in import SignIn
from mendflow.services.api.domain import Domain
from mendflow.services.api.domain_reader import LAST

TheDomain = NamedDependency[SkipValidation[Domain]]
TheCaller = NamedDependency[SkipValidation[Principal]]
TheEventFeed = NamedDependency[SkipValidation[EventFeed]]
TheSignIn = NamedDependency[SkipValidation[SignIn]]
TheApplication = NamedDependency[str]
TheOpenRequests = NamedDependency[SkipValidation[OpenRequests]]

CaseName = Annotated[str, PathParameter(description="A case's id, or the word `last`.")]
Text = FromQuery[str]
Condition = Annotated[str, QueryParameter(description="A condition in CEL, such as `attempts > 2`.")]


async def own_case(domain: Domain, caller: Principal, case: str) -> str:
    """The case that is meant; `last` is the newest that the caller can see."""
    return await domain.newest_case(caller.sight()) if case == LAST else case


NEXT = "Mendflow-Next"
"""A header of a list's answer: where to continue. It is absent if there is no more."""

T = TypeVar("T")


def page(rows: list[T], next: str) -> Response[list[T]]:
    """One page of a list; with a condition it may be shorter than `limit` although more follow."""
    return Response(rows, headers={NEXT: quote(next, safe="")} if next else None)


CALLER = "mendflow_caller"
"""Where access control stores the caller in the request's scope."""

SERVED = "mendflow_served"
"""Where the application stores what it serves in the request's scope."""

ORIGIN = "mendflow_origin"
"""Where it stores where the request comes from."""

APPLICATION = "mendflow_application"
"""Where it stores what several servers call that which they do together; only servers can say so."""


class Served(NamedTuple):
    """What the routes work on: it is not the same for each server of a process."""

    domain: Domain
    open_requests: OpenRequests
    file_bytes_max: int
    sign_in: SignIn
    event_feed: EventFeed


def _caller(request: Request[Any, Any, Any]) -> Principal:
    caller = request.scope["state"][CALLER]
    assert isinstance(caller, Principal)
    return caller


def _served(request: Request[Any, Any, Any]) -> Served:
    served = request.scope["state"][SERVED]
    assert isinstance(served, Served)
    return served


def _domain(request: Request[Any, Any, Any]) -> Domain:
    return _served(request).domain


def _open_requests(request: Request[Any, Any, Any]) -> OpenRequests:
    return _served(request).open_requests


def _file_bytes_max(request: Request[Any, Any, Any]) -> int:
    return _served(request).file_bytes_max


def _sign_in(request: Request[Any, Any, Any]) -> SignIn:
    return _served(request).sign_in


def _event_feed(request: Request[Any, Any, Any]) -> EventFeed:
    return _served(request).event_feed


def _origin(request: Request[Any, Any, Any]) -> RequestOrigin:
    origin = request.scope["state"][ORIGIN]
    assert isinstance(origin, RequestOrigin)
    return origin


def _application(request: Request[Any, Any, Any]) -> str:
    return str(request.scope["state"][APPLICATION])


DEPENDENCIES = {
    "domain": Provide(_domain, sync_to_thread=False),
    "open_requests": Provide(_open_requests, sync_to_thread=False),
    "file_bytes_max": Provide(_file_bytes_max, sync_to_thread=False),
    "caller": Provide(_caller, sync_to_thread=False),
    "sign_in": Provide(_sign_in, sync_to_thread=False),
    "event_feed": Provide(_event_feed, sync_to_thread=False),
    "application": Provide(_application, sync_to_thread=False),
    "origin": Provide(_origin, sync_to_thread=False),
}
