"""Event streams: of one case, from any serial on, or of all cases from now."""

from collections.abc import Callable
from typing import Annotated, Any

from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.views import CASE_END_STATES, ChangeKind
from mendflow.server.events import EventFrames
from mendflow.server.routes.parameters import CaseName, TheCaller, TheDomain, TheOpenRequests, own_case

LastEventId = Annotated[str, HeaderParameter(name="Last-Event-ID", description="Goes on after this serial.")]
After = Annotated[int, QueryParameter(ge=0, le=2**53, description="Goes on after this serial; the header counts more.")]

Kind = Annotated[ChangeKind | None, QueryParameter(description="Only events of this kind.")]

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def case_events(
    domain: TheDomain,
    caller: TheCaller,
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
    return Stream(feed.stream(open_requests), media_type="text/event-stream", headers=_HEADERS)


async def all_events(domain: TheDomain, caller: TheCaller, open_requests: TheOpenRequests, kind: Kind = None) -> Stream:
    feed = EventFrames(domain.events(kind=kind or "", sight=caller.sight()), _never)
    return Stream(feed.stream(open_requests), media_type="text/event-stream", headers=_HEADERS)


async def _never() -> bool:
    return False


def _serial(header: str, after: int) -> int:
    if not header:
        return after
    if not header.isdecimal() or len(header) > 16:
        raise InvalidRequest(
            "Last-Event-ID is the serial of the last event that was seen: a number", field="Last-Event-ID"
        )
    return int(header)


HANDLERS: dict[str, Callable[..., Any]] = {"case_events": case_events, "all_events": all_events}
