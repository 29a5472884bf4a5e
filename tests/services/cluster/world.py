"""Several servers on one store in memory, without houses around them: each has its queue and its exchange. The lines
between them, who lives and whose a case is are in the test's hands, and so is the time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import msgspec

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Measurements, Outcome, Resources
from mendflow.core.model.sync import AttemptReport, AttemptStatus, Capacity, ResourcesInUse, SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.core.scheduling.jobs import RetryPolicy
from mendflow.core.scheduling.queue import JobQueue
from mendflow.services.base.cluster import JOB_KIND, PeerUnavailable, ServerDocument, root_of
from mendflow.services.base.contracts import NewJob
from mendflow.services.base.events import EventStream
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.cluster.relay import Relay
from mendflow.services.cluster.remote_pilots import RemotePilots
from mendflow.services.cluster.work_signals import Nudges
from mendflow.services.scheduling.exchange import Exchange
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.memory import MemoryStore

LEASE_MS = 3_000
CAPACITY = Capacity(slots=4, cpus=4.0, memory_bytes=8 << 30, disk_bytes=8 << 30)
_decode = msgspec.json.Decoder(Job).decode


class Time:
    """It passes when the test says so; whoever sleeps wakes up in order."""

    def __init__(self) -> None:
        self.at: Instant = 1_700_000_000_000
        self._sleepers: list[tuple[Instant, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        return self.at

    def catch_up(self, instant: Instant) -> None:
        self.at = max(self.at, instant)

    async def sleep(self, ms: int) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.at + ms, over))
        await over

    async def pass_by(self, ms: int, each: Callable[[], None] = lambda: None) -> None:
        until = self.at + ms
        while self.at < until:
            self.at = min(until, self.at + 50)
            each()
            for sleeper in sorted((each for each in self._sleepers if each[0] <= self.at), key=lambda one: one[0]):
                self._sleepers.remove(sleeper)
                if not sleeper[1].done():
                    sleeper[1].set_result(None)
            await spin()


async def spin(turns: int = 25) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


class Line:
    """How a call between two servers goes. `lost`: it never arrives. `deaf`: it arrives, and its answer does not.
    `late`: it arrives when the test lets it. `twice`: it arrives again after it was answered."""

    FINE, LOST, DEAF, LATE, TWICE = "fine", "lost", "deaf", "late", "twice"


class ServerProcess:
    """One server: what `Membership`, `Homes` and `Peers` promise, from what the world knows."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.id = name
        self.promises = True
        self.document = ServerDocument(id=name, url=f"http://{name}:1", lease_ms=LEASE_MS)
        self.broken = ""
        self.build()

    def build(self) -> None:
        world = self.world
        self.broken = ""
        self.loaded: set[CaseId] = set()
        self.believed: dict[CaseId, str] = {}  # where it takes cases to live
        self.ledger = Ledger(world.store, self._broke)
        notices = Notices(world.store, self.ledger, world.time, EventStream(0))
        queue = JobQueue(data_wait_ms=DATA_WAIT_MS)
        self.nudges = Nudges(self, self, queue, world.time)
        self.meta = PilotScheduler(
            store=world.store,
            ledger=self.ledger,
            clock=world.time,
            policy=RetryPolicy(loss_wait_ms=0, losses_max=1_000),
            lease_ms=LEASE_MS,
            queue=queue,
            signals=self.nudges,
        )
        self.relay = Relay(
            membership=self,
            homes=self,
            peers=self,
            clock=world.time,
            lease_ms=LEASE_MS,
            caches=self.meta.caches,
            remote_pilots=RemotePilots(self, self, world.time, self.meta),
        )
        self.exchange = Exchange(
            meta=self.meta,
            store=world.store,
            ledger=self.ledger,
            clock=world.time,
            notices=notices,
            relay=self.relay,
        )
        notices.post = _silent  # type: ignore[method-assign]  # all servers would add to one stream
        self.ledger.start()
        self.exchange.start()

    def _broke(self, reason: str) -> None:
        self.broken = reason

    async def stop(self) -> None:
        await self.exchange.stop()
        await self.nudges.stop()
        await self.meta.stop()
        await self.ledger.stop()

    # Its cases

    async def begin(self, case: str, jobs: int, resources: Resources | None = None) -> list[JobId]:
        self.world.homes[CaseId(case)] = self.id
        self.loaded.add(CaseId(case))
        given = [new_job(case, number, resources) for number in range(jobs)]
        await self.meta.submit(given)
        await self.ledger.settled()
        self.world.given += given
        return [job.id for job in given]

    async def take_up(self, case: CaseId) -> None:
        """The case is this server's now: read its jobs, and only then answer for them."""
        self.world.homes[case] = self.id
        await self.meta.submit([job for job in self.world.given if job.case == case], reissued=True)
        self.loaded.add(case)

    # Membership

    def may_promise(self) -> bool:
        return self.promises

    async def publish(self) -> None: ...

    def live_servers(self) -> list[ServerDocument]:
        living = self.world.up - self.world.closed
        return [each.document for each in self.world.servers.values() if each is not self and each.id in living]

    def find(self, server: str) -> ServerDocument | None:
        living = self.world.up - self.world.closed
        return self.world.servers[server].document if server in living else None

    # Homes

    def mine(self, case: CaseId) -> bool:
        """By what it has in memory: whether that is still so in the store, it does not know."""
        return root_of(case) in self.loaded

    async def home_of(self, case: CaseId, *, afresh: bool = False) -> str:
        self.world.lookups += 1
        if root_of(case) in self.loaded:
            return self.id
        if afresh or case not in self.believed:
            self.believed[case] = self.world.homes.get(root_of(case), "")
        return self.believed[case]

    # Neighbours

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        world = self.world
        fate = world.fate(self.id, server.id)
        world.passed.append((self.id, server.id, request))
        other = world.servers[server.id]
        if fate == Line.LATE:
            world.late.append(lambda: world.quietly(world.servers[server.id].exchange.sync(request, who)))
        if fate in (Line.LOST, Line.LATE):
            raise PeerUnavailable
        try:
            answer = await other.exchange.sync(request, who)
        except RequestError as mistake:
            raise PeerUnavailable from mistake
        if fate == Line.TWICE:
            await world.quietly(other.exchange.sync(request, who))
        if fate == Line.DEAF:
            raise PeerUnavailable
        return answer

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        if self.world.fate(self.id, server.id) != Line.FINE:
            raise PeerUnavailable
        return self.world.servers[server.id].meta.pilot_views()

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        if self.world.fate(self.id, server.id) != Line.FINE:
            raise PeerUnavailable
        meta = self.world.servers[server.id].meta
        return meta.caches.cards(meta.own_pilots())

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        raise PeerUnavailable

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        self.world.nudges.append((self.id, server.id, pilots, work))
        if self.world.fate(self.id, server.id) == Line.FINE:
            self.world.servers[server.id].exchange.on_nudge(pilots, work=work, by=by)


class World:
    """`fate` says how a call between two servers goes; `late` are calls that have not arrived yet."""

    def __init__(self, *names: str) -> None:
        self.time = Time()
        self.store = MemoryStore()
        self.homes: dict[CaseId, str] = {}
        self.given: list[NewJob] = []
        self.lookups = 0
        self.fate: Callable[[str, str], str] = lambda one, other: Line.FINE
        self.passed: list[tuple[str, str, SyncRequest]] = []
        self.nudges: list[tuple[str, str, list[PilotId], bool]] = []
        self.late: list[Callable[[], Coroutine[Any, Any, object]]] = []
        self.up = set(names)
        self.closed: set[str] = set()  # found dead by the others, whether they know it or not
        self.names = names
        self.servers: dict[str, ServerProcess] = {}

    async def __aenter__(self) -> "World":
        await self.store.open()
        self.servers = {name: ServerProcess(self, name) for name in self.names}
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self.servers.values():
            await server.stop()
        await self.store.close()

    async def kill(self, name: str) -> None:
        """It is gone, with all that it has not written."""
        self.up.discard(name)
        await self.servers[name].stop()

    def over(self, case: str) -> None:
        """The case is over, and has no home any more."""
        del self.homes[CaseId(case)]
        for server in self.servers.values():
            server.loaded.discard(CaseId(case))
            server.believed.clear()

    async def job(self, id: JobId) -> Job:
        for server in self.servers.values():
            if not server.broken:
                await server.ledger.settled()
        found = await self.store.get(JOB_KIND, id)
        assert found is not None
        return _decode(found.body)

    async def quietly(self, call: Coroutine[Any, Any, object]) -> None:
        """Nobody hears what comes of it."""
        try:
            await call
        except RequestError:
            pass


class Hand:
    """A pilot in the test's hands, with the rules by which a real one reads answers and counts its lease."""

    def __init__(self, world: World, name: str, front: str) -> None:
        self.world = world
        self.name = PilotId(name)
        self.front = front
        self.serial = 0
        self.heard = 0
        self.held: dict[JobId, int] = {}
        self.needs: dict[JobId, Resources] = {}
        self.results: dict[JobId, tuple[int, Outcome]] = {}
        self.stop_at: Instant = 0
        self.flights: dict[int, Instant] = {}  # by serial: from when on its answer may count

    def request(self, *, want: int = 0, wait_ms: int = 0, leaving: bool = False) -> SyncRequest:
        self.serial += 1
        self.flights[self.serial] = self.world.time.at
        needs = [self.needs[job] for job in self.held]
        return SyncRequest(
            pilot=self.name,
            serial=self.serial,
            heard=self.heard,
            host="here",
            capacity=CAPACITY,
            want=want,
            wait_ms=wait_ms,
            leaving=leaving,
            running=[AttemptStatus(job, fence, "running", Measurements()) for job, fence in self.held.items()],
            reports=[AttemptReport(job, fence, outcome) for job, (fence, outcome) in self.results.items()],
            taken=ResourcesInUse(
                len(needs), sum(each.cpus for each in needs), sum(each.memory_bytes for each in needs), 0, 0
            ),
        )

    async def sync(self, *, want: int = 0, wait_ms: int = 0, leaving: bool = False) -> SyncAnswer:
        """One exchange that goes well between the pilot and its front."""
        request = self.request(want=want, wait_ms=wait_ms, leaving=leaving)
        answer = await self.world.servers[self.front].exchange.sync(request, "token")
        self.hear(answer)
        return answer

    def hear(self, answer: SyncAnswer) -> None:
        counts_from = self.flights.pop(answer.serial)
        for ref in (*answer.accepted, *answer.refused):
            if self.results.get(ref.job, (0,))[0] == ref.fence:
                del self.results[ref.job]
        for ref in answer.lost:
            if self.held.get(ref.job) == ref.fence:
                del self.held[ref.job]
            if self.results.get(ref.job, (0,))[0] == ref.fence:
                del self.results[ref.job]
        if answer.serial < self.heard or not answer.lease_ms:
            return
        self.heard = answer.serial
        if not answer.unclaimed:
            self.stop_at = max(self.stop_at, counts_from + answer.lease_ms)
        if answer.jobs:  # what is on its way does not name them
            self.flights = {serial: min(at, counts_from) for serial, at in self.flights.items()}
        for job in answer.jobs:
            self.held[job.job], self.needs[job.job] = job.fence, job.spec.resources

    def end(self, job: JobId, outcome: Outcome | None = None) -> None:
        self.results[job] = (self.held.pop(job), outcome or Outcome(outputs=1))


def new_job(case: str, number: int, resources: Resources | None = None) -> NewJob:
    spec = JobSpec(item=ItemId(f"i{number}"), command="true", resources=resources or Resources())
    return NewJob(JobId(f"{case}/{number}"), CaseId(case), spec)


def _silent(*_: object, **__: object) -> None: ...
