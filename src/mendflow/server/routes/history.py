"""The history of one case, as data or as XES for process mining; and the histories of all cases of a flow."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Annotated, Any, Literal

from litestar import Response
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Stream

from mendflow.core.model.principals import Sight
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.views import CaseQuery
from mendflow.formats import xes
from mendflow.server.routes.parameters import CaseName, TheCaller, TheDomain, own_case

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
    query = CaseQuery(flow=name, limit=min(limit + 1, PAGE_CASES))
    project = await domain.project_lookup.of_flow(name)
    own = Sight(frozenset({project})) if project is not None else caller.sight()
    log = xes.log_of_cases(name, domain.each_case(query, sight=own), domain.history, limit)
    head = await anext(log)  # what can be refused is refused before the answer begins
    return Stream(_from(head, log), media_type=XML)


async def _from(first: str, rest: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    yield first
    async for part in rest:
        yield part


HANDLERS: dict[str, Callable[..., Any]] = {"history": history, "flow_history": flow_history}
