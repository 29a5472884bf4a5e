"""One run of the imagined world, from a seed to a verdict.

Servers and pilots start, clients ask for cases, a storm rages, and when it is over everything that was acknowledged
must come to its end within a bounded time. The laws are watched all the while and looked at once more at the end."""

import asyncio
import logging
import os
import shutil
import tempfile
import traceback
from pathlib import Path
from random import Random

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.services.runtime.server import HouseRules
from mendflow.sim.chronicle import Chronicle
from mendflow.sim.counting import Counts
from mendflow.sim.disk import Disk
from mendflow.sim.judge import Judge
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Machine
from mendflow.sim.network import Network, Unreached
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import START_PATH, Start, VirtualServer
from mendflow.sim.storm import Storm
from mendflow.sim.work import LONG_S, DrawnNature, flow
from mendflow.stores.contract import Write

DRIFT_MAX = 0.01
"""How much faster or slower a machine's clock may go than true time. Real ones are off by a hundredth of that."""

SKEW_MS_MAX = 120_000
"""How far off a machine's wall clock may be."""

CALM_LEASES_MAX = 30
"""Within so many leases after the storm everything must have ended, if jobs take no longer than they usually do."""

ONE_AFTER_THE_OTHER = 10
"""So many of the longest jobs, or of their attempts, may have to wait for each other."""

PATIENCE_S = 3.0
FAULTS = (0, 5, 10, 20, 40)
"""How many faults a storm may have, if nobody says."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is about. Everything else follows from the seed."""

    seed: int
    servers: int = 3
    pilots: int = 6
    jobs: int = 60
    long_s: float = LONG_S  # the longest jobs
    lease_ms: int = 6_000
    storm_s: float = 30.0
    faults: int = -1  # so many; -1: drawn
    kinds: tuple[str, ...] = ()  # of these only; none: drawn
    recovery: bool | None = None  # whether rules are asked when something fails; None: drawn


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run. `broken` are the laws that were broken, and where."""

    seed: int
    broken: list[str]
    hash: str
    counts: dict[str, int]
    gaps_s: list[float]
    seconds: float
    calm_s: float  # from the storm's end until all was over
    steps: int
    story: list[str] = []


class World:
    def __init__(self, scene: Scene, folder: Path, *, story: bool = False) -> None:
        self.scene = scene
        self.loop = VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world
        self.counts = Counts()
        self.lease_s = scene.lease_ms / 1000
        self.chronicle = Chronicle(lambda: self.loop.true_s, self.counts)
        self.chronicle.story = [] if story else None
        self.network = Network(self.loop, self.chance("lines"), self.counts)
        self.disk = Disk(self.loop, self.chance("disk"), self.counts, self._written)
        self.nature = DrawnNature(self.chronicle)
        self._machines = self.chance("machines")
        asks = scene.recovery if scene.recovery is not None else self.chance("rules").random() < 0.5
        rules = HouseRules(lease_ms=scene.lease_ms, losses_max=1_000, recovery=asks)
        self.servers = [
            VirtualServer(
                self._machine(f"server-{n}"),
                self.network,
                self.disk,
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
                self.nature,
                folder / str(n),
                self._machines.sample(addresses, self._machines.randint(1, len(addresses))),
                slots=self._machines.randint(1, 4),
            )
            for n in range(1, scene.pilots + 1)
        ]
        self.acknowledged: dict[CaseId, str] = {}
        self.calm_s = 0.0
        self.judge = Judge(self)

    def chance(self, what: str) -> Random:
        """A source of chance of its own for each thing, so that one does not disturb the others."""
        return Random(f"{self.scene.seed} {what}")

    def tell(self, line: str) -> None:
        self.chronicle.tell(line)

    def _written(self, write: Write, by: str) -> None:
        self.chronicle.written(write, by)
        self.judge.watch(write, by)

    def _machine(self, name: str) -> Machine:
        chance = self._machines
        rate = 1 + chance.uniform(-DRIFT_MAX, DRIFT_MAX)
        return Machine(self.loop, name, rate=rate, skew_ms=chance.randint(-SKEW_MS_MAX, SKEW_MS_MAX))

    async def play(self) -> None:
        for server in self.servers:
            server.start()
        for pilot in self.pilots:
            pilot.start()
        chance = self.chance("storm")
        faults = self.scene.faults if self.scene.faults >= 0 else chance.choice(FAULTS)
        storm = Storm(self, chance, lasts_s=self.scene.storm_s, faults=faults, only=self.scene.kinds)
        clients = self._clients()
        visits = self.loop.create_task(self.judge.visit_now_and_then())
        await asyncio.gather(storm.rage(), *clients)
        await self._calm()
        visits.cancel()
        await self.judge.look_at_the_end()

    def _clients(self) -> list["asyncio.Task[None]"]:
        chance = self.chance("clients")
        tasks, left, number = [], self.scene.jobs, 0
        while left:
            jobs = min(left, chance.randint(3, 15))
            left, number = left - jobs, number + 1
            wanted = Start(flow(f"flow-{number}", jobs, chance, self.scene.long_s), f"key-{number}")
            tasks.append(self.loop.create_task(self._client(wanted, chance.uniform(0.1, self.scene.storm_s / 2))))
        return tasks

    async def _client(self, wanted: Start, at_s: float) -> None:
        """Somebody who wants a case to be run, and asks until a server has said yes."""
        await asyncio.sleep(at_s)
        chance = self.chance(wanted.key)
        process = Machine(self.loop, f"client {wanted.key}").start("client")
        until_s = self.scene.storm_s + CALM_LEASES_MAX * self.lease_s
        while self.loop.true_s < until_s:
            server = chance.choice(self.servers)
            try:
                body = msgspec.json.encode(wanted)
                status, answer = await self.network.call(process, server.address, START_PATH, body, PATIENCE_S)
            except Unreached:
                status, answer = 503, b""
            if status == 200:
                self.acknowledged[CaseId(answer.decode())] = wanted.key
                self.tell(f"acknowledged {answer.decode()}")
                return
            if status < 500:
                self.chronicle.accuse("the client", f"{wanted.key} was answered {status}: {answer.decode()}")
                return
            await asyncio.sleep(chance.uniform(0.2, 2.0))
        self.chronicle.accuse("liveness", f"no server takes {wanted.key}")

    async def _calm(self) -> None:
        began_s = self.loop.true_s
        longest_s = CALM_LEASES_MAX * self.lease_s + ONE_AFTER_THE_OTHER * max(0.0, self.scene.long_s - LONG_S)
        while not await self.judge.all_over():
            self.calm_s = self.loop.true_s - began_s
            if self.loop.true_s > began_s + longest_s:
                return  # the judge will say what is missing
            await asyncio.sleep(0.5)


class _Ear(logging.Handler):
    """Hears what the product itself calls an error that ought not to be."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            story = "".join(traceback.format_exception(record.exc_info[1], limit=-4))
            self.heard.append(f"{record.getMessage()}\n{story}")


def play(scene: Scene, *, story: bool = False) -> Verdict:
    """Run the world of this seed to its end."""
    ear, log = _Ear(), logging.getLogger("mendflow")
    level, passes = log.level, log.propagate
    log.addHandler(ear)
    log.propagate = False
    folder = Path(tempfile.mkdtemp(prefix="mendflow-sim-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        world = World(scene, folder, story=story)
        world.loop.run(world.play())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        log.removeHandler(ear)
        log.setLevel(level)
        log.propagate = passes
    chronicle = world.chronicle
    troubles = [f"an error that nobody foresaw: {each}" for each in [*ear.heard, *world.loop.troubles]]
    return Verdict(
        seed=scene.seed,
        broken=chronicle.broken + troubles,
        hash=chronicle.hash,
        counts=dict(world.counts.of),
        gaps_s=chronicle.gaps_s,
        seconds=world.loop.true_s,
        calm_s=world.calm_s,
        steps=world.loop.steps,
        story=chronicle.story or [],
    )
