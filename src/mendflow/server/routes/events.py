"""Event streams: of one case, from any serial on, or of all cases. Each ends when its reader may no longer read it."""

from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any

from litestar import Request
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.core.model.principals import Principal
from mendflow.core.model.views import CASE_END_STATES, ChangeKind
from mendflow.server.event_feed import while_admitted
from mendflow.server.events import EventFrames
from mendflow.server.routes.parameters import (
    CaseName,
    TheCaller,
    TheDomain,
    TheEventFeed,
    TheOpenRequests,
    TheSignIn,
    own_case,
)
from mendflow.server.sign_in import SignIn

LastEventId = Annotated[str, HeaderParameter(name="Last-Event-ID", description="Goes on after this serial.")]
After = Annotated[int, QueryParameter(ge=0, le=2**53, description="Goes on after this serial; the header counts more.")]

Kind = Annotated[ChangeKind | None, QueryParameter(description="Only events of this kind.")]

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def case_events(
    request: Request[Any, Any, Any],
    domain: TheDomain,
    caller: TheCaller,
    sign_in: TheSignIn,
    open_requests: TheOpenRequests,
    case: CaseName,
    last_event_id: LastEventId = "",
    after: After = 0,
    kind: Kind = None,
) -> Stream:
    view = await domain.case(await own_case(domain, caller, case))

    async def over() -> bool:
        return (await domain.case(view.id)).status in CASE_END_STATES

    feed = EventFrames(domain.events(view.id, _serial(last_event_id, after), kind=kind or ""), over)
    return _stream(feed.stream(open_requests), request, caller, sign_in)


async def all_events(
    request: Request[Any, Any, Any],
    caller: TheCaller,
    sign_in: TheSignIn,
    open_requests: TheOpenRequests,
    event_feed: TheEventFeed,
    last_event_id: LastEventId = "",
    after: After = 0,
    kind: Kind = None,
) -> Stream:
    pieces = event_feed.follow(
        _serial(last_event_id, after), kind=kind or "", sight=caller.sight(), open_requests=open_requests
    )
    return _stream(pieces, request, caller, sign_in)


def _stream(
    pieces: AsyncGenerator[bytes, None], request: Request[Any, Any, Any], caller: Principal, sign_in: SignIn
) -> Stream:
    async def is_admitted() -> bool:
        try:
            return (await sign_in.receive(request.scope)).sight() == caller.sight()
        except RequestError:
            return False

    return Stream(while_admitted(pieces, is_admitted), media_type="text/event-stream", headers=_HEADERS)


def _serial(header: str, after: int) -> int:
    if not header:
        return after
    if not header.isdecimal() or len(header) > 16:
        raise InvalidRequest(
            "Last-Event-ID is the serial of the last event that was seen: a number", field="Last-Event-ID"
        )
    return int(header)


HANDLERS: dict[str, Callable[..., Any]] = {"case_events": case_events, "all_events": all_events}
