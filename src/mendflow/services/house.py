"""All services of one server under one roof, and the way back when the store was away.

Memory runs ahead of the disk, never the other way round. So when a write fails there is one remedy for everything: drop
all services and build them anew from what the disk says. Until then every call is told that the store is away."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from mendflow.core.model.ids import CaseId, Instant, PilotId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.model.problems import StoreUnavailable
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.views import Health
from mendflow.core.recovery.patterns import Patterns
from mendflow.core.scheduling.jobs import Policy
from mendflow.services.called_cases import CalledCases
from mendflow.services.case_book import state_of
from mendflow.services.checkpoints import Checkpoints
from mendflow.services.clock import Meter
from mendflow.services.cluster.contract import NO_NEIGHBOURS, Neighbours, ServerDocument, root_of
from mendflow.services.cluster.homes import HomeBook, Tree
from mendflow.services.cluster.membership import Alone, OwnMembership, ServerMembership
from mendflow.services.cluster.relay import Relay
from mendflow.services.cluster.takeover import Takeover
from mendflow.services.cluster.work_signs import Nudges
from mendflow.services.contracts import Clock, Keeper, MetaScheduler
from mendflow.services.errands import OrderDesk
from mendflow.services.exception_service.watches import CHECK_MS
from mendflow.services.exchange import Exchange
from mendflow.services.flow_manager import FlowManager
from mendflow.services.flows import Flows
from mendflow.services.gates import Gates
from mendflow.services.happenings import Happenings
from mendflow.services.job_monitor.rules import MonitorRules
from mendflow.services.ledger import Ledger
from mendflow.services.levels import DEFAULT_WAITS_MS, Levels
from mendflow.services.mending import MendingWing
from mendflow.services.meta_scheduler import QueueAndPilots
from mendflow.services.metering import Counts, store_name
from mendflow.services.notices import Notices
from mendflow.services.notifier.contract import NO_POSTER, Poster
from mendflow.services.proxy import Proxy
from mendflow.services.proxy.pattern_book import PatternBook
from mendflow.services.proxy.recovery import OUR_QUEUE
from mendflow.services.reuse import Reuse
from mendflow.services.staging import Staging
from mendflow.services.submission import Submitter
from mendflow.services.tasks import Tasks
from mendflow.services.timers import Timers
from mendflow.services.watch_wing import WatchWing
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.house")
_FIRST_RETRY_MS = 500
_LONGEST_RETRY_MS = 10_000
NO_PATTERNS = Patterns()
NO_DOMAINS: Mapping[str, MetaScheduler] = {}


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


class Services:
    """One generation of services over one store, wired together."""

    def __init__(self, house: "House") -> None:
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
        self.happenings = happenings = Happenings(clock.now())
        self.notices = Notices(store, ledger, clock, happenings)
        self.flows = Flows(store, ledger, clock)
        self.manager = FlowManager(store=store, ledger=ledger, clock=clock, happenings=happenings, homes=self.homes)
        self.meta = QueueAndPilots(
            store=store,
            ledger=ledger,
            clock=clock,
            policy=Policy(losses_max=rules.losses_max),
            lease_ms=rules.lease_ms,
            steady=house.meter,
            counts=house.counts.jobs,
        )
        self.counts = self.manager.counts = house.counts
        self.meta.moved = self._moved
        self.meta.renewed_at = self._renewed_at
        self.meta.coming = self.homes.comes
        self._promised: dict[CaseId, int] = {}  # by tree that was taken over: when its last promise can have begun
        self.exchange = Exchange(
            meta=self.meta, store=store, ledger=ledger, clock=clock, notices=self.notices, relay=self._relay(house)
        )
        domains = {**house.domains, "": house.way_to_queue(self.meta)}
        self.proxy = Proxy(inner=domains, store=store, ledger=ledger, clock=clock, patterns=house.patterns)
        self.patterns = PatternBook(store, ledger, house.patterns, told=self.proxy.use)
        self.jobs: MetaScheduler = self.proxy if rules.recovery else self.meta
        self.checkpoints = Checkpoints(self.manager.live, ledger)
        self.gates = Gates(self.checkpoints, self.jobs, store)
        self.levels = Levels(store=store, ledger=ledger, clock=clock, homes=self.homes, waits_ms=rules.levels_ms)
        self.timers = Timers(clock, self._fired)
        self.submitter = Submitter(self.jobs, clock, self.notices, self._job_finished)
        self.tasks = Tasks(store=store, ledger=ledger, clock=clock, happenings=happenings, finished=self._finished)
        self.staging = Staging(house.keeper, self._finished, rules.files_roots)
        self.calls = CalledCases(self.manager, self.flows, self._finished)
        self.desk = OrderDesk(
            manager=self.manager,
            calls=self.calls,
            gates=self.gates,
            meta=self.jobs,
            submitter=self.submitter,
            reuse=Reuse(house.keeper, ledger, clock, happenings),
            tasks=self.tasks,
            staging=self.staging,
            timers=self.timers,
            ledger=ledger,
            clock=clock,
            happenings=happenings,
            notices=self.notices,
        )
        self.manager.errands = self.desk
        self.manager.checkpoints = self.checkpoints
        self.mending = self._mending_wing(house)
        self.exceptions = self.mending.exceptions
        self.administration = self.mending.administration
        self.engines = self.mending.engines
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
        )
        self.watch.connect(self.manager, self.desk, self.exchange)
        self.monitor, self.notifier = self.watch.monitor, self.watch.notifier
        self._clock = clock
        self._takeover = self._taking_over(house)
        self._reading: asyncio.Task[None] | None = None

    def _relay(self, house: "House") -> Relay | None:
        """The way to other servers, if there may be some."""
        if not self._membership.shared:
            return None
        self.meta.nudges = Nudges(self._membership, house.neighbours, self.meta.queue, house.clock)
        return Relay(
            membership=self._membership,
            homes=self.homes,
            neighbours=house.neighbours,
            clock=house.clock,
            lease_ms=house.rules.lease_ms,
            holds=self._membership.promise().holds,
        )

    def _taking_over(self, house: "House") -> Takeover | None:
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

    def _mending_wing(self, house: "House") -> MendingWing:
        wing = MendingWing(
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
        )
        wing.exceptions.rules.shared = self._membership.shared
        wing.exceptions.decisions.over = house.counts.repaired
        if house.rules.recovery:
            wing.connect(self.manager, self.calls, self.proxy, self.exchange)
            self.desk.mending = wing
            self.meta.attempt_failed = self.proxy.attempt_failed
        return wing

    async def start(self) -> None:
        self.ledger.start()
        await self.notices.start()
        await self.read_shared()
        await self.take_up(await self.homes.own())
        self.mending.start()
        self.timers.start()
        self.exchange.start()
        self.watch.start()
        if self._takeover is not None:
            self._takeover.start()

    async def read_shared(self) -> None:
        """What all servers on the store share; others may have changed it."""
        await self.flows.start()
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
            log.warning("what other servers have changed could not be read: %s", error.message)

    async def take_up(self, trees: Sequence[Tree]) -> None:
        """Go on with these trees of cases from what the store says. Until all of it is here, nobody is let near."""
        roots = {tree.root for tree in trees}
        now, lease_ms = self.meta.steady(), self.meta.leases.lease_ms
        self._promised |= {
            each.root: now + each.promised_ms - lease_ms for each in trees if each.promised_ms is not None
        }
        self.homes.coming(trees)
        await self.watch.load(roots)
        await self.mending.load(roots)
        cases = [live for tree in trees for live in await self.manager.load(tree)]
        await self.manager.give_again(cases)
        await self.calls.resume(cases)
        await self.tasks.resume(roots)
        await self.mending.resume(roots)
        self.counts.took_up(trees=sum(tree.moved for tree in trees), now=self._clock.now())
        self.homes.came(trees)
        self.meta.came()
        for root in roots:
            self._promised.pop(root, None)

    def _renewed_at(self, job: Job) -> int:
        now = self.meta.steady()
        return min(now, self._promised.get(root_of(job.case), now))

    async def stop(self) -> None:
        await self.watch.stop()
        if self._takeover is not None:
            await self._takeover.stop()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.exchange.stop()
        if self.meta.nudges is not None:
            await self.meta.nudges.stop()
        await self.mending.stop()
        await self.checkpoints.stop()
        await self.timers.stop()
        await self.submitter.stop()
        await self.staging.stop()
        await self.desk.stop()
        await self.calls.stop()
        await self.proxy.stop()
        await self.meta.stop()
        self.happenings.stop()
        await self.ledger.stop()

    async def _finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        await self.desk.finished(case, serial, outcome)

    async def _job_finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
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
        if job.spec.expected_ms and self.desk.mending is not None:
            self.mending.watches.moved(job)
        if moved:  # else it waits as it did before, now with a pilot
            self.happenings.tell(self._clock.now(), "item", job.case, job.spec.item, state)


class House:
    """`shipped` are the rules that hold for every flow until somebody changes them, `patterns` the repository of
    patterns that ships. `domains` are the meta-schedulers, beside our own queue, that a failed job can be submitted to,
    by name; they outlive the services, and whoever gave them closes them. `way_to_queue` is what the proxy sees of our
    queue, where something lies between the two. `server` says who this is to others on the same store, and
    `neighbours` is the way to them; without it this server is alone there. `meter` measures what is promised to pilots
    and to other servers."""

    def __init__(
        self,
        *,
        store: Store,
        keeper: Keeper,
        clock: Clock,
        rules: HouseRules,
        version: str,
        shipped: RuleSet | None = None,
        patterns: Patterns = NO_PATTERNS,
        domains: Mapping[str, MetaScheduler] = NO_DOMAINS,
        way_to_queue: Callable[[MetaScheduler], MetaScheduler] = lambda queue: queue,
        server: ServerDocument | None = None,
        neighbours: Neighbours = NO_NEIGHBOURS,
        meter: Meter | None = None,
        poster: Poster = NO_POSTER,
        counts: Counts | None = None,
    ) -> None:
        assert "" not in domains and OUR_QUEUE not in domains, "these names mean our own queue"
        self.domains = domains
        self.poster = poster
        self.way_to_queue = way_to_queue
        self.shipped = shipped
        self.patterns = patterns
        self.store = store
        self.keeper = keeper
        self.clock = clock
        self.rules = rules
        self._version = version
        self._started_at: Instant = clock.now()
        self.counts = counts or Counts()
        self.meter = meter or clock.now
        self.neighbours = neighbours
        self.membership: OwnMembership = self._member(server) if server is not None else Alone()
        self._services: Services | None = None
        self._away = "the server is starting"
        self._mending: asyncio.Task[None] | None = None

    @property
    def services(self) -> Services:
        """The living services; raises StoreUnavailable while there are none."""
        if self._services is None:
            raise StoreUnavailable(self._away)
        return self._services

    @property
    def present(self) -> Services | None:
        """The living services, if there are some."""
        return self._services

    def _member(self, server: ServerDocument) -> ServerMembership:
        server.lease_ms, server.version, server.started_at = self.rules.lease_ms, self._version, self._started_at
        member = ServerMembership(store=self.store, clock=self.clock, own=server, meter=self.meter, load=self._load)
        member.closed, member.changed, member.looked = self._closed, self._changed_elsewhere, self._looked
        return member

    def _load(self, told: ServerDocument) -> None:
        """What the others see of how much this server has to do."""
        if self._services is not None:
            meta, manager = self._services.meta, self._services.manager
            told.waiting, told.running = len(meta.queue), meta.jobs_running()
            told.pilots, told.cases = len(meta.pilots_here()), len(manager.live)

    def _closed(self, reason: str) -> None:
        """Others have taken over from this server: whatever it still knows of its cases is not its own."""
        if self._services is not None:
            self._services.ledger.give_up(reason)

    def _looked(self) -> None:
        """Others have told of their work again: a nudge may have been lost."""
        if self._services is not None:
            for server in self.membership.living():
                if server.waiting:
                    self._services.exchange.nudged((), work=True, by=server.id)

    def _changed_elsewhere(self) -> None:
        if self._services is not None:
            self._services.read_shared_soon()

    async def open(self) -> None:
        await self.store.open()
        await self.membership.open()
        services = Services(self)
        await services.start()
        self._services = services

    async def close(self) -> None:
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        if self._services is not None:
            await self._services.stop()
        await self.membership.close()
        await self.store.close()

    def let_go(self, pilot: PilotId | None) -> None:
        """Answer held exchanges at once: those of one pilot, or all."""
        if self._services is not None:
            self._services.exchange.let_go(pilot)

    def on_broken(self, services: Services, reason: str) -> None:
        """A write failed: memory is ahead of the disk, and is given up. Services that are not in use yet, or no longer,
        are the business of whoever builds them."""
        if services is not self._services:
            return
        log.error("store away: %s", reason)
        self._services, self._away = None, reason
        self.counts.store_went(self.meter())
        self._mending = asyncio.get_running_loop().create_task(self._mend(services))

    async def _mend(self, old: Services) -> None:
        await old.stop()
        wait_ms = _FIRST_RETRY_MS
        while self._services is None:
            await self.clock.sleep(wait_ms)
            if not await self.membership.promise().renewed():
                continue
            services = Services(self)
            try:
                await services.start()
                services.notices.post(f"the store is back; everything was read again after: {self._away}")
                await services.ledger.settled()
            except Exception as error:  # whatever it is, the house is not left without services for good
                if not isinstance(error, StoreUnavailable):
                    log.exception("the services could not be built anew")
                self._away = error.message if isinstance(error, StoreUnavailable) else repr(error)
                wait_ms = min(wait_ms * 2, _LONGEST_RETRY_MS)
                await services.stop()
                continue
            self._services = services
            self.counts.store_came(self.meter())
            log.warning("store is back: all cases were read again")

    def health(self) -> Health:
        services = self._services
        return Health(
            status="ok" if services else "store-away",
            version=self._version,
            uptime_ms=self.clock.now() - self._started_at,
            store=store_name(self.store),
            cases_live=len(services.manager.live) if services else 0,
            jobs_waiting=services.meta.jobs_waiting() if services else 0,
            jobs_running=services.meta.jobs_running() if services else 0,
            pilots=len(services.meta.pilots_here()) if services else 0,
            message="" if services else self._away,
        )
