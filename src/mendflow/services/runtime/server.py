"""A server: it holds the runtime, and rebuilds it after the store was unreachable.

Memory is ahead of the disk, never the other way round. So when a write fails there is one remedy for everything:
discard all services and rebuild them from the store. Until then every call is refused with StoreUnavailable."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mendflow.core.model.errors import STORE_AWAY, StoreUnavailable
from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.views import Health
from mendflow.core.recovery.patterns import Patterns
from mendflow.lazy import LazyModule
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import NO_PEERS, Peers, ServerDocument
from mendflow.services.base.contracts import Clock, FileStore, MetaScheduler
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.membership import OwnMembership, SingleServer
from mendflow.services.base.poster import NO_POSTER, Poster
from mendflow.services.base.reading_cost import context_for_everybody
from mendflow.services.base.secret_sources import MemorySecretSources, SecretSources
from mendflow.services.base.source_reader import NO_SOURCE_READER, SourceReader
from mendflow.services.base.stopped_cases import StoppedCases
from mendflow.services.base.watched_files import WatchedFileStore
from mendflow.services.cases.flow_compiler import FlowCompiler
from mendflow.services.cases.long_steps import LongSteps, ProcessStepRunner
from mendflow.services.cases.staging import TableReader, refuse_tables
from mendflow.services.cluster.access_tokens import AccessTokens
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.data.watches.storage import NO_STORAGE, StorageReader
from mendflow.services.domains.domain_lines import NO_LINES, DomainLines, PeerLines, no_lines
from mendflow.services.messaging.assembly import refuse_jobs
from mendflow.services.messaging.contracts import NO_PARTNER_CLIENT, PartnerClient
from mendflow.services.messaging.ports.jobs import JobReader
from mendflow.services.messaging.style_sheets import ProcessTransformer, Transformer
from mendflow.services.observe.long_journals import LongJournals
from mendflow.services.observe.metered_store import store_name
from mendflow.services.observe.tracing.tracer import Tracer
from mendflow.services.recovery.proxy.resubmission import OUR_QUEUE
from mendflow.services.runtime.runtime import Runtime
from mendflow.services.runtime.settings import ServerSettings
from mendflow.services.scheduling.sites.batch_systems import SiteBatchSystems
from mendflow.services.scheduling.sites.pilot_monitor import groups_of
from mendflow.services.scheduling.unprocessed_reports import UnprocessedReports
from mendflow.stores.contract import Store

if TYPE_CHECKING:
    from mendflow.services.base import throttled_work
    from mendflow.services.cluster import browser_sessions
else:
    throttled_work = LazyModule("mendflow.services.base.throttled_work")
    browser_sessions = LazyModule("mendflow.services.cluster.browser_sessions")

log = logging.getLogger("mendflow.runtime")
_FIRST_RETRY_MS = 500
_LONGEST_RETRY_MS = 10_000
NO_PATTERNS = Patterns()
NO_DOMAINS: Mapping[str, MetaScheduler] = {}

__all__ = ["NO_DOMAINS", "NO_PATTERNS", "Runtime", "Server", "ServerSettings"]


INHERITED_MAX: Final = 1_000
"""Inherited promises that a heartbeat tells. For the others, whoever takes over waits for a whole lease."""


class Server:
    """`shipped` are the default rules until somebody changes them, `patterns` the repository of patterns that is
    shipped. `domains` are the meta-schedulers, besides our own queue, that a failed job can be submitted to, by name;
    they outlive the services, and whoever made them closes them. `lines` reach connected domains; `peer_lines` are
    lines to domains that are connected in another way, to which this one is known as `domain_name`. `way_to_queue`
    wraps the queue for the proxy. `server` identifies this server to others on the same store, and `peers` sends
    requests to them; without `server` this one is alone. `meter` measures what is promised to pilots and to other
    servers; a server that is started anew with the same `meter_name` reads the same meter. `batch_systems` is where
    pilots are submitted; without it none are. `elements` reads the storage elements that are watched. `read_job` makes
    the flow of a job description, `read_table` reads the table that an input names by its path. `chance` makes new
    names: so many random bytes, in hexadecimal. `wall` is the wall clock, which schedules go by; without it they go by
    `clock`. `secret_sources` has the key of the secrets in the store, and secrets of the machine."""

    def __init__(
        self,
        *,
        store: Store,
        file_store: FileStore,
        clock: Clock,
        settings: ServerSettings,
        version: str,
        shipped: RuleSet | None = None,
        patterns: Patterns = NO_PATTERNS,
        domains: Mapping[str, MetaScheduler] = NO_DOMAINS,
        lines: DomainLines = NO_LINES,
        domain_name: str = "",
        peer_lines: PeerLines = no_lines,
        way_to_queue: Callable[[MetaScheduler], MetaScheduler] = lambda queue: queue,
        server: ServerDocument | None = None,
        peers: Peers = NO_PEERS,
        meter: Meter | None = None,
        meter_name: str = "",
        poster: Poster = NO_POSTER,
        source_reader: SourceReader = NO_SOURCE_READER,
        caller: PartnerClient = NO_PARTNER_CLIENT,
        read_job: JobReader = refuse_jobs,
        read_table: TableReader = refuse_tables,
        transformer: Transformer | None = None,
        elements: StorageReader = NO_STORAGE,
        counts: ServerMetrics | None = None,
        tracer: Tracer | None = None,
        batch_systems: SiteBatchSystems | None = None,
        chance: Callable[[int], str] = secrets.token_hex,
        wall: Callable[[], Instant] | None = None,
        secret_sources: SecretSources | None = None,
    ) -> None:
        assert "" not in domains and OUR_QUEUE not in domains, "these names mean our own queue"
        self.domains = domains
        self.lines = lines
        self.domain_name = domain_name
        self.peer_lines = peer_lines
        self.meter_name = meter_name or chance(8)
        self.poster = poster
        self.source_reader = source_reader
        self.caller = caller
        self.url = ""  # the address of this server, once it listens
        self.read_job = read_job
        self.read_table = read_table
        self.elements = elements
        self.batch_systems = batch_systems
        self.chance = chance
        self.wall = wall or clock.now
        self.access_tokens = AccessTokens(store, self.wall)
        self.way_to_queue = way_to_queue
        self.unprocessed_reports = UnprocessedReports()
        self.hidden = HiddenTexts()
        self.secret_sources = secret_sources or MemorySecretSources()
        self.shipped = shipped
        self.patterns = patterns
        self.store = store
        self.file_store = WatchedFileStore(file_store, clock, self._files_refused)
        self.clock = clock
        self.settings = settings
        self.version = version
        self._started_at: Instant = clock.now()
        self.counts = counts or ServerMetrics()
        self.transformer = transformer or ProcessTransformer(counted=self.counts.transforms)
        self.long_steps = LongSteps(ProcessStepRunner()) if settings.long_steps_aside else None
        self.long_reads = LongReads(aside=settings.long_steps_aside)
        self._long_checks = LongReads(aside=settings.long_steps_aside)
        self.flow_compiler = FlowCompiler(self._long_checks)
        self.long_journals = LongJournals(aside=settings.long_steps_aside)
        self.tracer = tracer
        self.meter = meter or clock.now
        self.peers = peers
        self.membership: OwnMembership = self._member(server) if server is not None else SingleServer()
        self.stopped = StoppedCases(continues_found=settings.continues_found or self.membership.shared)
        self._runtime: Runtime | None = None
        self._away = self._told = "the server is starting"
        self._rebuilding: asyncio.Task[None] | None = None

    @property
    def runtime(self) -> Runtime:
        """The current services; raises StoreUnavailable while there are none."""
        if self._runtime is None:
            raise StoreUnavailable(self._away, told=self._told)
        return self._runtime

    @property
    def present(self) -> Runtime | None:
        """The current services, if there are any."""
        return self._runtime

    def is_alone(self) -> bool:
        """Whether nobody may let jobs run by a token of the store: then whoever runs the server has it for himself,
        unless he was given others."""
        return self.settings.owner_only or not self.access_tokens.let_jobs_run()

    def files_roots(self) -> tuple[Path, ...] | None:
        """The folders that flows may read files from by now. Any folder, only while nobody else uses the server."""
        roots = self.settings.files_roots
        return () if roots is None and not self.is_alone() else roots

    def _member(self, server: ServerDocument) -> ServerMembership:
        server.lease_ms, server.version, server.started_at = self.settings.lease_ms, self.version, self._started_at
        server.schedules = self.settings.schedules
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

    def _load(self, document: ServerDocument) -> None:
        """How much work this server has, for the other servers."""
        if self._runtime is not None:
            meta, manager = self._runtime.meta, self._runtime.manager
            document.waiting, document.running = len(meta.queue), meta.jobs_running()
            document.pilots, document.cases = len(meta.own_pilots()), len(manager.live)
            document.inherited = dict(islice(meta.leases.inherited(now=meta.steady_ms_now()).items(), INHERITED_MAX))
            document.demand = groups_of(meta, self.clock.now()) if document.waiting else []

    def _closed(self, reason: str) -> None:
        """Another server has taken over from this one: its cases no longer belong to it."""
        if self._runtime is not None:
            self._runtime.ledger.give_up(reason)

    def _looked(self) -> None:
        """The other servers have reported their work again: a nudge may have been lost."""
        if self._runtime is not None:
            for server in self.membership.live_servers():
                if server.waiting:
                    self._runtime.exchange.on_nudge((), work=True, by=server.id)

    def _changed_elsewhere(self) -> None:
        if self._runtime is not None:
            self._runtime.schedule_read_shared()

    async def open(self) -> None:
        await self.store.open()
        if self.settings.files_roots is None and not self.settings.owner_only:
            await self.access_tokens.read()  # the first case that goes on may name files
        await self.membership.open()
        runtime = Runtime(self)
        await runtime.start()
        self._runtime = runtime

    async def close(self) -> None:
        await cancel_tasks(self._rebuilding)
        if self._runtime is not None:
            await self._runtime.stop()
        if self.long_steps is not None:
            await self.long_steps.stop()
        await self.long_journals.stop()
        await self.long_reads.stop()
        await self._long_checks.stop()
        await self.membership.close()
        await self.store.close()

    @cached_property
    def rule_trials(self) -> "throttled_work.ThrottledWork":
        """Built when somebody first tries out rules."""
        return throttled_work.ThrottledWork()

    @cached_property
    def browser_sessions(self) -> "browser_sessions.BrowserSessions":
        """Built when they are first asked for: only a server that listens has some."""
        return browser_sessions.BrowserSessions(self.store, self.wall)

    def listens_at(self, url: str) -> None:
        """This server is reached at this address from now on."""
        self.url = url

    def answer_held(self, pilot: PilotId | None) -> None:
        """Answer held exchanges at once: those of one pilot, or all."""
        if self._runtime is not None:
            self._runtime.exchange.answer_held(pilot)

    def _files_refused(self) -> None:
        if self._runtime is not None:
            self._runtime.monitor.look_at_disks()

    def on_broken(self, runtime: Runtime, reason: str) -> None:
        """A write failed: memory is ahead of the disk, and is discarded. Services that are not in use yet, or no
        longer, are handled by whoever builds them."""
        if runtime is not self._runtime:
            return
        log.error("store unreachable: %s; all services are stopped until it answers again", reason)
        self._runtime, self._away, self._told = None, reason, STORE_AWAY
        self.counts.store_lost(self.meter())
        self._rebuilding = asyncio.get_running_loop().create_task(
            self._rebuild(runtime), context=context_for_everybody()
        )

    async def _rebuild(self, old: Runtime) -> None:
        await old.stop()
        wait_ms = _FIRST_RETRY_MS
        while self._runtime is None:
            await self.clock.sleep(wait_ms)
            if not await self.membership.promise().renewed():
                continue
            runtime = Runtime(self)
            try:
                await runtime.start()
                runtime.notices.post(f"the store is back; everything was read again after: {self._away}")
                await runtime.ledger.settled()
            except Exception as error:  # whatever the error, the server must not stay without services
                if not isinstance(error, StoreUnavailable):
                    log.exception("the services could not be restarted after the store came back; trying again")
                self._away = error.message if isinstance(error, StoreUnavailable) else repr(error)
                wait_ms = min(wait_ms * 2, _LONGEST_RETRY_MS)
                await runtime.stop()
                continue
            self._runtime = runtime
            self.counts.store_returned(self.meter())
            log.warning("store reachable again: all cases were loaded again")

    def health(self) -> Health:
        runtime = self._runtime
        return Health(
            status="ok" if runtime else "store-away",
            version=self.version,
            uptime_ms=self.clock.now() - self._started_at,
            store=store_name(self.store),
            cases_live=len(runtime.manager.live) if runtime else 0,
            jobs_waiting=runtime.meta.jobs_waiting() if runtime else 0,
            jobs_running=runtime.meta.jobs_running() if runtime else 0,
            pilots=len(runtime.meta.own_pilots()) if runtime else 0,
            message="; ".join(runtime.monitor.disk_problems()) if runtime else self._told,
        )
