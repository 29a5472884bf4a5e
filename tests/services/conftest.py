"""A whole domain in this process, on a store in memory, and a pilot that does what the test says."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mendflow.core.model.ids import PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.projects import CASES_PER_START
from mendflow.core.model.sync import Assignment, AttemptReport, AttemptStatus, Capacity, SyncAnswer, SyncRequest
from mendflow.core.model.values import Value
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.base.secret_sources import SecretSources
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore

LOOK_MS = 50
LATE = 1.2
LOOKS_MAX = 40
LOOKS_OF_SLOW_STORES = 4
CAPACITY = Capacity(slots=4, cpus=4.0, memory_bytes=8 << 30, disk_bytes=8 << 30)


def server_on(
    store: Store,
    folder: Path,
    *,
    lease_ms: int = 30_000,
    server: ServerDocument | None = None,
    continues_found: bool = True,
    secret_sources: SecretSources | None = None,
    cases_per_start: int = CASES_PER_START,
) -> Server:
    file_store = FolderFileStore(folder / "files")
    file_store.open()
    rules = ServerSettings(
        lease_ms=lease_ms,
        files_roots=None,
        continues_found=continues_found,
        cases_per_start_max=cases_per_start,
    )
    return Server(
        store=store,
        file_store=file_store,
        clock=SystemClock(),
        settings=rules,
        version="test",
        server=server,
        secret_sources=secret_sources,
    )


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = server_on(MemoryStore(), tmp_path)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
def domain(server: Server) -> Domain:
    return Domain(server)


class HandPilot:
    """A pilot in the test's hands: it asks, holds what it got, and reports what it is told to."""

    def __init__(self, domain: Domain, name: str = "p-1", capacity: Capacity = CAPACITY) -> None:
        self.domain = domain
        self.name = PilotId(name)
        self.capacity = capacity
        self.host = "here"
        self.serial = 0
        self.heard = 0
        self.held: list[Assignment] = []
        self.state = "running"
        self.values: dict[str, Value] = {}  # what its jobs report of themselves

    async def sync(
        self,
        *,
        want: int = 0,
        wait_ms: int = 0,
        leaving: bool = False,
        leaves: str = "",
        ttl_ms: int = 0,
        paused: str = "",
        unfit: str = "",
        **ended: Outcome,
    ) -> SyncAnswer:
        """One exchange. What ended is given by item."""
        return await self.exchange(
            dict(ended),
            want=want,
            wait_ms=wait_ms,
            leaving=leaving,
            leaves=leaves,
            ttl_ms=ttl_ms,
            paused=paused,
            unfit=unfit,
        )

    async def exchange(
        self,
        reports: dict[str, Outcome],
        *,
        want: int = 0,
        wait_ms: int = 0,
        leaving: bool = False,
        leaves: str = "",
        ttl_ms: int = 0,
        paused: str = "",
        unfit: str = "",
    ) -> SyncAnswer:
        ended = [(each, reports[each.spec.item]) for each in self.held if each.spec.item in reports]
        still = [each for each in self.held if each.spec.item not in reports]
        self.serial += 1
        request = SyncRequest(
            pilot=self.name,
            serial=self.serial,
            heard=self.heard,
            host=self.host,
            capacity=self.capacity,
            want=want,
            wait_ms=wait_ms,
            leaving=leaving,
            leaves=leaves,
            ttl_ms=ttl_ms,
            paused=paused,
            unfit=unfit,
            running=[
                AttemptStatus(each.job, each.fence, self.state, Measurements(), "", self.values) for each in still
            ],
            reports=[AttemptReport(each.job, each.fence, outcome) for each, outcome in ended],
        )
        answer = await self.domain.sync(request)
        self.heard = self.serial
        gone = {(ref.job, ref.fence) for ref in (*answer.accepted, *answer.refused, *answer.lost)}
        self.held = [each for each in self.held if (each.job, each.fence) not in gone] + answer.jobs
        return answer

    async def run_all(self, play: Callable[[JobSpec], Outcome], *, most: int = 1000) -> None:
        """Run what there is until there is nothing more."""
        for _ in range(most):
            await self.ask_for_all()
            if not self.held:
                return
            await self.exchange({each.spec.item: play(each.spec) for each in self.held})
        raise AssertionError("there is no end of jobs")

    async def ask_for_all(self) -> None:
        """Ask until there is something, or nothing came though the server had the time for it: on a busy machine the
        answer is late, or the disk, and what leads to the next job may not have had its turn. A store on a disk or
        behind a network is also read, for which the server is given some more looks."""
        server = getattr(self.domain, "_server", None)  # of servers in front of which it stands, nobody can tell
        needed = 1 if server is None or isinstance(server.store, MemoryStore) else LOOKS_OF_SLOW_STORES
        for _ in range(LOOKS_MAX):
            began = time.monotonic()
            await self.sync(want=4, wait_ms=LOOK_MS)
            in_time = time.monotonic() - began < LOOK_MS / 1000 * LATE
            needed -= in_time and (server is None or server.runtime.ledger.idle)
            if self.held or not needed:
                return


@pytest.fixture
def pilot(domain: Domain) -> HandPilot:
    return HandPilot(domain)


@pytest.fixture
def another_pilot(domain: Domain) -> Callable[..., HandPilot]:
    return lambda name, capacity=CAPACITY: HandPilot(domain, name, capacity)


@pytest.fixture
async def hasty_house(tmp_path: Path) -> AsyncIterator[Server]:
    """Its leases are short."""
    server = server_on(MemoryStore(), tmp_path, lease_ms=600)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
def restart() -> Callable[[Server], Awaitable[None]]:
    """As after a crash: new services over what the store holds."""

    async def again(server: Server) -> None:
        server.on_broken(server.runtime, "the test says so")
        while server.health().status != "ok":
            await server.clock.sleep(20)

    return again
