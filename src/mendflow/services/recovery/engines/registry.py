"""The registry of engines of other systems; there may be any number.

An engine registers under a name, which belongs to whoever registered it. Event ids are chosen by engines: here the
engine's name is put in front, so that two engines never share a decision."""

from collections.abc import Collection
from typing import Final

import msgspec

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound, TemporarilyUnavailable, Unreachable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.repair_views import EngineOrder, EngineView
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import ENGINE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.recovery.engines.remote import EngineDocument, RemoteEngine
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.stores.contract import Store

CASE_FACTS: Final = "case"
"""Under this name an event brings what its engine knows of the case, as CaseFacts has it."""

_NAME: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_decode = msgspec.json.Decoder(EngineDocument).decode


class ForeignEngines:
    def __init__(
        self, service: ExceptionService, store: Store, ledger: Ledger, clock: Clock, homes: HomeRegistry
    ) -> None:
        self._homes = homes
        self._service = service
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._engines: dict[str, RemoteEngine] = {}

    async def start(self) -> None:
        """Load the list of engines. The state of an engine is loaded by the server that is its home."""
        async for found in self._store.scan(ENGINE_KIND):
            if not self._homes.knows(CaseId(found.id)):
                self._add(_decode(found.body))

    async def load(self, roots: Collection[CaseId]) -> None:
        """Become the home of these engines: an engine counts as a tree of cases with its own name."""
        for found in await self._store.get_many(ENGINE_KIND, list(roots)):
            self._ledger.known(ENGINE_KIND, found.id, found.version)
            await self._add(_decode(found.body)).start()
            self._homes.hold(found.id, ENGINE_KIND)

    def _add(self, document: EngineDocument) -> RemoteEngine:
        engine = RemoteEngine(document, self._store, self._ledger, self._clock)
        self._engines[document.name] = engine
        self._service.engines[document.name] = engine
        return engine

    def all(self) -> list[EngineView]:
        return [engine.view() for _, engine in sorted(self._engines.items())]

    async def register(self, name: str, *, who: str = "") -> EngineView:
        """An engine that registers again is the same engine."""
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r:.80} is not a valid name for an engine: use letters, digits, _ and -", field="name"
            )
        if name in self._engines:
            return self._engine(name, who).view()
        if not await self._homes.claim(name, ENGINE_KIND):
            raise TemporarilyUnavailable(f"engine {name} is just being registered; ask again in a moment")
        document = EngineDocument(name=name, owner=who, registered_at=self._clock.now())
        engine = self._add(document)
        self._ledger.touch(ENGINE_KIND, name, document)
        return engine.view()

    async def tell(self, name: str, event: ExceptionEvent, *, who: str = "") -> bool:
        """An event of that engine; returns whether it has to hold what was about to happen."""
        engine = self._engine(name, who)
        if not event.id or len(event.id) > 500 or "!" in event.id:
            raise InvalidRequest("an event needs an id of its own, without `!`", field="id")
        engine.update_case(case_facts_in(event))
        # Jobs are this server's: what the engine calls a job must not name one of them.
        ours = msgspec.structs.replace(event, id=f"{name}:{event.id}", engine=name, job=None)
        return await self._service.tell(ours)

    async def orders(self, name: str, *, who: str = "", wait_ms: int = 0) -> list[EngineOrder]:
        return await self._engine(name, who).orders(wait_ms)

    def done(self, name: str, order: str, answer: Value = True, *, who: str = "") -> None:
        self._engine(name, who).done(order, answer)

    def _engine(self, name: str, who: str) -> RemoteEngine:
        engine = self._engines.get(name)
        if engine is None:
            known = ", ".join(sorted(self._engines)) or "none"
            raise NotFound(f"no engine {name!r} is registered here (known: {known})")
        if who and engine.document.owner and engine.document.owner != who:
            raise Forbidden(f"engine {name} belongs to {engine.document.owner}; register another name")
        if not self._homes.mine(CaseId(name)):
            raise Unreachable(
                f"engine {name} is connected to another server of this store; ask that one, or retry later"
            )
        return engine


def case_facts_in(event: ExceptionEvent) -> CaseFacts:
    """What the event says of its case."""
    facts = event.facts.get(CASE_FACTS, {})
    if not isinstance(facts, dict):
        raise InvalidRequest(f"the fact `{CASE_FACTS}` of an event is a map", field=f"facts.{CASE_FACTS}")
    known = {"version": "", "status": "running", "started_at": 0, **facts, "case": event.case, "flow": event.flow}
    try:
        return msgspec.convert(known, CaseFacts)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"the event does not say rightly what its case is: {error}", field=f"facts.{CASE_FACTS}"
        ) from error
