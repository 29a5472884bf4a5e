"""One run of several domains, from a seed to a verdict.

Each domain has a store, a server or two, and pilots. Its clients start flows, whose jobs are scattered over all
domains. Everything goes wrong in each domain that can go wrong in one, and between them, and with a domain as a whole.
After that everything that was acknowledged must end, except in a domain that is gone for ever."""

import asyncio
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from mendflow.core.model.flow import Activity, Call, Flow, JobActivity, Parallel, Sequence, Wait
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import ServerSettings
from mendflow.sim.clients import start_until_accepted
from mendflow.sim.domains.domain_faults import DomainFaults
from mendflow.sim.domains.observer import DomainObserver
from mendflow.sim.domains.servers import DomainServer, PeerTrouble
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.fault_injection import FaultInjector
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Machine, machine_with_clock
from mendflow.sim.network import Network
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import SimStartRequest, VirtualServer
from mendflow.sim.virtual_store import VirtualStore
from mendflow.sim.workload import USUAL_S, command
from mendflow.sim.world import RunVerdict, verdict_of
from mendflow.stores.contract import Write

NAMES: Final = ("north", "south", "west")
FAULTS: Final = (0, 4, 8, 16)
SETTLE_S: Final = 240.0
GONE_SHARE: Final = 0.15
"""In how many runs a domain goes for ever."""
_decode_case: Final = msgspec.json.Decoder(CaseDocument).decode


class DomainScene(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run. Everything else follows from the seed."""

    seed: int
    domains: int = 2
    servers: int = 1  # of each domain
    pilots: int = 2  # of each domain
    jobs: int = 20
    long_s: float = 2 * USUAL_S[1]  # the longest jobs
    calls: int = 3
    lease_ms: int = 3_000
    fault_period_s: float = 40.0
    faults: int = -1
    cuts: int = -1  # between domains
    troubles: int = -1  # of other kinds, of domains as a whole
    gone: bool | None = None  # whether the last domain goes for ever; None: drawn


class DomainPlace:
    """One domain, and what faults are injected into."""

    def __init__(self, world: "DomainWorld", name: str, folder: Path) -> None:
        scene = world.scene
        self.name = name
        self.loop, self.network, self.counts = world.loop, world.network, world.counts
        self.lease_s = scene.lease_ms / 1_000
        self.tell = world.observer.tell
        self.store = VirtualStore(world.loop, world.chance(f"disk {name}"), world.counts, self._written)
        self._world = world
        self.trouble = PeerTrouble()
        rules = ServerSettings(
            lease_ms=scene.lease_ms,
            domain_lease_ms=4 * scene.lease_ms,
            losses_max=1_000,
            recovery=True,
            domain=name,
        )
        others = {each: world.addresses(each) for each in NAMES[: scene.domains] if each != name}
        self.servers: list[VirtualServer] = [
            DomainServer(
                name,
                others,
                world.machine(machine),
                world.network,
                self.store,
                world.chance(f"names {machine}"),
                rules,
                alone=scene.servers == 1,
                trouble=self.trouble,
            )
            for machine in world.machines(name)
        ]
        chance = world.chance(f"pilots {name}")
        self.pilots = [
            VirtualPilot(
                world.machine(f"{name}-pilot-{n}"),
                world.network,
                world.observer,
                folder / f"{name}-{n}",
                world.addresses(name),
                slots=chance.randint(1, 4),
            )
            for n in range(scene.pilots)
        ]

    def _written(self, write: Write, by: str) -> None:
        self._world.observer.on_write(self.name, write, by)


class DomainWorld:
    def __init__(self, scene: DomainScene, folder: Path, *, story: bool = False) -> None:
        self.scene = scene
        self.loop = VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world
        self.counts = FaultCounts()
        self.observer = DomainObserver(lambda: self.loop.true_s, self.counts)
        self.observer.story = [] if story else None
        self.network = Network(self.loop, self.chance("lines"), self.counts)
        self._machines = self.chance("machines")
        self.places = [DomainPlace(self, name, folder) for name in NAMES[: scene.domains]]
        self.acknowledged: dict[tuple[str, CaseId], str] = {}
        self.tokens: dict[str, str] = {}  # by token: the domain whose flow it belongs to
        self.settle_s = 0.0
        gone = self.chance("gone").random() < GONE_SHARE if scene.gone is None else scene.gone
        self.gone = self.places[-1].name if gone else ""
        self._faults = DomainFaults(
            self.places,
            self.network,
            self.counts,
            self.observer.tell,
            lease_s=scene.lease_ms / 1_000,
            period_s=scene.fault_period_s,
        )
        for place in self.places:
            self.observer.dropped[place.name] = place.trouble.dropped

    def chance(self, what: str) -> Random:
        return Random(f"{self.scene.seed} {what}")

    def machines(self, domain: str) -> list[str]:
        return [f"{domain}-{n}" for n in range(1, self.scene.servers + 1)]

    def addresses(self, domain: str) -> list[str]:
        return [f"http://{machine}" for machine in self.machines(domain)]

    def machine(self, name: str) -> Machine:
        return machine_with_clock(self.loop, name, self._machines)

    async def play(self) -> None:
        chance, storm = self.chance("storm"), []
        for place in self.places:
            for server in place.servers:
                server.start()
            for pilot in place.pilots:
                pilot.start()
            faults = self.scene.faults if self.scene.faults >= 0 else chance.choice(FAULTS)
            own = Random(chance.random())
            storm.append(FaultInjector(place, own, period_s=self.scene.fault_period_s, faults=faults).inject_all())
        cuts = self.scene.cuts if self.scene.cuts >= 0 else chance.choice((0, 1, 2, 4))
        storm.append(self._faults.inject_cuts(chance, cuts))
        chance = self.chance("domains")
        troubles = self.scene.troubles if self.scene.troubles >= 0 else chance.choice((0, 0, 1, 2, 4))
        storm.append(self._faults.inject_others(Random(chance.random()), troubles))
        if self.gone:
            at_s = chance.uniform(0.1, self.scene.fault_period_s)
            storm.append(self._faults.lose(self.places[-1], at_s))
        await asyncio.gather(*storm, *self._clients())
        self.observer.tell("the fault phase is over")
        await self._settle()
        await self._check_at_end()

    # Clients

    def _clients(self) -> list["asyncio.Task[None]"]:
        chance, tasks, left, number = self.chance("clients"), list["asyncio.Task[None]"](), self.scene.jobs, 0
        while left > 0:
            jobs = min(left, chance.randint(2, 8))
            left, number = left - jobs, number + 1
            place = chance.choice([each for each in self.places if each.name != self.gone])
            wanted = SimStartRequest(self._flow(place.name, number, jobs, chance), f"key-{number}")
            at_s = chance.uniform(0.1, self.scene.fault_period_s / 2)
            tasks.append(self.loop.create_task(self._client(place, wanted, at_s)))
        return tasks

    def _flow(self, domain: str, number: int, jobs: int, chance: Random) -> Flow:
        """Jobs in steps; and some calls of flows that are to run in another domain."""
        steps: list[Activity] = []
        called: list[Flow] = []
        names = [each.name for each in self.places if each.name not in (domain, self.gone)] if number > 1 else []
        for step in range(0, jobs, 3):
            branches: list[Activity] = [
                self._job(f"f{number}j{step + n}", domain, chance) for n in range(min(3, jobs - step))
            ]
            if chance.random() < 0.3 and len(called) < self.scene.calls and names:
                inner = f"flow-{number}-sub-{step}"
                body = tuple(self._job(f"f{number}c{step}n{n}", domain, chance) for n in range(2))
                called.append(Flow(name=FlowName(inner), body=Sequence(name="inner", body=body)))
                branches.append(Call(name=f"call{step}", flow=inner, domain=chance.choice(names)))
            steps.append(Parallel(name=f"step-{step}", branches=tuple(branches)))
            if chance.random() < 0.3:
                steps.append(Wait(name=f"pause-{step}", duration=chance.randint(10, 3_000)))
        return Flow(
            name=FlowName(f"flow-{number}"), body=Sequence(name="steps", body=tuple(steps)), calls=tuple(called)
        )

    def _job(self, token: str, domain: str, chance: Random) -> JobActivity:
        text, failures = command(chance, self.scene.long_s)
        if "c" not in token:
            self.tokens[token] = domain
        wait_ms = chance.choice((0, 100, 1_000))
        return JobActivity(name=token, command=f"{text} {token}", retries=failures, retry_wait_ms=wait_ms)

    async def _client(self, place: DomainPlace, wanted: SimStartRequest, at_s: float) -> None:
        case = await start_until_accepted(
            wanted,
            place.servers,
            self.network,
            self.observer,
            self.chance(wanted.key),
            at_s=at_s,
            until_s=self.scene.fault_period_s + SETTLE_S,
        )
        if case is not None:
            self.acknowledged[(place.name, case)] = wanted.key

    # The end

    async def _settle(self) -> None:
        began_s = self.loop.true_s
        while self.loop.true_s < began_s + SETTLE_S:
            self.settle_s = self.loop.true_s - began_s
            cases = [await self._case(place, case) for place, case in self.acknowledged]
            if all(each is not None and not each.live for each in cases) and not self._unacknowledged():
                return
            await asyncio.sleep(0.5)

    def _unacknowledged(self) -> list[str]:
        """Outcomes that a host keeps although their origin has them."""
        return [
            document.id
            for (domain, _), document in self.observer.hosted.items()
            if not document.over and not document.stopped and self.gone not in (domain, document.origin)
        ]

    async def _case(self, domain: str, case: CaseId) -> CaseDocument | None:
        place = next(each for each in self.places if each.name == domain)
        found = await place.store.truth.get(CASE_KIND, case)
        return _decode_case(found.body) if found is not None else None

    async def _check_at_end(self) -> None:
        for place, case in self.acknowledged:
            found = await self._case(place, case)
            if found is None or found.status != "completed":
                state = (
                    f"{found.status} ({found.fault.message if found.fault else ''})" if found is not None else "gone"
                )
                self.observer.report_violation("nothing is lost", f"case {case} of {place} is {state}")
        if not self.observer.violations:
            self.observer.check_outcomes(self.tokens)
        if left := self._unacknowledged():
            self.observer.report_violation("outcomes are acknowledged", f"{left[:3]} are kept for nobody")


def play_domains(scene: DomainScene, *, story: bool = False) -> RunVerdict:
    """Run the simulation of this seed to its end."""
    return verdict_of(scene.seed, lambda folder: DomainWorld(scene, folder, story=story))
