"""Several houses on one store, each in a process of its own that can be killed, and stopped in the middle of anything.

Time is virtual: a test of many seconds takes none. What a process writes travels for a moment, so a process that is
stopped then writes when it goes on, however long that is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from mendflow.core.engine.messages import Event
from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.errors import RequestError, StoreUnavailable, Unreachable
from mendflow.core.model.ids import CaseId, PilotId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.services.api.domain import Domain
from mendflow.services.api.peer_handler import PeerHandler
from mendflow.services.base.cluster import HOME_KIND, HomeDocument, PeerUnavailable, ServerDocument
from mendflow.services.cases.live_case import CaseDocument, journal_of
from mendflow.services.runtime.server import Runtime, Server, ServerSettings
from mendflow.sim.contentless_file_store import ContentlessFileStore
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Machine, VirtualProcess, WallClock
from mendflow.stores.contract import FieldCondition, Store, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot

T = TypeVar("T")
LEASE_MS = 9_000
TRAVEL_S = 0.001
AWAY_S = 1.0


class Line:
    """A process's way to the store. `before` is shown what is about to be written, and may hold it up or fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Callable[[Sequence[Write]], Awaitable[None]] | None = None

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if self.before is not None:
            await self.before(writes)
        await asyncio.sleep(TRAVEL_S)
        results = await self._store.write(writes)
        await asyncio.sleep(TRAVEL_S)
        return results

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        await asyncio.sleep(TRAVEL_S)
        return await self._store.get(kind, id)

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        await asyncio.sleep(TRAVEL_S)
        return await self._store.get_many(kind, ids)

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        await asyncio.sleep(TRAVEL_S)
        return await self._store.statuses(kind, ids)

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        await asyncio.sleep(TRAVEL_S)
        return await self._store.read(stream, start, limit)

    async def length(self, stream: str) -> int:
        return await self._store.length(stream)

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        await asyncio.sleep(TRAVEL_S)
        async for found in self._store.scan(kind, prefix):
            yield found

    async def search(self, kind: str, where: Sequence[FieldCondition] = (), **how: Any) -> list[StoredDocument]:
        await asyncio.sleep(TRAVEL_S)
        return await self._store.search(kind, where, **how)

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        return await self._store.count(kind, where, by=by)

    async def kinds(self) -> list[str]:
        return await self._store.kinds()

    async def refresh(self) -> None:
        await self._store.refresh()


class ServerProcess:
    """One house, in a process of its own."""

    def __init__(
        self,
        cluster: "Cluster",
        name: str,
        *,
        shipped: RuleSet | None,
        settings: ServerSettings,
        alone: bool = False,
        rebooted: bool = False,
    ) -> None:
        self.name = name
        self.cluster = cluster
        machine = Machine(cluster.loop, name)
        if rebooted:
            machine.boot()
        self.process: VirtualProcess = machine.start("server")
        self.line = Line(cluster.store)
        clock = WallClock(machine)
        self.wall_shift_ms = 0  # by how much the wall clock has jumped
        self.server = Server(
            store=self.line,
            file_store=ContentlessFileStore(),
            clock=clock,
            wall=lambda: clock.now() + self.wall_shift_ms,
            settings=settings,
            version="test",
            shipped=shipped,
            server=None if alone else ServerDocument(id=name, url=f"http://{name}", meter=machine.boot_name),
            peers=cluster,
            meter=machine.boot_ms,
        )
        self.domain = Domain(self.server)

    @property
    def runtime(self) -> Runtime:
        return self.server.runtime

    async def do(self, work: Coroutine[Any, Any, T], *, patience_s: float = 60.0) -> T:
        """Let the process do something, and wait for that."""
        if not self.process.alive:
            work.close()
            await asyncio.sleep(patience_s)
            raise TimeoutError(f"server {self.name} is dead")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def doing() -> None:
            try:
                result = await work
            except Exception as error:  # whoever asked gets it
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.process.spawn(doing())
        return await asyncio.wait_for(done, patience_s)

    def kill(self) -> None:
        self.process.kill()

    async def close(self) -> None:
        """Stop it as an administrator does."""
        await self.do(self.server.close())
        self.process.kill()


class Cluster:
    """All servers, by name; for pilots and servers also the way to each of them."""

    def __init__(self, loop: VirtualLoop, store: Store | None = None) -> None:
        self.loop = loop
        self.store = store if store is not None else MemoryStore()
        self.servers: dict[str, ServerProcess] = {}

    async def start(
        self,
        *names: str,
        shipped: RuleSet | None = None,
        lease_ms: int = LEASE_MS,
        levels_ms: tuple[int, ...] = (500,),
        alone: bool = False,
        rebooted: bool = False,
        schedules: bool = True,
    ) -> list[ServerProcess]:
        await self.store.open()
        started = []
        for name in names:
            settings = ServerSettings(
                lease_ms=lease_ms, files_roots=None, levels_ms=levels_ms, check_ms=1_000, schedules=schedules
            )
            self.servers[name] = server = ServerProcess(
                self, name, shipped=shipped, settings=settings, alone=alone, rebooted=rebooted
            )
            await server.do(server.server.open())
            started.append(server)
        return started

    # Between servers

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        there = self.servers[server.id]
        try:
            return await there.do(there.domain.sync(request, who=who), patience_s=AWAY_S)
        except (TimeoutError, RequestError) as error:
            raise PeerUnavailable(f"{server.id}: {error!r}") from error

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        return []

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        return []

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        raise PeerUnavailable

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        there = self.servers[server.id]

        def nudged() -> None:
            try:
                PeerHandler(there.server).nudged(pilots, work=work, by=by)
            except RequestError:  # it reads everything again: it answers so, and whoever nudges goes on
                pass

        there.process.deliver(nudged)

    # Looking

    async def home(self, case: str) -> str:
        found = await self.store.get(HOME_KIND, case)
        return msgspec.json.decode(found.body, type=HomeDocument).server if found is not None else ""

    async def document(self, case: str) -> CaseDocument:
        found = await self.store.get("case", case)
        assert found is not None
        return msgspec.json.decode(found.body, type=CaseDocument)

    async def journal(self, case: str) -> list[Event]:
        entries = await self.store.read(journal_of(CaseId(case)))
        return [msgspec.json.decode(entry, type=Event) for entry in entries]

    async def jobs(self, case: str) -> list[Job]:
        return [msgspec.json.decode(found.body, type=Job) async for found in self.store.scan("job", case)]

    async def until(self, check: Callable[[], Awaitable[Any]], what: str = "", within_s: float = 60.0) -> Any:
        """What the check gives when it gives something."""
        end = self.loop.true_s + within_s
        while self.loop.true_s < end:
            if found := await check():
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"this never came: {what or check}")

    async def until_home(self, case: str, *servers: str, within_s: float = 60.0) -> str:
        """The server that has taken the case up."""

        async def taken() -> str:
            home = await self.home(case)
            there = self.servers.get(home)
            try:
                up = home in servers and there is not None and there.runtime.homes.mine(CaseId(case))
            except StoreUnavailable:
                return ""
            return home if up else ""

        return str(await self.until(taken, f"{case} at home in {servers}", within_s))

    async def until_status(self, case: str, status: str, within_s: float = 60.0) -> None:
        async def reached() -> bool:
            return (await self.document(case)).status == status

        await self.until(reached, f"{case} {status}", within_s)


class Front:
    """What a pilot speaks to: one server, or the next that lives when that one does not answer."""

    def __init__(self, cluster: Cluster, *names: str) -> None:
        self.cluster = cluster
        self.names = list(names)

    async def sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer:
        for _ in range(len(self.names)):
            server = self.cluster.servers[self.names[0]]
            try:
                if server.process.alive:
                    return await server.do(server.domain.sync(request, who=who), patience_s=AWAY_S)
            except (TimeoutError, RequestError):
                pass
            self.names.append(self.names.pop(0))
        raise Unreachable("no server answers")


def pilot_of(cluster: Cluster, *names: str, pilot: str = "p-1") -> HandPilot:
    """A pilot in the test's hands that speaks to these servers."""
    return HandPilot(Front(cluster, *names), pilot)  # type: ignore[arg-type]  # of a domain it asks nothing else


async def keep_running(pilot: HandPilot, seconds: float, *, every_s: float = 0.2) -> None:
    """Let the pilot hold what it has for so long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        try:
            await pilot.sync()
        except RequestError:
            pass
        await asyncio.sleep(every_s)


def run(story: Callable[[Cluster], Coroutine[Any, Any, None]], store: Store | None = None) -> None:
    """Play a story to its end; whatever nobody expected fails it."""
    loop = VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world
    loop.run(story(Cluster(loop, store)))
    assert loop.troubles == []


def completed(jobs: Sequence[Job]) -> dict[str, int]:
    """Of each item the jobs that completed."""
    counts: dict[str, int] = {}
    for job in jobs:
        if job.state is JobState.COMPLETED:
            counts[str(job.spec.item)] = counts.get(str(job.spec.item), 0) + 1
    return counts
