"""What routing is worth: three domains in virtual time, with uneven load and data, under one policy after the other.

Everything is played around the real services: servers, pilots, leases and the exchange between domains. What is
imagined is how long a job takes: its own time, and, where its data is not, the time to fetch that. Each policy decides
by the same reports, which are some seconds old, as between real domains."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, Literal

import msgspec

from mendflow.core.domains.routing import BYTES_PER_MS, DomainOffer, WorkNeeds, route
from mendflow.core.model.domains import DomainReport
from mendflow.core.model.flow import Activity, Flow, JobActivity, Parallel
from mendflow.core.model.ids import CaseId, FlowName, JobId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.sync import Capacity
from mendflow.pilot.slot.messages import SlotWork
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import MetaScheduler
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import ServerSettings
from mendflow.sim.clients import start_until_accepted
from mendflow.sim.domains.servers import DomainServer, PeerTrouble, SpreadJobs
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Machine
from mendflow.sim.network import Network
from mendflow.sim.observer import RunRecord
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import SimStartRequest
from mendflow.sim.virtual_store import VirtualStore
from mendflow.sim.world import verdict_of

Policy = Literal["home", "random", "capacity", "data and capacity"]
POLICIES: Final[tuple[Policy, ...]] = ("home", "random", "capacity", "data and capacity")
REPORT_S: Final = 5.0
GIB: Final = 1 << 30
LIMIT_S: Final = 100_000.0
_decode_case: Final = msgspec.json.Decoder(CaseDocument).decode


class RoutingDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain: its slots, and which share of all flows begins and of all data lies there."""

    name: str
    slots: int
    load: float
    data: float


DOMAINS: Final = (
    RoutingDomain(name="north", slots=16, load=0.7, data=0.2),
    RoutingDomain(name="south", slots=64, load=0.2, data=0.2),
    RoutingDomain(name="west", slots=32, load=0.1, data=0.6),
)


class RoutingScene(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run. A job reads one file of `data_bytes`."""

    seed: int
    policy: Policy
    jobs: int = 200
    jobs_a_flow: int = 20
    job_s: tuple[float, float] = (60.0, 300.0)
    data_bytes: int = 10 * GIB
    period_s: float = 300.0  # in which flows begin
    domains: tuple[RoutingDomain, ...] = DOMAINS


class RoutingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run: how long its flows took, when all was done, what was fetched, and which jobs ran where."""

    turnarounds_s: list[float]
    makespan_s: float
    fetched_bytes: int
    jobs: dict[str, int]


class _RoutedJobs(SpreadJobs):
    """Sends each job of this domain's own flows where the policy says, and remembers it."""

    def __init__(self, queue: MetaScheduler, world: "RoutingWorld", home: str) -> None:
        super().__init__(queue)
        self._world = world
        self._home = home
        self._chosen: dict[JobId, str] = {}

    def domain_of(self, job: JobId, spec: JobSpec | None = None) -> str:
        if spec is not None and self.is_own(job):
            self._chosen[job] = self._world.choose(self._home, spec.command or "")
        return self._chosen.get(job, "")


class _RoutingServer(DomainServer):
    def __init__(self, world: "RoutingWorld", domain: RoutingDomain, machine: Machine) -> None:
        others = {each.name: [world.address(each.name)] for each in world.scene.domains if each is not domain}
        super().__init__(
            domain.name,
            others,
            machine,
            world.network,
            world.stores[domain.name],
            world.chance(f"names {domain.name}"),
            ServerSettings(recovery=False, domain=domain.name),
            alone=True,
            trouble=PeerTrouble(),
        )
        self._world = world

    def _way_to_queue(self, queue: MetaScheduler) -> MetaScheduler:
        return _RoutedJobs(queue, self._world, self.domain)


class RoutingWorld:
    def __init__(self, scene: RoutingScene, folder: Path) -> None:
        self.scene = scene
        self.loop = VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world
        self.counts = FaultCounts()
        self.observer = RunRecord(lambda: self.loop.true_s)
        self.network = Network(self.loop, self.chance("lines"), self.counts)
        self.settle_s = 0.0
        self.stores = {
            each.name: VirtualStore(self.loop, self.chance(f"disk {each.name}"), self.counts, lambda *_: None)
            for each in scene.domains
        }
        self.servers = {each.name: _RoutingServer(self, each, Machine(self.loop, each.name)) for each in scene.domains}
        self.pilots = [
            VirtualPilot(
                Machine(self.loop, f"{each.name}-pilot"),
                self.network,
                self,
                folder / each.name,
                [self.address(each.name)],
                slots=each.slots,
            )
            for each in scene.domains
        ]
        self._reports: dict[str, DomainReport] = {}
        self._sent = Counter[str]()  # since the last report
        self._random = self.chance("policy")
        self._jobs: dict[str, tuple[float, str]] = {}  # by name: how long it takes, and where its data is
        self.result = RoutingResult(turnarounds_s=[], makespan_s=0.0, fetched_bytes=0, jobs={})

    def chance(self, what: str) -> Random:
        return Random(f"{self.scene.seed} {what}")

    def address(self, domain: str) -> str:
        return f"http://{domain}"

    # How long work takes

    def begins(self, work: SlotWork, pilot: str) -> tuple[float, bool]:
        _, name = (work.command or "").split()
        seconds, home = self._jobs[name]
        domain = pilot.removesuffix("-pilot")
        self.counts.add(f"jobs in {domain}")
        if domain != home:
            self.counts.add("fetched")
            seconds += self.scene.data_bytes / BYTES_PER_MS / 1_000
        return seconds, True

    def ends(self, work: SlotWork, how: str) -> None: ...

    # Where work goes

    def choose(self, home: str, command: str) -> str:
        """The domain that a job goes to; empty: it stays in its own."""
        policy, names = self.scene.policy, [each.name for each in self.scene.domains]
        if policy == "home":
            return ""
        if policy == "random":
            chosen = self._random.choice(names)
            return "" if chosen == home else chosen
        _, data = self._jobs[command.split()[1]]
        logical = {f"/data/{data}": self.scene.data_bytes} if policy == "data and capacity" else {}
        decision = route(
            WorkNeeds(logical=logical, expected_ms=round(1_000 * sum(self.scene.job_s) / 2)),
            self._offer(home),
            [self._offer(each) for each in names if each != home],
        )
        self._sent[decision.domain or home] += 1
        return decision.domain

    def _offer(self, name: str) -> DomainOffer:
        """A domain as it was when it last reported, with what was sent there since."""
        report, sent = self._reports[name], self._sent[name]
        taken = min(sent, report.slots_free)
        report = msgspec.structs.replace(
            report, slots_free=report.slots_free - taken, waiting=report.waiting + sent - taken
        )
        return DomainOffer(name=name, report=report, latency_ms=10.0)

    async def _report(self) -> None:
        while True:
            self._sent.clear()
            for each in self.scene.domains:
                self._reports[each.name] = self._report_of(each)
            await asyncio.sleep(REPORT_S)

    def _report_of(self, domain: RoutingDomain) -> DomainReport:
        runtime = self.servers[domain.name].runtime
        assert runtime is not None, f"{domain.name} does not run"
        waiting, running = runtime.meta.jobs_waiting(), runtime.meta.jobs_running()
        shape = Capacity(slots=1, cpus=float(domain.slots), memory_bytes=GIB, disk_bytes=GIB)
        return DomainReport(
            slots=domain.slots,
            slots_free=max(0, domain.slots - running),
            shapes=(shape,),
            waiting=waiting,
            running=running,
            logical_files=(f"/data/{domain.name}",),
        )

    # The run

    async def play(self) -> None:
        for server in self.servers.values():
            server.start()
        for pilot in self.pilots:
            pilot.start()
        await asyncio.sleep(30.0)
        reports = asyncio.ensure_future(self._report())
        turnarounds = await asyncio.gather(*self._clients())
        reports.cancel()
        self.result = RoutingResult(
            turnarounds_s=sorted(turnarounds),
            makespan_s=self.loop.true_s - 30.0,
            fetched_bytes=self.counts.of.get("fetched", 0) * self.scene.data_bytes,
            jobs={each.name: self.counts.of.get(f"jobs in {each.name}", 0) for each in self.scene.domains},
        )

    def _clients(self) -> list["asyncio.Task[float]"]:
        chance, scene = self.chance("clients"), self.scene
        clients = []
        for number in range(max(1, scene.jobs // scene.jobs_a_flow)):
            [home] = chance.choices(scene.domains, [each.load for each in scene.domains])
            jobs = tuple(self._job(f"j{number}n{n}", chance) for n in range(scene.jobs_a_flow))
            flow = Flow(name=FlowName(f"flow-{number}"), body=Parallel(name="all", branches=jobs))
            at_s = chance.uniform(0.0, scene.period_s)
            clients.append(self.loop.create_task(self._client(home.name, SimStartRequest(flow, f"key-{number}"), at_s)))
        return clients

    def _job(self, name: str, chance: Random) -> Activity:
        [data] = chance.choices(self.scene.domains, [each.data for each in self.scene.domains])
        self._jobs[name] = (chance.uniform(*self.scene.job_s), data.name)
        return JobActivity(name=name, command=f"work {name}")

    async def _client(self, home: str, wanted: SimStartRequest, at_s: float) -> float:
        """How long the flow took, from when it was wanted."""
        began_s, server = self.loop.true_s + at_s, self.servers[home]
        case = await start_until_accepted(
            wanted, [server], self.network, self.observer, self.chance(wanted.key), at_s=at_s, until_s=LIMIT_S
        )
        assert case is not None, f"{home} does not take {wanted.key}"
        while not await self._has_ended(home, case):
            await asyncio.sleep(1.0)
        return self.loop.true_s - began_s

    async def _has_ended(self, domain: str, case: CaseId) -> bool:
        found = await self.stores[domain].truth.get(CASE_KIND, case)
        document = _decode_case(found.body) if found is not None else None
        assert document is None or document.live or document.status == "completed", f"{case}: {document}"
        return document is not None and not document.live


def play_routing(scene: RoutingScene) -> RoutingResult:
    """Run one policy under this seed to its end."""
    made: list[RoutingWorld] = []

    def make(folder: Path) -> RoutingWorld:
        made.append(RoutingWorld(scene, folder))
        return made[0]

    verdict = verdict_of(scene.seed, make)
    assert not verdict.violations, verdict.violations
    return made[0].result
