"""One run of the simulation, from a seed to a verdict.

Servers and pilots start, clients request cases, faults are injected, and after the fault phase everything that was
acknowledged must end within a bounded time. The invariants are checked during the run and at the end."""

import asyncio
import logging
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.services.runtime.server import ServerSettings
from mendflow.sim.clients import start_until_accepted
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.fault_injection import FaultInjector
from mendflow.sim.invariants import InvariantChecker
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Machine, machine_with_clock
from mendflow.sim.network import Network
from mendflow.sim.observer import Observer, RunRecord
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import SimStartRequest, VirtualServer
from mendflow.sim.virtual_store import VirtualStore
from mendflow.sim.workload import LONG_S, RandomOutcomes, flow
from mendflow.stores.contract import Write

SETTLE_LEASES_MAX = 30
"""Within so many leases after the fault phase everything must have ended, if jobs take no longer than usual."""

SERIAL_JOBS_MAX = 10
"""So many of the longest jobs, or of their attempts, may have to wait for each other."""

FAULTS = (0, 5, 10, 20, 40)
"""The default number of faults per run."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run. Everything else follows from the seed."""

    seed: int
    servers: int = 3
    pilots: int = 6
    jobs: int = 60
    long_s: float = LONG_S  # the longest jobs
    lease_ms: int = 6_000
    fault_period_s: float = 30.0
    faults: int = -1  # how many; -1: drawn
    kinds: tuple[str, ...] = ()  # only these kinds; none: drawn
    recovery: bool | None = None  # whether rules decide about failures; None: drawn


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run. `violations` are the laws that were broken, and where."""

    seed: int
    violations: list[str]
    hash: str
    counts: dict[str, int]
    gaps_s: list[float]
    seconds: float
    settle_s: float  # from the end of the fault phase until all has ended
    steps: int
    story: list[str] = []


class SimWorld:
    def __init__(self, scene: Scene, folder: Path, *, story: bool = False) -> None:
        self.scene = scene
        self.loop = VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world
        self.counts = FaultCounts()
        self.lease_s = scene.lease_ms / 1000
        self.observer = Observer(lambda: self.loop.true_s, self.counts)
        self.observer.story = [] if story else None
        self.network = Network(self.loop, self.chance("lines"), self.counts)
        self.store = VirtualStore(self.loop, self.chance("disk"), self.counts, self._written)
        self.outcomes = RandomOutcomes(self.observer)
        self._machines = self.chance("machines")
        asks = scene.recovery if scene.recovery is not None else self.chance("rules").random() < 0.5
        rules = ServerSettings(lease_ms=scene.lease_ms, losses_max=1_000, recovery=asks)
        self.servers = [
            VirtualServer(
                self._machine(f"server-{n}"),
                self.network,
                self.store,
                self.chance(f"names {n}"),
                rules,
                alone=scene.servers == 1,
            )
            for n in range(1, scene.servers + 1)
        ]
        addresses = [server.address for server in self.servers]
        self.pilots = [
            VirtualPilot(
                self._machine(f"pilot-{n}"),
                self.network,
                self.outcomes,
                folder / str(n),
                self._machines.sample(addresses, self._machines.randint(1, len(addresses))),
                slots=self._machines.randint(1, 4),
            )
            for n in range(1, scene.pilots + 1)
        ]
        self.acknowledged: dict[CaseId, str] = {}
        self.settle_s = 0.0
        self.invariants = InvariantChecker(self)

    def chance(self, what: str) -> Random:
        """A separate random generator for each purpose, so that one does not influence another."""
        return Random(f"{self.scene.seed} {what}")

    def tell(self, line: str) -> None:
        self.observer.tell(line)

    def _written(self, write: Write, by: str) -> None:
        self.observer.on_write(write, by)
        self.invariants.check_write(write, by)

    def _machine(self, name: str) -> Machine:
        return machine_with_clock(self.loop, name, self._machines)

    async def play(self) -> None:
        for server in self.servers:
            server.start()
        for pilot in self.pilots:
            pilot.start()
        chance = self.chance("storm")
        faults = self.scene.faults if self.scene.faults >= 0 else chance.choice(FAULTS)
        injector = FaultInjector(self, chance, period_s=self.scene.fault_period_s, faults=faults, only=self.scene.kinds)
        clients = self._clients()
        checks = self.loop.create_task(self.invariants.check_memory_periodically())
        await asyncio.gather(injector.inject_all(), *clients)
        await self._settle()
        checks.cancel()
        await self.invariants.check_at_end()

    def _clients(self) -> list["asyncio.Task[None]"]:
        chance = self.chance("clients")
        tasks, left, number = [], self.scene.jobs, 0
        while left:
            jobs = min(left, chance.randint(3, 15))
            left, number = left - jobs, number + 1
            wanted = SimStartRequest(flow(f"flow-{number}", jobs, chance, self.scene.long_s), f"key-{number}")
            tasks.append(
                self.loop.create_task(self._client(wanted, chance.uniform(0.1, self.scene.fault_period_s / 2)))
            )
        return tasks

    async def _client(self, wanted: SimStartRequest, at_s: float) -> None:
        until_s = self.scene.fault_period_s + SETTLE_LEASES_MAX * self.lease_s
        case = await start_until_accepted(
            wanted,
            self.servers,
            self.network,
            self.observer,
            self.chance(wanted.key),
            at_s=at_s,
            until_s=until_s,
        )
        if case is not None:
            self.acknowledged[case] = wanted.key

    async def _settle(self) -> None:
        began_s = self.loop.true_s
        longest_s = SETTLE_LEASES_MAX * self.lease_s + SERIAL_JOBS_MAX * max(0.0, self.scene.long_s - LONG_S)
        while not await self.invariants.all_ended():
            self.settle_s = self.loop.true_s - began_s
            if self.loop.true_s > began_s + longest_s:
                return  # the invariant checker reports what is missing
            await asyncio.sleep(0.5)


class _ErrorLog(logging.Handler):
    """Collects log records of the product that should not occur."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            story = "".join(traceback.format_exception(record.exc_info[1], limit=-4))
            self.messages.append(f"{record.getMessage()}\n{story}")


class PlayedWorld(Protocol):
    """A world that can be run."""

    loop: VirtualLoop
    counts: FaultCounts
    settle_s: float

    @property
    def observer(self) -> RunRecord: ...
    async def play(self) -> None: ...


def play(scene: Scene, *, story: bool = False) -> RunVerdict:
    """Run the simulation of this seed to its end."""
    made: list[SimWorld] = []

    def make(folder: Path) -> SimWorld:
        made.append(SimWorld(scene, folder, story=story))
        return made[0]

    verdict = verdict_of(scene.seed, make)
    return msgspec.structs.replace(verdict, gaps_s=made[0].observer.gaps_s)


def verdict_of(seed: int, make: Callable[[Path], PlayedWorld]) -> RunVerdict:
    """Make a world, run it to its end, and say what came of it."""
    error_log, log = _ErrorLog(), logging.getLogger("mendflow")
    level, passes = log.level, log.propagate
    log.addHandler(error_log)
    log.propagate = False
    folder = Path(tempfile.mkdtemp(prefix="mendflow-sim-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        world = make(folder)
        world.loop.run(world.play())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        log.removeHandler(error_log)
        log.setLevel(level)
        log.propagate = passes
    troubles = [f"an error that nobody foresaw: {each}" for each in [*error_log.messages, *world.loop.troubles]]
    return RunVerdict(
        seed=seed,
        violations=world.observer.violations + troubles,
        hash=world.observer.hash,
        counts=dict(world.counts.of),
        gaps_s=[],
        seconds=world.loop.true_s,
        settle_s=world.settle_s,
        steps=world.loop.steps,
        story=world.observer.story or [],
    )
