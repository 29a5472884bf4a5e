"""Puts together the parts of the exception service.

The other services reach it only through the hub: the order dispatcher asks it for primitives and reports ends, the
interception points ask it what to hold, the proxy asks it what to do about a failed job. A server without recovery
gives it a hub of its own: then none of these finds it, and flows run as if there were no rules."""

from collections.abc import Callable, Collection, Coroutine
from typing import Any

from mendflow.core.engine.messages import Cancel, Command, ItemFailed, Resume, RunPrimitive
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Resources
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.alerts import UnhandledFailures
from mendflow.services.base.contracts import Clock, Repairs
from mendflow.services.base.engine_interfaces import InterfaceX
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.base.sealing import Sealer
from mendflow.services.base.source_reader import SourceReader
from mendflow.services.cases.called_cases import CallSelector
from mendflow.services.cases.facts import RecoveryHooks, UndoLibrary
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.interception_points import InterceptionPoints
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.cases.user_tasks import UserTasks
from mendflow.services.recovery.administration import ManualRepairs
from mendflow.services.recovery.contexts import ContextBuilder
from mendflow.services.recovery.decisions import DecisionStore, EngineCaseId
from mendflow.services.recovery.engines.local import LocalEngine, facts_of
from mendflow.services.recovery.engines.registry import ForeignEngines
from mendflow.services.recovery.exception_service import ExceptionService
from mendflow.services.recovery.exlets import exlet_depth
from mendflow.services.recovery.external_triggers import ExternalTriggers
from mendflow.services.recovery.failed_attempts import early_failure_event
from mendflow.services.recovery.group_repairs import GroupRepairs
from mendflow.services.recovery.item_starts import ItemStartTimes
from mendflow.services.recovery.job_watch import ExceptionMonitor
from mendflow.services.recovery.levels import DueEntries, Levels
from mendflow.services.recovery.primitives import Primitives
from mendflow.services.recovery.proxy.proxy import Proxy
from mendflow.services.recovery.reopening import CaseReopener, TakeUp
from mendflow.services.recovery.replaced_inputs import FilesInPlace
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.services.recovery.selection import WorkletSelector
from mendflow.services.recovery.sources import SourceRegistry
from mendflow.services.recovery.statistics import ExceptionHistory
from mendflow.services.recovery.unwinding import CompensationRegistry, Unwinder
from mendflow.services.scheduling.capacity import CapacityView
from mendflow.services.scheduling.facts import FailedAttempts
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store


class RecoveryServices:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        notices: Notices,
        manager: FlowManager,
        flows: Flows,
        interception_points: InterceptionPoints,
        tasks: UserTasks,
        meta: PilotScheduler,
        proxy: Proxy,
        levels: Levels,
        homes: HomeRegistry,
        shipped: RuleSet | None,
        check_ms: int,
        holds_unhandled: bool,
        hub: Hub,
        shared: bool,
        is_pilot_coming: Callable[[Resources], bool],
        take_up: TakeUp,
        sealer: Sealer,
        source_reader: SourceReader,
        files: FilesInPlace,
    ) -> None:
        rules = RuleStore(
            store,
            ledger,
            clock,
            hub,
            flows.sealed,
            shipped,
            compiler=flows.compiler,
            shared=shared,
            project_of_flow=flows.project_of,
        )
        self.sources = SourceRegistry(
            store=store, ledger=ledger, clock=clock, sealer=sealer, reader=source_reader, rules=rules
        )
        past = ExceptionHistory(store, ledger, clock)
        self._interception_points = interception_points
        self._levels = levels
        self.exceptions = ExceptionService(
            store=store,
            ledger=ledger,
            clock=clock,
            events=events,
            notices=notices,
            manager=manager,
            flows=flows,
            rules=rules,
            decisions=DecisionStore(store, ledger, clock, homes, hub),
            past=past,
            contexts=ContextBuilder(
                clock,
                past,
                CapacityView(meta, proxy.inner.keys(), len(levels.waits_ms)),
                proxy.attempts,
                ItemStartTimes(store, manager, meta).of,
                hub,
                self.sources,
            ),
            jobs=proxy,
            holds_unhandled=holds_unhandled,
            hub=hub,
        )
        self._local = LocalEngine(
            manager=manager, flows=flows, ledger=ledger, interception_points=interception_points, tasks=tasks
        )
        self.exceptions.engines[""] = self._local
        self.library = CompensationRegistry(store, ledger, clock, flows)
        self.primitives = Primitives(
            service=self.exceptions,
            manager=manager,
            jobs=proxy,
            levels=levels,
            unwinding=Unwinder(manager, flows, self.library),
            notices=notices,
            files=files,
        )
        self.selection = WorkletSelector(self.exceptions, flows)
        external = ExternalTriggers(self.exceptions, notices)
        self.administration = ManualRepairs(self.exceptions, manager, flows, ledger, clock, levels, external)
        self.reopener = CaseReopener(
            store=store, ledger=ledger, clock=clock, events=events, homes=homes, manager=manager, take_up=take_up
        )
        self.groups = GroupRepairs(self.administration, self.reopener, manager, homes, store, clock)
        self.engines = ForeignEngines(self.exceptions, external, store, ledger, clock, homes)
        self.watches = ExceptionMonitor(
            service=self.exceptions,
            manager=manager,
            meta=meta,
            interception_points=interception_points,
            ledger=ledger,
            clock=clock,
            check_ms=check_ms,
            hub=hub,
            is_pilot_coming=is_pilot_coming,
        )
        hub.provide(InterfaceX, self.exceptions)
        hub.provide(Repairs, self.exceptions)
        hub.provide(UnhandledFailures, self.exceptions)
        hub.provide(FailedAttempts, proxy)
        hub.provide(RecoveryHooks, self)
        hub.provide(UndoLibrary, self.library)
        hub.provide(CallSelector, self.selection)
        hub.provide(DueEntries, self.primitives)

    async def read_shared(self) -> None:
        """Load what all servers on the store share."""
        await self.library.start()
        await self.exceptions.rules.start()
        await self.sources.start()
        await self.engines.start()

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees are loaded."""
        await self._levels.load(roots)
        await self.exceptions.load(roots)
        await self.engines.load(roots)

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After the cases of these trees were loaded."""
        await self.administration.resume(roots)
        await self.exceptions.resume(roots)

    def start(self) -> None:
        """Start the timers of levels and the watch over running jobs."""
        self._levels.start()
        self.watches.start()

    async def steer_end(self, case: CaseId, command: Command) -> bool:
        """A person's command for a case that has ended and whose end is held. False if it is not such a case."""
        live = self._local.ending_case(case)
        if live is None or not isinstance(command, (Resume, Cancel)):
            return False
        if isinstance(command, Cancel):
            await self._local.cancel(case, reason=command.reason, by="")
            await self.exceptions.removals.case_ended(live.document)
        await self._local.release_end(live)
        return True

    async def item_removed(self, case: CaseId, item: ItemId, reason: str) -> None:
        """A person has removed an item of a live case."""
        await self.exceptions.removals.item_removed(case, item, reason)

    async def stop(self) -> None:
        await self.watches.stop()
        await self._levels.stop()
        await self.exceptions.stop()

    # Called by the order dispatcher

    async def do(self, live: LiveCase, order: RunPrimitive, reissued: bool) -> None:
        await self.primitives.do(live, order, reissued)

    def item_failed_early(self, live: LiveCase, order: ItemFailed) -> Coroutine[Any, Any, None]:
        return self.exceptions.record_early_failure(
            early_failure_event(live.document, order), facts_of(live, order.item), project=live.document.project
        )

    async def exlet_is_waiting(self, live: LiveCase) -> None:
        decision = self.exceptions.decisions.open.get(live.document.decision)
        if decision is not None:
            await self.exceptions.held.release_while_exlet_waits(decision)

    async def case_over(self, live: LiveCase) -> None:
        if exlet_depth(live.id) and live.document.status != "completed":
            self._levels.leave_all(f"{live.id}/")
        await self.exceptions.case_over(live.document)

    def tried_again(self, case: CaseId, serial: int) -> bool:
        decisions = self.exceptions.decisions
        return bool(decisions.retries) and decisions.is_retrying(EngineCaseId("", case), serial)

    def job_over(self, case: CaseId, serial: int, ok: bool) -> None:
        self.exceptions.job_over(case, serial, ok)
