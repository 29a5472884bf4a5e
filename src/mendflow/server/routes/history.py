"""The history of one case, as data or as XES for process mining; and the histories of all cases of a flow."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

from litestar import Response
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Stream

from mendflow.core.model.principals import Sight
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.views import CaseView
from mendflow.formats import xes
from mendflow.server.routes.parameters import CaseName, TheCaller, TheDomain, own_case
from mendflow.services.api.domain import Domain

CASES_MAX = 100_000
PAGE_CASES = 200
XML = "application/xml"

HistoryFormat = Literal["json", "xes"]
LastEntries = Annotated[int, QueryParameter(ge=0, le=2**53, description="Only so many, the last ones; 0: all.")]
BriefHistory = Annotated[
    bool, QueryParameter(description="Without what the engine ordered: there at once also of very long histories.")
]
CasesLimit = Annotated[int, QueryParameter(ge=1, le=CASES_MAX, description="At most so many cases, newest first.")]


async def history(
    domain: TheDomain,
    caller: TheCaller,
    case: CaseName,
    format: FromQuery[HistoryFormat] = "json",
    last: LastEntries = 0,
    brief: BriefHistory = False,
) -> list[HistoryEntry] | Response[Any]:
    view = await domain.case(await own_case(domain, caller, case))
    entries = await domain.history(view.id, last=last, brief=brief)
    if format == "json":
        return entries
    return Response(xes.log(str(view.id), [(view, entries)]), media_type=XML)


async def flow_history(domain: TheDomain, caller: TheCaller, name: FromPath[str], limit: CasesLimit = 1000) -> Stream:
    sight = caller.sight()
    first = await domain.cases(flow=name, limit=min(limit, PAGE_CASES), sight=sight)
    return Stream(_log(domain, name, first, limit, sight), media_type=XML)


async def _log(domain: Domain, flow: str, page: list[CaseView], limit: int, sight: Sight) -> AsyncIterator[str]:
    """One trace at a time, so that the whole log is never in memory."""
    yield xes.head(flow)
    told = 0
    while page:
        for case in page:
            yield xes.trace(case, await domain.history(case.id))
        told += len(page)
        left = min(limit - told, PAGE_CASES)
        page = await domain.cases(flow=flow, limit=left, offset=told, sight=sight) if told < limit else []
    yield xes.TAIL


HANDLERS: dict[str, Callable[..., Any]] = {"history": history, "flow_history": flow_history}
