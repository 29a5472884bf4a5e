"""All services of one server under one roof, and the way back when the store was away.

Memory runs ahead of the disk, never the other way round. So when a write fails there is one remedy for everything: drop
all services and build them anew from what the disk says. Until then every call is told that the store is away."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping

from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.model.problems import StoreUnavailable
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.views import Health
from mendflow.core.recovery.patterns import Patterns
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import NO_NEIGHBOURS, Neighbours, ServerDocument
from mendflow.services.base.contracts import Clock, Keeper, MetaScheduler
from mendflow.services.base.counters import Counts
from mendflow.services.base.membership import Alone, OwnMembership
from mendflow.services.base.poster import NO_POSTER, Poster
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.data.watches.storage import NO_ELEMENTS, Elements
from mendflow.services.messaging.assembly import reads_no_jobs
from mendflow.services.messaging.contracts import NO_CALLER, Caller
from mendflow.services.messaging.ports.jobs import JobReader
from mendflow.services.messaging.style_sheets import SheetProcesses, Transformer
from mendflow.services.observe.metered_store import store_name
from mendflow.services.observe.tracing.tracer import Tracer
from mendflow.services.recovery.proxy.resubmission import OUR_QUEUE
from mendflow.services.runtime.runtime import HouseRules, Services
from mendflow.services.scheduling.sites.batch_systems import BatchSystems
from mendflow.services.scheduling.sites.pilot_monitor import groups_of
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.house")
_FIRST_RETRY_MS = 500
_LONGEST_RETRY_MS = 10_000
NO_PATTERNS = Patterns()
NO_DOMAINS: Mapping[str, MetaScheduler] = {}

__all__ = ["NO_DOMAINS", "NO_PATTERNS", "House", "HouseRules", "Services"]


class House:
    """`shipped` are the rules that hold for every flow until somebody changes them, `patterns` the repository of
    patterns that ships. `domains` are the meta-schedulers, beside our own queue, that a failed job can be submitted to,
    by name; they outlive the services, and whoever gave them closes them. `way_to_queue` is what the proxy sees of our
    queue, where something lies between the two. `server` says who this is to others on the same store, and
    `neighbours` is the way to them; without it this server is alone there. `meter` measures what is promised to pilots
    and to other servers. `batches` is where pilots are submitted; without it none are. `elements` is the way to storage
    elements that are watched. `read_job` makes the flow of a job description. `chance` gives new names: so many random
    bytes, in hexadecimal."""

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
        caller: Caller = NO_CALLER,
        read_job: JobReader = reads_no_jobs,
        transformer: Transformer | None = None,
        elements: Elements = NO_ELEMENTS,
        counts: Counts | None = None,
        tracer: Tracer | None = None,
        batches: BatchSystems | None = None,
        chance: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        assert "" not in domains and OUR_QUEUE not in domains, "these names mean our own queue"
        self.domains = domains
        self.poster = poster
        self.caller = caller
        self.url = ""  # where others reach this server, once it listens
        self.read_job = read_job
        self.elements = elements
        self.batches = batches
        self.chance = chance
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
        self.transformer = transformer or SheetProcesses(counted=self.counts.transforms)
        self.tracer = tracer
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
        return ServerMembership(
            store=self.store,
            clock=self.clock,
            own=server,
            meter=self.meter,
            load=self._load,
            closed=self._closed,
            changed=self._changed_elsewhere,
            looked=self._looked,
        )

    def _load(self, told: ServerDocument) -> None:
        """What the others see of how much this server has to do."""
        if self._services is not None:
            meta, manager = self._services.meta, self._services.manager
            told.waiting, told.running = len(meta.queue), meta.jobs_running()
            told.pilots, told.cases = len(meta.pilots_here()), len(manager.live)
            told.demand = groups_of(meta, self.clock.now()) if told.waiting else []

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

    def listens_at(self, url: str) -> None:
        """Others reach this server here from now on."""
        self.url = url

    def let_go(self, pilot: PilotId | None) -> None:
        """Answer held exchanges at once: those of one pilot, or all."""
        if self._services is not None:
            self._services.exchange.let_go(pilot)

    def on_broken(self, services: Services, reason: str) -> None:
        """A write failed: memory is ahead of the disk, and is given up. Services that are not in use yet, or no longer,
        are the business of whoever builds them."""
        if services is not self._services:
            return
        log.error("store unreachable: %s", reason)
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
                    log.exception("the services could not be restarted after the store came back; trying again")
                self._away = error.message if isinstance(error, StoreUnavailable) else repr(error)
                wait_ms = min(wait_ms * 2, _LONGEST_RETRY_MS)
                await services.stop()
                continue
            self._services = services
            self.counts.store_came(self.meter())
            log.warning("store reachable again: all cases were read again")

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
