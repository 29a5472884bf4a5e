"""One generation of services: all that a server knows, built from what the store says, and thrown away as a whole."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.problems import StoreUnavailable
from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.patterns import Patterns
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.core.scheduling.jobs import Policy
from mendflow.core.scheduling.queue import Queue
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import Neighbours, root_of
from mendflow.services.base.contracts import Clock, Keeper, MetaScheduler
from mendflow.services.base.counters import Counts
from mendflow.services.base.events import Happenings
from mendflow.services.base.homes import HomeBook, Tree
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.base.poster import Poster
from mendflow.services.cases.called_cases import CalledCases
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.interception_points import Checkpoints
from mendflow.services.cases.interception_rules import Gates
from mendflow.services.cases.live_case import LiveCase, state_of
from mendflow.services.cases.order_dispatcher import OrderDesk
from mendflow.services.cases.result_cache import Reuse
from mendflow.services.cases.staging import Staging
from mendflow.services.cases.starting import Beginning
from mendflow.services.cases.submission import Submitter
from mendflow.services.cases.timers import Timers
from mendflow.services.cases.user_tasks import Tasks
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.cluster.progress import Progress
from mendflow.services.cluster.relay import Relay
from mendflow.services.cluster.remote_pilots import Acquaintance
from mendflow.services.cluster.takeover import Takeover
from mendflow.services.cluster.work_signals import Nudges
from mendflow.services.data.assembly import DataWing
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.data.watches.storage import Elements
from mendflow.services.messaging.assembly import Ports
from mendflow.services.messaging.contracts import Caller
from mendflow.services.messaging.ports.jobs import JobReader
from mendflow.services.messaging.style_sheets import Transformer
from mendflow.services.observe.assembly import WatchWing
from mendflow.services.observe.monitor_settings import MonitorRules
from mendflow.services.observe.tracing.tracer import Tracer
from mendflow.services.recovery.assembly import MendingWing
from mendflow.services.recovery.decisions import DecisionEnded
from mendflow.services.recovery.job_watch import CHECK_MS
from mendflow.services.recovery.levels import DEFAULT_WAITS_MS, Levels
from mendflow.services.recovery.proxy.patterns import PatternBook
from mendflow.services.recovery.proxy.proxy import Proxy
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.pilot_scheduler import JobMoved, QueueAndPilots
from mendflow.services.scheduling.sites.batch_systems import BatchSystems
from mendflow.services.scheduling.sites.pilot_monitor import LOOK_MS as SITES_LOOK_MS
from mendflow.services.scheduling.sites.service import Provisioning
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.house")


class HouseRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's owner decides. `files_roots` are the folders that flows may read given files from; `levels_ms`
    the waits of the levels; `check_ms` is how often is looked for jobs that nobody can take. Without `recovery` no rule
    is asked."""

    lease_ms: int = 30_000
    losses_max: int = 20
    files_roots: tuple[Path, ...] | None = ()
    recovery: bool = True
    levels_ms: tuple[int, ...] = DEFAULT_WAITS_MS
    check_ms: int = CHECK_MS
    monitor: MonitorRules = MonitorRules()
    sites_look_ms: int = SITES_LOOK_MS
    data_wait_ms: int = DATA_WAIT_MS  # how long a job is kept back for an idle pilot that has its data


class Roof(Protocol):
    """What services are built from: it stays when they are thrown away and built anew."""

    rules: HouseRules
    store: Store
    keeper: Keeper
    clock: Clock
    meter: Meter
    counts: Counts
    tracer: Tracer | None
    membership: OwnMembership
    neighbours: Neighbours
    poster: Poster
    caller: Caller
    transformer: Transformer
    url: str
    read_job: JobReader
    elements: Elements
    batches: BatchSystems | None
    domains: Mapping[str, MetaScheduler]
    way_to_queue: Callable[[MetaScheduler], MetaScheduler]
    shipped: RuleSet | None
    patterns: Patterns
    chance: Callable[[int], str]

    def on_broken(self, services: "Services", reason: str) -> None: ...


class Services:
    """One generation of services over one store, wired together."""

    def __init__(self, house: Roof) -> None:
        rules, store, clock = house.rules, house.store, house.clock
        self._membership = membership = house.membership
        self.ledger = ledger = Ledger(
            store,
            lambda reason: house.on_broken(self, reason),
            promise=membership.promise(),
            shared=membership.shared,
            on_shared=membership.has_changed if isinstance(membership, ServerMembership) else None,
            counts=house.counts.ledger,
        )
        self.homes = HomeBook(store, ledger, membership)
        self.hub = hub = Hub()
        self.happenings = happenings = Happenings(clock.now())
        self.notices = Notices(store, ledger, clock, happenings)
        self.flows = Flows(store, ledger, clock)
        self.catalogue = Catalogue(store, ledger, clock, hub)
        live: dict[CaseId, LiveCase] = {}
        self.counts = house.counts
        self.checkpoints = Checkpoints(live, ledger, hub)
        self.manager = FlowManager(
            store=store,
            ledger=ledger,
            clock=clock,
            happenings=happenings,
            homes=self.homes,
            hub=hub,
            live=live,
            points=self.checkpoints,
            counts=house.counts,
        )
        queue = Queue(data_wait_ms=rules.data_wait_ms)
        self._signals = Nudges(membership, house.neighbours, queue, clock) if membership.shared else None
        self._promised: dict[CaseId, int] = {}  # by tree that was taken over: when its last promise can have begun
        self.meta = QueueAndPilots(
            store=store,
            ledger=ledger,
            clock=clock,
            policy=Policy(losses_max=rules.losses_max),
            lease_ms=rules.lease_ms,
            steady=house.meter,
            counts=house.counts.jobs,
            hub=hub,
            queue=queue,
            signals=self._signals,
            is_loading=self.homes.comes,
            spec_for_pilot=house.tracer.spec_for_pilot if house.tracer is not None else lambda job: job.spec,
            promised_until=self._promised_until,
        )
        hub.subscribe(JobMoved, lambda moved: self._moved(moved.job))
        hub.subscribe(DecisionEnded, lambda ended: self.counts.repaired(ended.decision))
        if (tracer := house.tracer) is not None:
            tracer.listen(hub, live, self.meta.pilots)
            hub.subscribe(DecisionEnded, lambda ended: tracer.repaired(ended.decision))
        domains = {**house.domains, "": house.way_to_queue(self.meta)}
        self.proxy = Proxy(inner=domains, store=store, ledger=ledger, clock=clock, hub=hub, patterns=house.patterns)
        self.patterns = PatternBook(store, ledger, house.patterns, told=self.proxy.use)
        self.jobs: MetaScheduler = self.proxy if rules.recovery else self.meta
        self.gates = Gates(self.checkpoints, self.jobs, store)
        repairing = hub if rules.recovery else Hub()  # one that nobody else has: no rule is asked
        self.levels = Levels(
            store=store, ledger=ledger, clock=clock, homes=self.homes, hub=repairing, waits_ms=rules.levels_ms
        )
        self.timers = Timers(clock, self._fired)
        self.submitter = Submitter(self.jobs, ledger, clock, self.notices, self._job_finished)
        self.tasks = Tasks(store=store, ledger=ledger, clock=clock, happenings=happenings, finished=self._finished)
        self.staging = Staging(house.keeper, self.catalogue.resolve, self._finished, rules.files_roots, ledger)
        self.calls = CalledCases(self.manager, self.flows, ledger, self._finished, hub)
        self.port_wing = Ports(self, house, self._finished)
        self.ports, self.mailroom = self.port_wing.table, self.port_wing.mailroom
        self.desk = OrderDesk(
            manager=self.manager,
            calls=self.calls,
            gates=self.gates,
            meta=self.jobs,
            submitter=self.submitter,
            reuse=Reuse(house.keeper, self.catalogue, ledger, clock, happenings),
            tasks=self.tasks,
            staging=self.staging,
            timers=self.timers,
            ledger=ledger,
            clock=clock,
            happenings=happenings,
            notices=self.notices,
            hub=hub,
        )
        self.watch = WatchWing(
            store=store,
            ledger=ledger,
            clock=clock,
            rules=rules.monitor,
            poster=house.poster,
            membership=membership,
            homes=self.homes,
            notices=self.notices,
            manager=self.manager,
            meta=self.meta,
            levels=self.levels,
            hub=hub,
        )
        self.monitor, self.notifier = self.watch.monitor, self.watch.notifier
        self._data = self._data_wing(house)
        self.data_sets, self.watches = self._data.sets, self._data.watches
        self.sites = self._provisioning(house)
        self.exchange = Exchange(
            meta=self.meta,
            store=store,
            ledger=ledger,
            clock=clock,
            notices=self.notices,
            relay=self._relay(house),
            sites=self.sites.monitor,
        )
        self.mending = self._mending_wing(house, repairing)
        self.exceptions = self.mending.exceptions
        self.administration = self.mending.administration
        self.engines = self.mending.engines
        self._clock = clock
        self._recovers = rules.recovery
        self._takeover = self._taking_over(house)
        self._progress = Progress(self.manager.live, ledger, clock)
        self._reading: asyncio.Task[None] | None = None

    def _relay(self, house: Roof) -> Relay | None:
        """The way to other servers, if there may be some."""
        if not self._membership.shared:
            return None
        return Relay(
            membership=self._membership,
            homes=self.homes,
            neighbours=house.neighbours,
            clock=house.clock,
            lease_ms=house.rules.lease_ms,
            holds=self._membership.promise().holds,
            caches=self.meta.caches,
            remote_pilots=Acquaintance(self._membership, house.neighbours, house.clock, self.meta),
        )

    def _provisioning(self, house: Roof) -> Provisioning:
        return Provisioning(
            store=house.store,
            ledger=self.ledger,
            clock=house.clock,
            membership=house.membership,
            meta=self.meta,
            alerts=self.monitor.alerts,
            batches=house.batches,
            elements=self.catalogue.elements.find,
            look_ms=house.rules.sites_look_ms,
            chance=house.chance,
        )

    def _taking_over(self, house: Roof) -> Takeover | None:
        if not isinstance(house.membership, ServerMembership):
            return None
        return Takeover(
            store=house.store,
            ledger=self.ledger,
            membership=house.membership,
            homes=self.homes,
            meter=house.meter,
            read_shared=self.read_shared,
            take_up=self.take_up,
        )

    def _mending_wing(self, house: Roof, hub: Hub) -> MendingWing:
        return MendingWing(
            store=house.store,
            ledger=self.ledger,
            clock=house.clock,
            happenings=self.happenings,
            notices=self.notices,
            manager=self.manager,
            flows=self.flows,
            checkpoints=self.checkpoints,
            gates=self.gates,
            meta=self.meta,
            proxy=self.proxy,
            levels=self.levels,
            homes=self.homes,
            house=house.shipped,
            check_ms=house.rules.check_ms,
            hub=hub,
            shared=self._membership.shared,
            on_the_way=self.sites.monitor.on_the_way,
        )

    def _data_wing(self, house: Roof) -> DataWing:
        return DataWing(
            store=house.store,
            ledger=self.ledger,
            clock=house.clock,
            keeper=house.keeper,
            membership=self._membership,
            catalogue=self.catalogue,
            elements=house.elements,
            flows=self.flows,
            starting=Beginning(self, house.store, house.clock, house.chance),
            notices=self.notices,
            hub=self.hub,
        )

    async def start(self) -> None:
        self.ledger.start()
        await self.notices.start()
        await self.read_shared()
        await self.take_up(await self.homes.own())
        self.mending.start()
        self.timers.start()
        self.exchange.start()
        self.watch.start()
        self.sites.monitor.start()
        self._data.start()
        if self._takeover is not None:
            self._takeover.start()
            self._progress.start()

    async def read_shared(self) -> None:
        """What all servers on the store share; others may have changed it."""
        await self.flows.start()
        await self.catalogue.elements.start()
        await self.patterns.start()
        await self.watch.read_shared()
        await self.mending.read_shared()

    def read_shared_soon(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_shared_again())

    async def _read_shared_again(self) -> None:
        try:
            await self.read_shared()
        except StoreUnavailable as error:
            log.warning("changes of other servers could not be read: %s", error.message)

    async def take_up(self, trees: Sequence[Tree]) -> None:
        """Go on with these trees of cases from what the store says. Until all of it is here, nobody is let near."""
        roots = {tree.root for tree in trees}
        now = self.meta.steady()
        self._promised |= {each.root: now + each.promised_ms for each in trees if each.promised_ms is not None}
        self.homes.coming(trees)
        await self.watch.load(roots)
        await self.port_wing.load(roots)
        await self.mending.load(roots)
        cases = [live for tree in trees for live in await self.manager.load(tree)]
        await self.manager.give_again(cases)
        await self.calls.resume(cases)
        await self.tasks.resume(roots)
        await self.mending.resume(roots)
        await self.port_wing.resume(roots, cases)
        self.counts.took_up(trees=sum(tree.moved for tree in trees), now=self._clock.now())
        self.homes.came(trees)
        self.meta.came()
        for root in roots:
            self._promised.pop(root, None)

    def _promised_until(self, job: Job) -> int:
        """When a promise to the pilot of a job is over that we did not make. It may have had a longer lease from who
        granted it than from who took that over."""
        promised = self._promised.get(root_of(job.case))
        longer_ms = job.history[-1].lease_ms - self.meta.leases.lease_ms
        return self.meta.full_term(job) if promised is None else promised + max(0, longer_ms)

    async def stop(self) -> None:
        await self.sites.monitor.stop()
        await self._data.stop()
        await self.watch.stop()
        if self._takeover is not None:
            await self._takeover.stop()
        await self._progress.stop()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.exchange.stop()
        if self._signals is not None:
            await self._signals.stop()
        await self.mending.stop()
        await self.checkpoints.stop()
        await self.timers.stop()
        await self.submitter.stop()
        await self.staging.stop()
        await self.desk.stop()
        await self.port_wing.stop()
        await self.calls.stop()
        await self.proxy.stop()
        await self.meta.stop()
        self.happenings.stop()
        await self.ledger.stop()

    async def _finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        await self.desk.finished(case, serial, outcome)

    async def _job_finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        with self.ledger.whole():
            outcome = await self.catalogue.published(JobId(f"{case}/{serial}"), outcome)
        await self.desk.job_finished(case, serial, outcome)

    async def _fired(self, case: CaseId, serial: int) -> None:
        await self.desk.fired(case, serial)

    def _moved(self, job: Job) -> None:
        live = self.manager.live.get(job.case)
        if live is None:
            return
        state = state_of(job, runs=self.meta.runs(job))
        if state == "completed":
            self.monitor.runtimes.note(live.document.flow, job)
        moved = live.move_job(job, state)
        if job.spec.expected_ms and self._recovers:
            self.mending.watches.moved(job)
        if moved:  # else it waits as it did before, now with a pilot
            self.happenings.tell(self._clock.now(), "item", job.case, job.spec.item, state)
