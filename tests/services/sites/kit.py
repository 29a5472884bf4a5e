"""Monitors of sites over one store, a batch system in the test's hands, and a clock that goes when it is told to."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Resources
from mendflow.core.model.sites import (
    BatchJobStatus,
    BatchSystemUnavailable,
    PilotSubmission,
    Site,
    SiteDocument,
    SubmitAccepted,
    SubmitResult,
)
from mendflow.core.model.sync import Capacity, SyncRequest
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.services.base.alerts import AlertStore
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.base.contracts import NewJob
from mendflow.services.base.counters import LabeledCounter
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import UNLIMITED_PROMISE, Promise
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.services.scheduling.sites.alerts import SiteAlerts
from mendflow.services.scheduling.sites.pilot_monitor import PilotMonitor
from mendflow.services.scheduling.sites.site_store import SiteStore
from mendflow.stores.contract import StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore

LEASE_MS = 30_000
T0 = 1_700_000_000_000


class HandClock:
    def __init__(self) -> None:
        self.at = T0

    def now(self) -> int:
        return self.at

    def catch_up(self, instant: int) -> None:
        self.at = max(self.at, instant)

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(0)


class SlowStore(MemoryStore):
    """One that lets others go first, before it answers and before it writes."""

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        await asyncio.sleep(0)
        found = await super().get(kind, id)
        await asyncio.sleep(0)
        return found

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        await asyncio.sleep(0)
        return await super().write(writes)


class Batch:
    """A batch system that takes what it is given, and shows it as waiting. A test puts its own behaviour in."""

    ready = True
    host = "here"

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self._numbers = count(1)
        self.has: dict[str, BatchJobStatus] = {}
        self.secrets: dict[str, str] = {}
        self.submitted_at: list[int] = []
        self.cancelled: list[str] = []
        self.answer: Callable[[str], SubmitResult] = self.take
        self.away = ""
        self.lacking: list[str] = []
        self.hangs: asyncio.Event | None = None  # until it is set, nothing is answered

    def take(self, name: str) -> SubmitResult:
        number = str(next(self._numbers))
        self.has[name] = BatchJobStatus("queued", number)
        return SubmitAccepted(number)

    async def submit(
        self, site: Site, submissions: Sequence[PilotSubmission], secrets: Mapping[str, str]
    ) -> dict[str, SubmitResult]:
        self.secrets |= secrets
        await asyncio.sleep(0)
        self.submitted_at += [self._clock.now()] * len(submissions)
        return {each.name: self.answer(each.name) for each in submissions}

    async def find(self, site: Site) -> dict[str, BatchJobStatus]:
        if self.hangs is not None:
            await self.hangs.wait()
        await asyncio.sleep(0)
        if self.away:
            raise BatchSystemUnavailable(self.away)
        return dict(self.has)

    async def cancel(self, site: Site, names: Collection[str]) -> None:
        self.cancelled += names
        for name in names:
            self.has.pop(name, None)

    async def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None: ...

    async def sweep(self, sites: Collection[str]) -> None: ...

    async def lacks(self, site: Site) -> list[str]:
        return list(self.lacking)


class Among:
    """A server's view of who else lives."""

    shared = True
    incarnation = ""

    def __init__(self, id: str, others: Sequence[ServerDocument] = ()) -> None:
        self.id = id
        self.others = list(others)

    def may_promise(self) -> bool:
        return True

    async def publish(self) -> None: ...

    def live_servers(self) -> list[ServerDocument]:
        return self.others

    def find(self, server: str) -> ServerDocument | None:
        return next((each for each in (ServerDocument(id=self.id, url=""), *self.others) if each.id == server), None)

    def promise(self) -> Promise:
        return UNLIMITED_PROMISE

    def earlier_promises_ms(self) -> int | None:
        return None

    async def beats(self, server: str) -> bool:
        return any(each.id == server for each in self.others)

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class SiteServer:
    """One server, as far as sites are concerned."""

    def __init__(self, store: MemoryStore, clock: HandClock, batch: Batch, id: str = "one") -> None:
        self.clock = clock
        self.ledger = Ledger(store, lambda reason: None)
        self.membership = Among(id)
        self.meta = PilotScheduler(
            store=store, ledger=self.ledger, clock=clock, policy=RetryPolicy(losses_max=20), lease_ms=LEASE_MS
        )
        self.alerts = AlertStore(store, clock, lambda: id, kept_ms=10**9, hub=Hub())
        self.site_store = SiteStore(store, self.ledger, clock, lambda size: "abc")
        self.looks = LabeledCounter(width=2)
        self.monitor = PilotMonitor(
            store=self.site_store,
            clock=clock,
            membership=self.membership,
            meta=self.meta,
            alerts=SiteAlerts(self.alerts),
            batch_systems=batch,
            looks=self.looks,
        )

    async def look(self, after_ms: int = 5_000) -> None:
        self.clock.at += after_ms
        await self.monitor.look()
        await self.monitor.wait_for_looks()

    async def wait_for(self, jobs: int, **needs: object) -> None:
        """Put so many jobs into the queue."""
        resources = Resources(**needs)  # type: ignore[arg-type]  # names of resources, as a test gives them
        case, known = CaseId(self.membership.id), len(self.meta.jobs)
        spec = JobSpec(item=ItemId("i"), command="true", resources=resources)
        await self.meta.submit([NewJob(JobId(f"{case}/{known + n}"), case, spec) for n in range(jobs)])

    async def document(self, site: str = "t0") -> SiteDocument:
        return (await self.site_store.get(site)).document

    def heard(
        self, name: str, *, unfit: str = "", leaving: bool = False, site: str = "t0", slots: int = 1, memory: int = 1
    ) -> None:
        """A pilot says something, as the exchange would hear it."""
        pilot = self.meta.pilot(PilotId(f"p-{name}"))
        request = SyncRequest(
            pilot=pilot.id,
            serial=pilot.newest + 1,
            host="node",
            site=site,
            capacity=Capacity(slots=slots, cpus=1.0, memory_bytes=memory, disk_bytes=1),
            want=slots,
            submission=name,
            unfit=unfit,
            leaving=leaving,
        )
        self.monitor.pilot_reported(request)
        if leaving or unfit:
            self.meta.forget(pilot.id)
        else:
            pilot.hear(request, self.clock.now())

    async def told(self) -> None:
        """Until what pilots said is written."""
        await self.monitor.wait_reports_written()
