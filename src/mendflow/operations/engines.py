"""The exception service for engines of other systems (interfaces A, B and X over HTTP).

An engine registers, posts events about its cases and items, and asks for orders: the calls of interface B. Each order
is repeated until the engine reports that it is done. An engine's name belongs to whoever registered it."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.engine_views import EngineOrder, EngineView, EventAnswer
from mendflow.core.model.principals import ENGINE
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.operations.arguments import Body, Query
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ENGINES, VIEWERS
from mendflow.operations.subjects import ENGINE_NAME, LISTED, NEW_ENGINE

WaitMs = Annotated[int, Meta(ge=0, le=60_000, description="Hold the answer back for so long.")]


class EngineCalls(Calls, tag="engines"):
    @operation("GET", "/engines", VIEWERS | ENGINE, LISTED)
    async def engines(self) -> list[EngineView]:
        """Engines that are served."""

    @operation("POST", "/engines", ENGINES, NEW_ENGINE, status=201, repeatable=True)
    async def register_engine(self, name: str, *, project: ProjectName = "") -> EngineView:
        """Register an engine. An engine that registers again is the same engine."""

    @operation("POST", "/engines/{engine}/events", ENGINES, ENGINE_NAME, repeatable=True)
    async def engine_event(self, engine: str, event: Body[ExceptionEvent]) -> EventAnswer:
        """Tell of a point in the life of a case or an item. If `held` is true in the answer, hold what was about to
        happen until the order `release` with the event's id. An event that is sent again under the same id is decided
        once."""

    @operation("GET", "/engines/{engine}/cases", VIEWERS | ENGINE, ENGINE_NAME)
    async def engine_cases(self, engine: str) -> list[CaseView]:
        """The engine's cases that are not over. Each is named ENGINE:CASE, and can be asked about and steered by this
        name like any other."""

    @operation("POST", "/engines/{engine}/cases", ENGINES, ENGINE_NAME, repeatable=True)
    async def engine_case(self, engine: str, case: str, flow: str, facts: dict[str, Value] = {}) -> CaseView:
        """Tell how a case is, without asking the rules. `facts` is what `facts.case` is in an event. With a status of
        completed, failed or cancelled the case is over."""

    @operation("POST", "/engines/{engine}/orders", ENGINES, ENGINE_NAME, waits="wait_ms", audited=False)
    async def engine_orders(self, engine: str, *, wait_ms: Query[WaitMs] = 0) -> list[EngineOrder]:
        """What the engine is to do. The answer is held back until there is an order, or the time is over."""

    @operation("POST", "/engines/{engine}/done", ENGINES, ENGINE_NAME, repeatable=True)
    async def engine_done(self, engine: str, order: str, answer: Value = True) -> list[EngineOrder]:
        """Say that an order is done. `answer` is its result: false if the case or item no longer exists; facts, or
        names, where asked for. What is answered are the orders that are still open."""
