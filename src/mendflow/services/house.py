"""All services of one server under one roof, and the way back when the store was away.

Memory runs ahead of the disk, never the other way round. So when a write fails there is one remedy for everything: drop
all services and build them anew from what the disk says. Until then every call is told that the store is away."""

import asyncio
import logging
from collections.abc import Callable, Mapping
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
from mendflow.services.contracts import Clock, Keeper, MetaScheduler
from mendflow.services.errands import OrderDesk
from mendflow.services.exception_service.watches import CHECK_MS
from mendflow.services.exchange import Exchange
from mendflow.services.flow_manager import FlowManager
from mendflow.services.flows import Flows
from mendflow.services.gates import Gates
from mendflow.services.happenings import Happenings
from mendflow.services.ledger import Ledger
from mendflow.services.levels import DEFAULT_WAITS_MS, Levels
from mendflow.services.mending import MendingWing
from mendflow.services.meta_scheduler import QueueAndPilots
from mendflow.services.notices import Notices
from mendflow.services.proxy import Proxy
from mendflow.services.proxy.pattern_book import PatternBook
from mendflow.services.proxy.recovery import OUR_QUEUE
from mendflow.services.reuse import Reuse
from mendflow.services.staging import Staging
from mendflow.services.submission import Submitter
from mendflow.services.tasks import Tasks
from mendflow.services.timers import Timers
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


class Services:
    """One generation of services over one store, wired together."""

    def __init__(self, house: "House") -> None:
        rules, store, clock = house.rules, house.store, house.clock
        self.ledger = ledger = Ledger(store, lambda reason: house.on_broken(self, reason))
        self.happenings = happenings = Happenings(clock.now())
        self.notices = Notices(store, ledger, clock, happenings)
        self.flows = Flows(store, ledger, clock)
        self.manager = FlowManager(store=store, ledger=ledger, clock=clock, happenings=happenings)
        self.meta = QueueAndPilots(
            store=store,
            ledger=ledger,
            clock=clock,
            policy=Policy(losses_max=rules.losses_max),
            lease_ms=rules.lease_ms,
        )
        self.meta.moved = self._moved
        self.exchange = Exchange(meta=self.meta, store=store, ledger=ledger, clock=clock, notices=self.notices)
        domains = {**house.domains, "": house.way_to_queue(self.meta)}
        self.proxy = Proxy(inner=domains, store=store, ledger=ledger, clock=clock, patterns=house.patterns)
        self.patterns = PatternBook(store, ledger, house.patterns, told=self.proxy.use)
        self.jobs: MetaScheduler = self.proxy if rules.recovery else self.meta
        self.checkpoints = Checkpoints(self.manager.live, ledger)
        self.gates = Gates(self.checkpoints, self.jobs, store)
        self.levels = Levels(store=store, ledger=ledger, clock=clock, waits_ms=rules.levels_ms)
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
        self._clock = clock

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
            house=house.shipped,
            check_ms=house.rules.check_ms,
        )
        if house.rules.recovery:
            wing.connect(self.manager, self.calls, self.proxy, self.exchange)
            self.desk.mending = wing
            self.meta.attempt_failed = self.proxy.attempt_failed
        return wing

    async def start(self) -> None:
        self.ledger.start()
        await self.notices.start()
        await self.flows.start()
        await self.patterns.start()
        await self.mending.load()
        await self.manager.start()
        await self.calls.resume()
        await self.tasks.resume()
        await self.mending.resume()
        self.timers.start()
        self.exchange.start()

    async def stop(self) -> None:
        await self.exchange.stop()
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
        moved = live.move_job(job, state)
        if job.spec.expected_ms and self.desk.mending is not None:
            self.mending.watches.moved(job)
        if moved:  # else it waits as it did before, now with a pilot
            self.happenings.tell(self._clock.now(), "item", job.case, job.spec.item, state)


class House:
    """`shipped` are the rules that hold for every flow until somebody changes them, `patterns` the repository of
    patterns that ships. `domains` are the meta-schedulers, beside our own queue, that a failed job can be submitted to,
    by name; they outlive the services, and whoever gave them closes them. `way_to_queue` is what the proxy sees of our
    queue, where something lies between the two."""

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
    ) -> None:
        assert "" not in domains and OUR_QUEUE not in domains, "these names mean our own queue"
        self.domains = domains
        self.way_to_queue = way_to_queue
        self.shipped = shipped
        self.patterns = patterns
        self.store = store
        self.keeper = keeper
        self.clock = clock
        self.rules = rules
        self._version = version
        self._started_at: Instant = clock.now()
        self._services: Services | None = None
        self._away = "the server is starting"
        self._mending: asyncio.Task[None] | None = None

    @property
    def services(self) -> Services:
        """The living services; raises StoreUnavailable while there are none."""
        if self._services is None:
            raise StoreUnavailable(self._away)
        return self._services

    async def open(self) -> None:
        await self.store.open()
        services = Services(self)
        await services.start()
        self._services = services

    async def close(self) -> None:
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        if self._services is not None:
            await self._services.stop()
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
        self._mending = asyncio.get_running_loop().create_task(self._mend(services))

    async def _mend(self, old: Services) -> None:
        await old.stop()
        wait_ms = _FIRST_RETRY_MS
        while self._services is None:
            await self.clock.sleep(wait_ms)
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
            log.warning("store is back: all cases were read again")

    def health(self) -> Health:
        services = self._services
        return Health(
            status="ok" if services else "store-away",
            version=self._version,
            uptime_ms=self.clock.now() - self._started_at,
            store=type(self.store).__name__,
            cases_live=len(services.manager.live) if services else 0,
            jobs_waiting=services.meta.jobs_waiting() if services else 0,
            jobs_running=services.meta.jobs_running() if services else 0,
            pilots=len(services.meta.pilots) if services else 0,
            message="" if services else self._away,
        )
