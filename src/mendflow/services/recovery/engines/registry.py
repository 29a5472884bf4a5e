"""The registry of engines of other systems; there may be any number.

An engine registers under a name, which belongs to whoever registered it. Event ids are chosen by engines: here the
engine's name is put in front, so that two engines never share a decision."""

from collections.abc import Collection
from typing import Final

import msgspec

from mendflow.core.model.engine_views import EngineOrder, EngineView
from mendflow.core.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    TemporarilyUnavailable,
    Unreachable,
)
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.values import Value
from mendflow.core.model.views import CASE_END_STATES
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import CASE_KIND, ENGINE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.base.readable_documents import demand_readable, read_or_leave_out, readable_in
from mendflow.services.recovery.decisions import OPEN_STATES, EngineCaseId
from mendflow.services.recovery.engines.engine_events import CASE_FACTS, case_facts, case_facts_in, checked_event
from mendflow.services.recovery.engines.remote import EngineCase, EngineDocument, RemoteEngine
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.external_triggers import ExternalTriggers
from mendflow.stores.contract import Store

_NAME: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_decode = msgspec.json.Decoder(EngineDocument).decode


class ForeignEngines:
    def __init__(
        self,
        service: ExceptionService,
        external: ExternalTriggers,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        homes: HomeRegistry,
    ) -> None:
        self._homes = homes
        self._service = service
        self._external = external
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._engines: dict[str, RemoteEngine] = {}

    async def start(self) -> None:
        """Load the list of engines. The state of an engine is loaded by the server that is its home."""
        for found, document in await readable_in(self._store.scan(ENGINE_KIND), _decode):
            if not self._homes.knows(CaseId(found.id)):
                self._add(document)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Become the home of these engines: an engine counts as a tree of cases with its own name."""
        for found in await self._store.get_many(ENGINE_KIND, list(roots)):
            if (document := read_or_leave_out(found, _decode)) is not None:
                self._ledger.known(ENGINE_KIND, found.id, found.version)
                await self._add(document).start()
                self._homes.hold(found.id, ENGINE_KIND)

    def _add(self, document: EngineDocument) -> RemoteEngine:
        engine = RemoteEngine(document, self._store, self._ledger, self._clock, self._case_ended)
        self._engines[document.name] = engine
        self._service.engines[document.name] = engine
        return engine

    def all(self) -> list[EngineView]:
        return [engine.view() for _, engine in sorted(self._engines.items())]

    def project_of(self, name: str) -> str | None:
        """The project that the engine, and so all its cases, belongs to; None if there is no such engine."""
        return self._engines[name].document.project if name in self._engines else None

    async def register(self, name: str, *, who: str = "", project: str = "") -> EngineView:
        """An engine that registers again is the same engine."""
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r:.80} is not a valid name for an engine: use letters, digits, _ and -", field="name"
            )
        if name in self._engines:
            kept_project(f"engine {name}", self.project_of(name), project)
            return self._engine(name, who).view()
        demand_readable(await self._store.get(ENGINE_KIND, name), _decode)
        if await self._store.get(CASE_KIND, name) is not None:
            raise Conflict(
                f"the name {name} is that of a case, and so would be those of the engine's cases; take another"
            )
        if not await self._homes.claim(name, ENGINE_KIND):
            raise TemporarilyUnavailable(f"engine {name} is just being registered; ask again in a moment")
        document = EngineDocument(
            name=name, owner=who, project=project or DEFAULT_PROJECT, registered_at=self._clock.now()
        )
        engine = self._add(document)
        self._ledger.touch(ENGINE_KIND, name, document)
        return engine.view()

    async def tell(self, name: str, event: ExceptionEvent, *, who: str = "") -> bool:
        """An event of that engine; returns whether it has to hold what was about to happen. An event that says that the
        case is over, or about to complete, ends the case, unless it is held."""
        engine, event = self._engine(name, who), checked_event(event)
        facts = case_facts_in(event)
        ends = facts.status if facts.status in CASE_END_STATES else ""
        if event.type is ExceptionType.CASE_POST:
            ends = ends or "completed"
        if CASE_FACTS in event.facts or await engine.facts(event.case) is None:
            await engine.report(msgspec.structs.replace(facts, status="running") if ends else facts)
        # Jobs are this server's: what the engine calls a job must not name one of them.
        ours = msgspec.structs.replace(event, id=f"{name}:{event.id}", engine=name, job=None)
        if await self._service.decisions.find(ours.id) is None:
            engine.add_event(event)
        held = await self._tell(ours)
        if ends:
            engine.end_after(event, ends, held=held)
        return held

    async def _tell(self, event: ExceptionEvent) -> bool:
        if event.type not in (ExceptionType.CASE_EXTERNAL, ExceptionType.ITEM_EXTERNAL):
            return await self._service.tell(event)
        return (await self._external.decide(event, who=event.engine)).state in OPEN_STATES

    async def report(self, name: str, case: str, flow: str, facts: dict[str, Value], *, who: str = "") -> EngineCase:
        """What the engine says of a case without asking anything: that it has begun, that it has changed, that it is
        over."""
        engine = self._engine(name, who)
        await engine.report(case_facts(CaseId(case), flow, facts))
        found = await engine.find(CaseId(case))
        if found is None:
            raise NotFound(f"engine {name} has never told of a case {case!r:.80}, so it cannot be over")
        return found

    def _case_ended(self, engine: str, case: CaseId, status: str) -> None:
        self._service.run_in_background(self._service.removals.engine_case_ended(EngineCaseId(engine, case), status))

    # For those who ask

    def named(self, name: str) -> EngineCaseId | None:
        """The case that is meant by ENGINE:CASE, if there is an engine of that name."""
        engine, colon, case = name.partition(":")
        return EngineCaseId(engine, CaseId(case)) if colon and case and engine in self._engines else None

    async def case(self, case: EngineCaseId) -> EngineCase:
        """A case of another engine, also one that is over."""
        found = await self._engines[case.engine].find(case.case)
        if found is None:
            raise NotFound(f"engine {case.engine} has told of no case {case.case!r:.80}")
        return found

    def live_case(self, case: EngineCaseId) -> EngineCase | None:
        """A case that is not over, of an engine whose home is this server."""
        engine = self._engines.get(case.engine)
        return engine.live_case(case.case) if engine is not None else None

    def engine_of(self, case: EngineCaseId) -> RemoteEngine:
        """The engine, to order something of it."""
        return self._engine(case.engine, "")

    def cases(self, name: str) -> list[EngineCase]:
        """Its cases that are not over."""
        return self._engine(name, "").live_cases()

    def open_orders(self, case: EngineCaseId) -> list[str]:
        """What the engine was ordered to do with this case and has not done yet."""
        return self._engines[case.engine].open_orders(case.case)

    async def history(self, case: EngineCaseId) -> list[HistoryEntry]:
        return await self._engines[case.engine].history(case.case)

    async def orders(self, name: str, *, who: str = "", wait_ms: int = 0) -> list[EngineOrder]:
        return await self._engine(name, who).orders(wait_ms)

    def done(self, name: str, order: str, answer: Value = True, *, who: str = "") -> None:
        self._engine(name, who).done(order, answer)

    def _engine(self, name: str, who: str) -> RemoteEngine:
        engine = self._engines.get(name)
        if engine is None:
            raise NotFound(f"no engine {name!r} is registered here")
        if who and engine.document.owner and engine.document.owner != who:
            raise Forbidden(f"engine {name} belongs to {engine.document.owner}; register another name")
        if not self._homes.mine(CaseId(name)):
            raise Unreachable(
                f"engine {name} is connected to another server of this store; ask that one, or retry later"
            )
        return engine
