"""The wing of the house where repairs are: everything that the exception service is made of, put together.

It hangs on the rest in few places: the desk asks it for primitives and tells it of ends, the checkpoints ask it what to
hold, the proxy asks it what to do about a failed job. With recovery left out none of these is connected, and the house
runs as if there were no rules."""

from collections.abc import Collection, Coroutine
from typing import Any, Final

from mendflow.core.engine.messages import Cancel, Command, DoMend, ItemFailed, Resume
from mendflow.core.model.ids import CaseId
from mendflow.core.model.mending import ExceptionType
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import Happenings
from mendflow.services.base.homes import HomeBook
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cases.called_cases import CalledCases
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.interception_points import Checkpoints
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.recovery.administration import Administration
from mendflow.services.recovery.contexts import Contexts
from mendflow.services.recovery.decisions import DecisionBook, Mended
from mendflow.services.recovery.engines.local import LocalEngine, facts_of
from mendflow.services.recovery.engines.registry import ForeignEngines
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.exlets import depth_of
from mendflow.services.recovery.failed_attempts import early_failure
from mendflow.services.recovery.interception_rules import Gates
from mendflow.services.recovery.item_starts import Beginnings
from mendflow.services.recovery.job_watch import Watches
from mendflow.services.recovery.levels import Levels
from mendflow.services.recovery.primitives import Primitives
from mendflow.services.recovery.proxy.proxy import Proxy
from mendflow.services.recovery.rules.store import RuleBook
from mendflow.services.recovery.selection import Selection
from mendflow.services.recovery.statistics import Past
from mendflow.services.recovery.unwinding import Library, Unwinding
from mendflow.services.scheduling.capacity import PilotPlaces
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.pilot_scheduler import QueueAndPilots
from mendflow.stores.contract import Store


class MendingWing:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        happenings: Happenings,
        notices: Notices,
        manager: FlowManager,
        flows: Flows,
        checkpoints: Checkpoints,
        gates: Gates,
        meta: QueueAndPilots,
        proxy: Proxy,
        levels: Levels,
        homes: HomeBook,
        house: RuleSet | None,
        check_ms: int,
    ) -> None:
        past = Past(store, ledger, clock)
        self._checkpoints = checkpoints
        self._levels = levels
        self.exceptions = ExceptionService(
            store=store,
            ledger=ledger,
            clock=clock,
            happenings=happenings,
            notices=notices,
            manager=manager,
            flows=flows,
            rules=RuleBook(store, ledger, clock, house),
            decisions=DecisionBook(store, ledger, clock, homes),
            past=past,
            contexts=Contexts(
                clock,
                past,
                PilotPlaces(meta, proxy.inner.keys(), len(levels.waits_ms)),
                proxy.attempts,
                Beginnings(store, manager, meta).of,
            ),
            jobs=proxy,
        )
        self._local = LocalEngine(manager=manager, flows=flows, ledger=ledger, checkpoints=checkpoints)
        self.exceptions.engines[""] = self._local
        self.library = Library(store, ledger, clock, flows)
        self.primitives = Primitives(
            service=self.exceptions,
            manager=manager,
            jobs=proxy,
            levels=levels,
            unwinding=Unwinding(manager, flows, self.library),
            notices=notices,
        )
        levels.due = self.primitives.due
        self.selection = Selection(self.exceptions, flows)
        self.administration = Administration(self.exceptions, manager, flows, ledger, notices, clock, levels)
        self.engines = ForeignEngines(self.exceptions, store, ledger, clock, homes)
        self.watches = Watches(
            service=self.exceptions,
            manager=manager,
            meta=meta,
            gates=gates,
            ledger=ledger,
            clock=clock,
            check_ms=check_ms,
        )

    def connect(self, manager: FlowManager, calls: CalledCases, proxy: Proxy, exchange: Exchange) -> None:
        """Let the rest of the house ask."""
        self._exchange = exchange
        self._checkpoints.service = self.exceptions
        self.exceptions.rules.changed = self._rules_changed
        self._rules_changed()
        manager.remember = self._remembered
        calls.selects = self.selection
        proxy.repairs = self.exceptions

    def _rules_changed(self) -> None:
        self._checkpoints.watched = watched = self.exceptions.rules.watched
        violations = any(ExceptionType.VIOLATION in types for types in (*watched.values(), watched[_NO_FLOW]))
        self._exchange.beat = self.watches.beat if violations else None

    def _remembered(self) -> tuple[str, ...]:
        return self.library.tasks

    async def read_shared(self) -> None:
        """What all servers on the store share."""
        await self.library.start()
        await self.exceptions.rules.start()
        await self.engines.start()

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are taken up."""
        await self._levels.load(roots)
        await self.exceptions.load(roots)
        await self.engines.load(roots)

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After the cases of these trees were taken up."""
        await self.administration.resume(roots)
        await self.exceptions.resume(roots)

    def start(self) -> None:
        """Watch the clock, and what runs."""
        self._levels.start()
        self.watches.start()

    async def steer_end(self, case: CaseId, command: Command) -> bool:
        """What a person wants of a case that has ended and whose end is held. False if it is not one of these."""
        live = self._local.at_its_end(case)
        if live is None or not isinstance(command, (Resume, Cancel)):
            return False
        if isinstance(command, Cancel):
            await self._local.cancel(case, reason=command.reason, by="")
            await self.exceptions.removals.over(live.document)
        await self._local.let_go_of_end(live)
        return True

    async def stop(self) -> None:
        await self.watches.stop()
        await self._levels.stop()
        await self.exceptions.stop()

    # What the desk asks

    async def do(self, live: LiveCase, order: DoMend, again: bool) -> None:
        await self.primitives.do(live, order, again)

    def failed_early(self, live: LiveCase, order: ItemFailed) -> Coroutine[Any, Any, None]:
        return self.exceptions.seen(early_failure(live.document, order), facts_of(live, order.item))

    async def exlet_waits(self, live: LiveCase) -> None:
        decision = self.exceptions.decisions.open.get(live.document.decision)
        if decision is not None:
            await self.exceptions.exlet_waits(decision)

    async def case_over(self, live: LiveCase) -> None:
        if depth_of(live.id) and live.document.status != "completed":
            self._levels.leave_all(f"{live.id}/")
        await self.exceptions.case_over(live.document)

    def tried_again(self, case: CaseId, serial: int) -> bool:
        decisions = self.exceptions.decisions
        return bool(decisions.tries) and decisions.trying(Mended("", case), serial)

    def job_over(self, case: CaseId, serial: int, ok: bool) -> None:
        self.exceptions.job_over(case, serial, ok)


_NO_FLOW: Final = ""
