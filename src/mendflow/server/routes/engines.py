"""The exception service for engines of other systems (interfaces A, B and X over HTTP).

An engine registers, posts events about its cases and items, and asks for orders: the calls of interface B. Each order
is repeated until the engine reports that it is done. An engine's name belongs to whoever registered it."""

import asyncio
from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import EngineOrder, EngineView, EventAnswer
from mendflow.core.model.values import Value
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import TheCaller, TheDomain, TheOpenRequests

WAIT_MS_MAX = 60_000

WaitMs = Annotated[int, QueryParameter(ge=0, le=WAIT_MS_MAX, description="Hold the answer back for so long.")]


class Registration(RequestBody, frozen=True):
    name: str


class OrderAnswer(RequestBody, frozen=True):
    """The result of an order: false if the case or item no longer exists; facts, or names, where asked for."""

    order: str
    answer: Value = True


@get("/engines", summary="Engines that are served")
async def engines(domain: TheDomain) -> list[EngineView]:
    return await domain.engines()


@post("/engines", status_code=201, summary="Register an engine")
async def register_engine(domain: TheDomain, caller: TheCaller, data: JSONBody[Registration]) -> EngineView:
    """An engine that registers again is the same engine."""
    return await domain.register_engine(data.name, who=caller.name)


@post("/engines/{engine:str}/events", status_code=200, summary="Tell of a point in the life of a case or an item")
async def engine_event(
    domain: TheDomain, caller: TheCaller, engine: FromPath[str], data: JSONBody[ExceptionEvent]
) -> EventAnswer:
    """If `held` is true in the answer, hold what was about to happen until the order `release` with the event's id. An
    event that is sent again under the same id is decided once."""
    return await domain.engine_event(engine, data, who=caller.name)


@post("/engines/{engine:str}/orders", status_code=200, summary="What the engine is to do")
async def engine_orders(
    domain: TheDomain, open_requests: TheOpenRequests, caller: TheCaller, engine: FromPath[str], wait_ms: WaitMs = 0
) -> list[EngineOrder]:
    """The answer is held back until there is an order, or the time is over."""
    asking = asyncio.ensure_future(domain.engine_orders(engine, who=caller.name, wait_ms=wait_ms))
    with open_requests.hold(asking.cancel):
        try:
            return await asking
        except asyncio.CancelledError:
            if open_requests.stopping:
                return []
            asking.cancel()
            raise


@post("/engines/{engine:str}/done", status_code=200, summary="Say that an order is done")
async def engine_done(
    domain: TheDomain, caller: TheCaller, engine: FromPath[str], data: JSONBody[OrderAnswer]
) -> list[EngineOrder]:
    """The answer contains the orders that are still open."""
    await domain.engine_done(engine, data.order, data.answer, who=caller.name)
    return await domain.engine_orders(engine, who=caller.name)


ROUTES = Router(
    "/", route_handlers=[engines, register_engine, engine_event, engine_orders, engine_done], tags=["engines"]
)
