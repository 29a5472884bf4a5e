"""A proxy over our own queue and a second domain, without a house around them: the flow manager's side is the real
submitter, the pilots are in the test's hands, and whoever mends does what the test says. A crash throws everything
away but the store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Measurements, Outcome, Submission
from mendflow.core.model.sync import Assignment, AttemptReport, AttemptStatus, Capacity, SyncAnswer, SyncRequest
from mendflow.core.model.values import Value
from mendflow.core.recovery.patterns import Patterns
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.formats.shipped import default_patterns
from mendflow.services.base.contracts import Change, Failure, MetaScheduler, NewJob, Repairs
from mendflow.services.base.events import EventStream
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import SingleServer
from mendflow.services.base.notices import Notices
from mendflow.services.cases.submission import Submitter
from mendflow.services.recovery.levels import DueEntries, LevelEntry, Levels
from mendflow.services.recovery.proxy.proxy import Proxy
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.facts import FailedAttempts
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore

CASE = CaseId("c-1")
JOB = JobId("c-1/1")
CAPACITY = Capacity(slots=8, cpus=8.0, memory_bytes=8 << 30, disk_bytes=8 << 30)
OUT_OF_MEMORY = Fault(name="memoryLimit", category=Category.MEMORY, message="it took 2 GB")
EXIT = Fault(name="exit", category=Category.JOB, message="it ended with exit code 3", exit_code=3)
AWAY = Fault(name="away", category=Category.NETWORK, message="nobody answers")


class Now:
    """A clock in the test's hands."""

    def __init__(self) -> None:
        self.at: Instant = 1_700_000_000_000

    def now(self) -> Instant:
        return self.at

    def catch_up(self, instant: Instant) -> None:
        self.at = max(self.at, instant)

    async def sleep(self, ms: int) -> None:
        """Time does not pass by itself; others get their turn."""
        await asyncio.sleep(0)


Mend = Callable[["World", Failure], Awaitable[bool]]


async def nothing(world: "World", failure: Failure) -> bool:
    return False


async def hold(world: "World", failure: Failure) -> bool:
    return True


def new(spec: JobSpec | None = None, *, way: Submission = Submission.NOTIFY, id: JobId = JOB, **more: Value) -> NewJob:
    spec = spec or JobSpec(item=ItemId("align"), command="true", submission=way, **more)
    return NewJob(id, CaseId(id.rpartition("/")[0]), spec)


class Judge:
    """Decides about failed attempts by a function of the test."""

    def __init__(self, judge: Callable[[Job, Outcome], Awaitable[bool]]) -> None:
        self._judge = judge

    async def attempt_failed(self, job: Job, outcome: Outcome) -> bool:
        return await self._judge(job, outcome)


class World:
    """`mend` is asked for every failure; `failures` are all that it was asked; `told` what the flow has heard.
    `domains` are there beside our queue, or, without a name, instead of it."""

    def __init__(
        self,
        mend: Mend = nothing,
        *,
        store: Store | None = None,
        patterns: Patterns | None = None,
        domains: Mapping[str, MetaScheduler] | None = None,
        judge: FailedAttempts | None = None,
    ) -> None:
        self.judge = judge
        self.store = store or MemoryStore()
        self.clock = Now()
        self.mend = mend
        self.patterns = patterns or default_patterns()
        self.failures: list[Failure] = []
        self.told: list[tuple[int, Outcome]] = []
        self.domains = domains or {}
        self._serial = 0
        self._build()

    def _build(self) -> None:
        self.broken = ""
        self.ledger = Ledger(self.store, self._broke)
        events = EventStream(self.clock.now())
        self.notices = Notices(self.store, self.ledger, self.clock, events)
        self.hub = Hub()
        self.hub.provide(Repairs, self)
        self.meta = PilotScheduler(
            store=self.store, ledger=self.ledger, clock=self.clock, policy=RetryPolicy(), lease_ms=30_000, hub=self.hub
        )
        self.exchange = Exchange(
            meta=self.meta, store=self.store, ledger=self.ledger, clock=self.clock, notices=self.notices
        )
        self.proxy = Proxy(
            inner={"": self.meta, **self.domains},
            store=self.store,
            ledger=self.ledger,
            clock=self.clock,
            patterns=self.patterns,
            hub=self.hub,
        )
        self.hub.provide(FailedAttempts, self.judge or self.proxy)
        self.hub.provide(DueEntries, self)
        self.submitter = Submitter(self.proxy, self.ledger, self.clock, self.notices, self._finished)
        self.homes = HomeRegistry(self.store, self.ledger, SingleServer())
        self.levels = Levels(
            store=self.store,
            ledger=self.ledger,
            clock=self.clock,
            homes=self.homes,
            hub=self.hub,
            waits_ms=(1000, 5000),
        )
        self.held: dict[str, list[Assignment]] = {}

    def _broke(self, reason: str) -> None:
        self.broken = reason

    async def _finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        self.told.append((serial, outcome))

    async def due(self, entry: LevelEntry) -> None:
        await self.proxy.resubmit(entry.job, Change(level=entry.level), key=entry.key)

    async def failed(self, failure: Failure) -> bool:
        self.failures.append(failure)
        return await self.mend(self, failure)

    async def __aenter__(self) -> "World":
        await self.store.open()
        self.ledger.start()
        await self.notices.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        await self.store.close()

    async def _stop(self) -> None:
        await self.levels.stop()
        await self.submitter.stop()
        await self.proxy.stop()
        await self.meta.stop()
        await self.ledger.stop()

    async def crash(self) -> None:
        """Everything in memory is lost; what is on disk stays. A pilot keeps what it holds."""
        held = self.held
        await self._stop()
        self._build()
        self.held = held
        self.ledger.start()
        await self.notices.start()

    async def submit(self, job: NewJob, *, reissued: bool = False) -> None:
        await self.submitter.submit(job, reissued=reissued)
        await turns()

    async def sync(
        self,
        *,
        pilot: str = "p-1",
        host: str = "",
        site: str = "",
        want: int = 4,
        values: dict[str, Value] | None = None,
        **ended: Outcome,
    ) -> SyncAnswer:
        """One exchange of a pilot. What ended is given by item."""
        held = self.held.setdefault(pilot, [])
        self._serial += 1
        request = SyncRequest(
            pilot=PilotId(pilot),
            serial=self._serial,
            heard=self._serial - 1,
            host=host or f"host-of-{pilot}",
            site=site,
            capacity=CAPACITY,
            want=want,
            running=[
                AttemptStatus(each.job, each.fence, "running", Measurements(peak_bytes=7), values=values or {})
                for each in held
                if each.spec.item not in ended
            ],
            reports=[
                AttemptReport(each.job, each.fence, ended[each.spec.item]) for each in held if each.spec.item in ended
            ],
        )
        answer = await self.exchange.sync(request)
        gone = {(ref.job, ref.fence) for ref in (*answer.accepted, *answer.refused, *answer.lost)}
        self.held[pilot] = [each for each in held if (each.job, each.fence) not in gone] + answer.jobs
        await turns()
        return answer

    def running(self, pilot: str = "p-1") -> list[JobId]:
        return [each.job for each in self.held.get(pilot, [])]


async def turns() -> None:
    """Let everything else go as far as it can now."""
    for _ in range(20):
        await asyncio.sleep(0)


def bad(fault: Fault) -> Outcome:
    return Outcome(fault=fault, log_tail="the last words")
