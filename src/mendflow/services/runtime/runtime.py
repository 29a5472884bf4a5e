"""The runtime: all services of a server, built from what the store says, and thrown away as a whole when a write
fails."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.core.model.repair import Decision
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.core.scheduling.queue import JobQueue
from mendflow.lazy import LazyModule
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.case_trees import LiveCaseTable
from mendflow.services.base.contracts import MetaScheduler
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.base.sealing import Sealer
from mendflow.services.cases.called_cases import CalledCases
from mendflow.services.cases.earlier_tasks import AnswerGrounds
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.interception_points import InterceptionPoints, is_suspended
from mendflow.services.cases.live_case import LiveCase, state_of
from mendflow.services.cases.live_inputs import LiveInputs
from mendflow.services.cases.order_dispatcher import OrderDispatcher
from mendflow.services.cases.result_cache import ResultCache
from mendflow.services.cases.staging import FileStaging
from mendflow.services.cases.submission import Submitter
from mendflow.services.cases.timers import Timers
from mendflow.services.cases.user_tasks import UserTasks
from mendflow.services.cluster.inherited_promises import InheritedPromises
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.cluster.progress import ProgressWriter
from mendflow.services.cluster.shared_secret import known_secret, shared_secret
from mendflow.services.cluster.work_signals import Nudges
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.domains.file_origins import FileOrigins
from mendflow.services.domains.spilled_values import SpilledValues
from mendflow.services.learning.ended_jobs import EndedJobs
from mendflow.services.learning.sizes import SizeLearner
from mendflow.services.messaging.assembly import MessagingServices
from mendflow.services.observe.assembly import ObservabilityServices
from mendflow.services.recovery.decisions import DecisionBegun, DecisionEnded
from mendflow.services.recovery.levels import Levels
from mendflow.services.recovery.proxy.patterns import PatternStore
from mendflow.services.recovery.proxy.proxy import Proxy
from mendflow.services.runtime.domain_wiring import connected_domains, work_across
from mendflow.services.runtime.server_context import ServerContext
from mendflow.services.runtime.service_wiring import (
    data_services_of,
    learning_of,
    projects_of,
    recovery_of,
    relay_of,
    secrets_of,
    sites_of,
    takeover_of,
)
from mendflow.services.scheduling.drained_pilots import DrainedPilots
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.facts import JobMoved
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.waiting_reasons import WaitingReasons

if TYPE_CHECKING:
    from mendflow.services.retention.service import Retention
    from mendflow.services.runtime import retention_wiring, schedule_wiring
    from mendflow.services.schedules.assembly import ScheduleServices
    from mendflow.services.scheduling import pilot_owners
else:
    pilot_owners = LazyModule("mendflow.services.scheduling.pilot_owners")
    schedule_wiring = LazyModule("mendflow.services.runtime.schedule_wiring")
    retention_wiring = LazyModule("mendflow.services.runtime.retention_wiring")

log = logging.getLogger("mendflow.runtime")


class Runtime:
    """The services over one store, wired together."""

    def __init__(self, server: ServerContext) -> None:
        settings, store, clock = server.settings, server.store, server.clock
        self._server = server
        membership = server.membership
        self.ledger = ledger = Ledger(
            store,
            lambda reason: server.on_broken(self, reason),
            promise=membership.promise(),
            shared=membership.shared,
            on_shared=membership.announce_change if isinstance(membership, ServerMembership) else None,
            counts=server.counts.ledger,
        )
        self.homes = HomeRegistry(store, ledger, membership)
        self.hub = hub = Hub()
        self.events = events = EventStream(clock.now())
        self.notices = Notices(store, ledger, clock, events)
        self.sealer = Sealer(lambda: shared_secret(store), lambda: known_secret(store))
        self.flows = Flows(store, ledger, clock, self.sealer, server.flow_compiler)
        self.catalogue = Catalogue(store, ledger, clock, hub)
        live: LiveCaseTable[LiveCase] = LiveCaseTable()
        self.counts = server.counts
        self._stopped = server.stopped
        queue = JobQueue(data_wait_ms=settings.data_wait_ms)
        self._signals = Nudges(membership, server.peers, queue, clock) if membership.shared else None
        self._promises = InheritedPromises()
        self.meta = PilotScheduler(
            store=store,
            ledger=ledger,
            clock=clock,
            policy=RetryPolicy(losses_max=settings.losses_max),
            lease_ms=settings.lease_ms,
            steady_ms_now=server.meter,
            counts=server.counts.jobs,
            hub=hub,
            queue=queue,
            signals=self._signals,
            is_loading=self.homes.is_loading,
            is_stopped=server.stopped.holds,
            spec_for_pilot=lambda job: self.sealer.opened(
                server.tracer.spec_for_pilot(job) if server.tracer is not None else job.spec
            ),
            promised_until=lambda job: self._promises.until(job, self.meta),
        )
        self.ended_jobs = EndedJobs(ledger=ledger, clock=clock, hub=hub, learns=settings.learning)
        self.sizes = SizeLearner(
            store=store, ledger=ledger, clock=clock, hub=hub, meta=self.meta, ended_jobs=self.ended_jobs
        )
        hub.subscribe(JobMoved, self._job_moved)
        hub.subscribe(DecisionEnded, lambda ended: self.counts.count_repair(ended.decision))
        if (tracer := server.tracer) is not None:
            tracer.listen(hub, live, self.meta.pilots)
            hub.subscribe(DecisionEnded, lambda ended: tracer.decision_closed(ended.decision))
        self.connected = connected_domains(self, server)
        domains = {**server.domains, "": self.connected.router}
        self.proxy = Proxy(inner=domains, store=store, ledger=ledger, clock=clock, hub=hub, patterns=server.patterns)
        self.patterns = PatternStore(store, ledger, server.patterns, on_change=self.proxy.use_patterns)
        self.jobs: MetaScheduler = self.proxy if settings.recovery else self.connected.router
        self.interception_points = InterceptionPoints(live=live, ledger=ledger, hub=hub, meta=self.jobs, store=store)
        self.manager = FlowManager(
            store=store,
            ledger=ledger,
            clock=clock,
            events=events,
            homes=self.homes,
            hub=hub,
            live=live,
            points=self.interception_points,
            counted_name=self.flows.counted_name,
            counts=server.counts,
            compiler=server.flow_compiler,
            long_steps=server.long_steps,
            live_inputs=LiveInputs(settings.live_inputs_bytes),
        )
        repairing = hub if settings.recovery else Hub()  # a hub of its own: no rule is asked
        self.levels = Levels(
            store=store, ledger=ledger, clock=clock, homes=self.homes, hub=repairing, waits_ms=settings.levels_ms
        )
        self.timers = Timers(clock, self._fired)
        files, cases_per_start_max = server.file_store, settings.cases_per_start_max
        self.results = ResultCache(store, files, self.catalogue, ledger, clock, events, hub)
        self.submitter = Submitter(self.jobs, ledger, clock, self.notices, self._job_finished)
        self.tasks = UserTasks(
            store=store,
            ledger=ledger,
            clock=clock,
            events=events,
            finished=self.finished,
            is_suspended=lambda case, item: case in live and is_suspended(live[case], item),
        )
        self.staging = FileStaging(
            files,
            self.catalogue.resolve,
            self.finished,
            server.files_roots,
            ledger,
            server.read_table,
            hub,
            server.settings.teller,
        )
        self.calls = CalledCases(self.manager, self.flows, ledger, self.finished, hub, live, cases_per_start_max)
        self.messaging = MessagingServices(self, server, self.finished)
        self.ports, self.message_router = self.messaging.by_name, self.messaging.message_router
        self.dispatcher = OrderDispatcher(
            manager=self.manager,
            calls=self.calls,
            interception_points=self.interception_points,
            meta=self.jobs,
            submitter=self.submitter,
            results=self.results,
            tasks=self.tasks,
            grounds=AnswerGrounds(live.get, self.flows.deployed),
            staging=self.staging,
            timers=self.timers,
            ledger=ledger,
            clock=clock,
            events=events,
            notices=self.notices,
            hub=hub,
        )
        self.watch = ObservabilityServices(
            store=store,
            ledger=ledger,
            clock=clock,
            rules=settings.monitor,
            poster=server.poster,
            membership=membership,
            homes=self.homes,
            notices=self.notices,
            manager=self.manager,
            meta=self.meta,
            levels=self.levels,
            hub=hub,
            files=files,
        )
        self.monitor, self.notifier = self.watch.monitor, self.watch.notifier
        hub.subscribe(DecisionBegun, lambda begun: self._decision_moved(begun.decision))
        hub.subscribe(DecisionEnded, lambda ended: self._decision_moved(ended.decision))
        self.spilled_values = SpilledValues(files)
        self.file_origins = FileOrigins(
            store=store,
            ledger=ledger,
            manager=self.manager,
            hub=hub,
            resolve=self.catalogue.resolve,
            spilled=self.spilled_values,
        )
        self.domains = work_across(self, server)
        self._data = data_services_of(self, server)
        self.data_sets, self.watches, self.triggers = self._data.sets, self._data.watches, self._data.triggers
        self.sites = sites_of(self, server)
        self.limits = LimitService(store=store, ledger=ledger, clock=clock, meta=self.meta, homes=self.homes, live=live)
        self.projects = projects_of(self, server)
        self.secrets = secrets_of(self, server)
        self.waiting_reasons = WaitingReasons(self.meta, clock, self.sites.monitor.help_for, self.limits, self.projects)
        hub.provide(WaitingReasons, self.waiting_reasons)
        self.drains = DrainedPilots(store, clock, self.meta)
        self._pilot_owners = None if settings.owner_only else pilot_owners.PilotOwners(store, ledger, clock)
        self.exchange = Exchange(
            meta=self.meta,
            store=store,
            ledger=ledger,
            clock=clock,
            notices=self.notices,
            relay=relay_of(self, server),
            sites=self.sites.monitor,
            unprocessed=server.unprocessed_reports,
            hidden=server.hidden,
            limits=self.limits,
            secrets=self.secrets,
            drains=self.drains,
            owners=self._pilot_owners,
        )
        self.recovery = recovery_of(self, server, repairing)
        self.exceptions = self.recovery.exceptions
        self.administration = self.recovery.administration
        self.engines = self.recovery.engines
        self.learning = learning_of(self, server)
        self._clock = clock
        self._recovers = settings.recovery
        self._takeover = takeover_of(self, server)
        self._progress = ProgressWriter(self.manager.live, ledger, clock)
        self._reading: asyncio.Task[None] | None = None
        hub.check()
        repairing.check()

    @cached_property
    def schedules(self) -> "ScheduleServices":
        """Built when they are first asked for: most commands in a data folder never do."""
        return schedule_wiring.schedules_of(self, self._server)

    @cached_property
    def retention(self) -> "Retention":
        """Built when it is first asked for, like schedules."""
        return retention_wiring.retention_of(self, self._server)

    async def start(self) -> None:
        self.ledger.start()
        await self.notices.start()
        await self.read_shared()
        await self.take_up(await self.homes.claim_own())
        self.recovery.start()
        self.learning.start()
        self.timers.start()
        self.limits.start()
        self.projects.start()
        self.exchange.start()
        self.watch.start()
        await self.drains.start()
        if self._pilot_owners is not None:
            await self._pilot_owners.start()
        self.sites.monitor.start()
        self._data.start()
        if self._server.settings.schedules:
            self.schedules.start()
            self.retention.start()
        await self.domains.start()
        if self._takeover is not None:
            self._takeover.start()
            self._progress.start()

    async def read_shared(self) -> None:
        """Load what all servers on the store share; other servers may have changed it."""
        await self.sealer.start()
        await self.projects.read_shared()
        await self.flows.start()
        await self.connected.read_shared()
        await self._data.read_shared()
        await self.catalogue.elements.start()
        await self.patterns.start()
        await self.watch.read_shared()
        await self.recovery.read_shared()

    def schedule_read_shared(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_shared_again())

    async def _read_shared_again(self) -> None:
        try:
            await self.read_shared()
        except StoreUnavailable as error:
            log.warning(
                "changes of other servers could not be read: %s; trying again after the next change", error.message
            )

    async def take_up(self, trees: Sequence[CaseTree]) -> None:
        """Load these trees of cases from the store, and continue them. Requests about them wait until all are
        loaded."""
        roots = {tree.root for tree in trees}
        self._promises.note(trees, self.meta.steady_ms_now())
        self.homes.begin_loading(trees)
        await self.watch.load(roots)
        await self.messaging.load(roots)
        await self.recovery.load(roots)
        await self.domains.load(roots)
        cases = [live for tree in trees for live in await self.manager.load(tree)]
        self._stopped.add_found(live.document.id for live in cases)
        await self.manager.reissue_orders(cases)
        await self.calls.resume(cases)
        await self.tasks.resume(roots)
        await self.recovery.resume(roots)
        await self.messaging.resume(roots, cases)
        await self.domains.resume(cases)
        self.counts.cases_loaded(trees=sum(tree.moved for tree in trees), now=self._clock.now())
        self.homes.end_loading(trees)
        self.meta.enqueue_held_back()
        self._promises.forget(trees)

    def release(self, case: CaseId) -> None:
        """Continue the tree of a case that was found unfinished and not continued so far."""
        self._stopped.release(case)
        self.meta.enqueue_held_back()

    async def stop(self) -> None:
        await self.sites.monitor.stop()
        await self.domains.stop()
        await self.connected.stop()
        for lazy in {"schedules", "retention"} & vars(self).keys():
            await getattr(self, lazy).stop()
        await self._data.stop()
        await self.watch.stop()
        if self._takeover is not None:
            await self._takeover.stop()
        await self._progress.stop()
        await cancel_tasks(self._reading)
        await self.exchange.stop()
        if self._pilot_owners is not None:
            await self._pilot_owners.stop()
        await self.projects.stop()
        await self.limits.stop()
        if self._signals is not None:
            await self._signals.stop()
        await self.ended_jobs.stop()
        await self.learning.stop()
        await self.recovery.stop()
        await self.interception_points.stop()
        await self.timers.stop()
        await self.submitter.stop()
        await self.staging.stop()
        await self.dispatcher.stop()
        await self.messaging.stop()
        await self.calls.stop()
        await self.proxy.stop()
        await self.meta.stop()
        await self.sizes.stop()
        self.events.stop()
        await self.ledger.stop()

    async def finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        await self.dispatcher.finished(case, serial, outcome)

    def _job_finished(self, case: CaseId, serial: int, outcome: Outcome) -> Coroutine[None, None, None]:
        if outcome.files:
            return self._finish_with_files(case, serial, outcome)
        return self.dispatcher.job_finished(case, serial, outcome)

    async def _finish_with_files(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        with self.ledger.atomic():
            outcome = await self.catalogue.published(JobId(f"{case}/{serial}"), outcome)
        await self.dispatcher.job_finished(case, serial, outcome)

    async def _fired(self, case: CaseId, serial: int) -> None:
        await self.dispatcher.fired(case, serial)

    def _decision_moved(self, decision: Decision) -> None:
        live = self.manager.live.get(decision.case) if not decision.engine else None
        self.notifier.decision_moved(decision, owner=live.document.owner if live is not None else "")
        if decision.state not in ("waiting", "ignored", "passive") and not decision.engine:
            self.monitor.went_on(decision.case)
        if decision.settled_at and decision.ended_at:  # what came of another try is known after the exlet has ended
            words = f"{decision.exlet}: {decision.result}"
            self.events.tell(decision.settled_at, "repair", decision.case, decision.item, decision.state, words)

    def _job_moved(self, fact: JobMoved) -> None:
        job, live = fact.job, self.manager.live.get(fact.job.case)
        if live is None:
            return
        state = state_of(job, runs=job.state is JobState.RUNNING and self.meta.runs(job))
        if state == "completed":
            self.results.index.record(job, live.document.flow)
            self.monitor.runtimes.note(live.document.counted_flow, job)
        moved = live.move_job(job, state)
        if job.spec.expected_ms and self._recovers:
            self.recovery.watches.job_moved(job)
        if moved:  # otherwise it still waits, now with a pilot
            self.events.tell(self._clock.now(), "item", job.case, job.spec.item, state)
