"""Cases and their items: start, read, and steer."""

from typing import Annotated

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from mendflow.core.model.flow import Flow
from mendflow.core.model.values import Value
from mendflow.core.model.views import CachePolicy, CaseQuery, CaseStatus, CaseView, CountsView, ItemState, ItemView
from mendflow.server.routes.parameters import (
    After,
    CaseName,
    Condition,
    CountedBy,
    Limit,
    Offset,
    Order,
    Text,
    TheCaller,
    TheDomain,
    page,
)

ItemsLimit = Annotated[int, QueryParameter(ge=1, le=100_000, description="At most so many.")]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of request bodies. An unknown field is refused, so that a misspelt one is not ignored."""


class StartRequest(RequestBody, frozen=True):
    """`cache` says which results of other cases are used for jobs made from the same: none unless given, those of jobs
    that declare enough, or all. `cache_from` names a case whose results are used for unchanged jobs; the same `key`
    again is the same case. `notify` is a URL that gets a POST when the case ends."""

    flow: str
    inputs: dict[str, Value] = {}
    cache: CachePolicy = ""
    cache_from: str = ""
    key: str = ""
    notify: str = ""


class Which(RequestBody, frozen=True):
    """One item of the case, or all of it."""

    item: str = ""


class Removal(RequestBody, frozen=True):
    item: str = ""
    reason: str = ""


class Rerun(RequestBody, frozen=True):
    """With the `cache` "none" everything is run again."""

    from_failed: bool = False
    cache: CachePolicy = "declared"


class Sent(RequestBody, frozen=True):
    """A message for a channel of the case. The same `id` again is the same message."""

    channel: str
    value: Value = None
    correlation: Value = None
    id: str = ""


@post("/cases", status_code=201, summary="Start a case")
async def start(domain: TheDomain, caller: TheCaller, data: JSONBody[StartRequest]) -> CaseView:
    return await domain.start(
        data.flow,
        data.inputs,
        who=caller.name,
        cache=data.cache,
        cache_from=data.cache_from,
        key=data.key,
        notify=data.notify,
    )


@get("/cases", summary="Cases, the newest first")
async def cases(
    domain: TheDomain,
    flow: Text = "",
    status: FromQuery[CaseStatus | None] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    where: Condition = "",
    order: Order = "",
    after: After = "",
) -> Response[list[CaseView]]:
    """The newest first, unless another order is given. With a condition the page may be short, and `Mendflow-Next` says
    from where to continue."""
    wanted = CaseQuery(
        flow=flow, status=status or "", limit=limit, offset=offset, where=where, order=order, after=after
    )
    found = await domain.find_cases(wanted)
    return page(found.rows, found.next)


@get("/cases/count", summary="How many cases match")
async def count_cases(
    domain: TheDomain,
    flow: Text = "",
    status: FromQuery[CaseStatus | None] = None,
    where: Condition = "",
    by: CountedBy = "",
    after: After = "",
) -> CountsView:
    """The number of all cases, under the empty name, or the numbers by the values of a field."""
    return await domain.count_cases(CaseQuery(flow=flow, status=status or "", where=where, after=after), by=by)


@get("/cases/{case:str}", summary="One case")
async def case(domain: TheDomain, case: CaseName) -> CaseView:
    return await domain.case(case)


@get("/cases/{case:str}/flow", summary="The flow that a case was started with")
async def flow_of(domain: TheDomain, case: CaseName) -> Flow:
    return await domain.flow_of(case)


@get("/cases/{case:str}/items", summary="A case's items")
async def items(
    domain: TheDomain,
    case: CaseName,
    item_state: Annotated[ItemState | None, QueryParameter(name="state")] = None,
    name: Text = "",
    limit: ItemsLimit = 1000,
    offset: Offset = 0,
    after: Text = "",
    where: Condition = "",
) -> Response[list[ItemView]]:
    """In the order in which they last began. `after` is the `place` of the last item of the page before, or the header
    `Mendflow-Next`."""
    found = await domain.find_items(
        case, state=item_state or "", name=name, where=where, limit=limit, offset=offset, after=after
    )
    return page(found.rows, found.next)


@get("/cases/{case:str}/items/{item:path}", summary="One item")
async def item(domain: TheDomain, case: CaseName, item: FromPath[str]) -> ItemView:
    """An item's id may have brackets, commas and slashes, as in `align[3]`; percent-encode them."""
    return await domain.item(case, item.removeprefix("/"))


@post("/cases/{case:str}/suspend", status_code=200, summary="Let a case, or one item, make no progress")
async def suspend(
    domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[Which | None] = None
) -> CaseView:
    return await domain.suspend(case, (data or Which()).item, who=caller.name)


@post("/cases/{case:str}/resume", status_code=200, summary="Let what was suspended go on")
async def resume(domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[Which | None] = None) -> CaseView:
    return await domain.resume(case, (data or Which()).item, who=caller.name)


@post("/cases/{case:str}/cancel", status_code=200, summary="End a case, or one item, without handlers")
async def cancel(
    domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[Removal | None] = None
) -> CaseView:
    wish = data or Removal()
    return await domain.cancel(case, wish.item, who=caller.name, reason=wish.reason)


@post(
    "/cases/{case:str}/rerun",
    status_code=201,
    summary="A new case of the same flow and inputs; results of unchanged jobs come from the cache",
)
async def rerun(domain: TheDomain, caller: TheCaller, case: CaseName, data: JSONBody[Rerun | None] = None) -> CaseView:
    wish = data or Rerun()
    return await domain.rerun(case, who=caller.name, from_failed=wish.from_failed, cache=wish.cache)


@post("/cases/{case:str}/messages", status_code=200, summary="Send a message to a case")
async def send(domain: TheDomain, case: CaseName, data: JSONBody[Sent]) -> CaseView:
    return await domain.send(case, data.channel, data.value, correlation=data.correlation, id=data.id)


ROUTES = Router(
    "/",
    route_handlers=[start, cases, count_cases, case, flow_of, items, item, suspend, resume, cancel, rerun, send],
    tags=["cases"],
)
