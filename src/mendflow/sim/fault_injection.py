"""Injects faults at random moments and for random durations; all end with the fault phase.

Each kind is a method; which occur, and how often, follows from the seed. After the fault phase all killed processes are
started, stopped ones continue, and all connections work again."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import Protocol

from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import VirtualProcess
from mendflow.sim.network import Network
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import VirtualServer
from mendflow.sim.virtual_store import VirtualStore

FUSE_STEPS_MAX = 400
"""A process is hit at one of its next so many steps, in the middle of something."""

WRITING = "server stopped that is about to write"
"""Occurs only on request: a situation that is otherwise seen once in dozens of runs."""

KINDS_SHARE = 0.5
"""How many kinds of faults occur in one run."""


class FaultTarget(Protocol):
    """What faults are injected into."""

    loop: VirtualLoop
    network: Network
    store: VirtualStore
    counts: FaultCounts
    servers: list[VirtualServer]
    pilots: list[VirtualPilot]
    lease_s: float

    def tell(self, line: str) -> None: ...


class FaultInjector:
    """`only` are the kinds of faults to inject; by default they are drawn."""

    def __init__(
        self, world: FaultTarget, chance: Random, *, period_s: float, faults: int, only: Collection[str] = ()
    ) -> None:
        self._world = world
        self._chance = chance
        self._period_s = period_s
        self._faults = faults
        self._only = only
        self._lost_for_good: set[VirtualPilot] = set()
        self._kinds: list[tuple[str, Callable[[], Awaitable[None]], int]] = [
            ("server killed", self._kill_server, 4),
            ("server stopped", self._stop_server, 7),
            ("agent killed", self._kill_agent, 2),
            ("agent stopped", self._stop_agent, 2),
            ("slot killed", self._kill_slot, 2),
            ("slot stopped", self._stop_slot, 2),
            ("pilot stopped", self._stop_pilot, 3),
            ("machine of a pilot lost", self._lose_machine, 3),
            ("machine of a pilot lost for good", self._lose_for_good, 1),
            ("cut between pilot and server", self._cut_pilot, 4),
            ("cut between servers", self._cut_servers, 3),
            ("cut between server and store", self._cut_store, 3),
            ("bad lines", self._bad_lines, 4),
            ("store slow", self._slow_store, 2),
            ("store failing", self._failing_store, 5),
            ("store away", self._store_away, 1),
        ]
        if WRITING in only:
            self._kinds.append((WRITING, self._stop_writing_server, 1))
        if unknown := {*only} - {name for name, *_ in self._kinds}:
            raise ValueError(f"there are no faults of the kind {', '.join(sorted(unknown))}")

    def _draw_kinds(self) -> list[tuple[str, Callable[[], Awaitable[None]], float]]:
        """Each run has its own mix: some kinds do not occur, others occur more often. A uniform mixture would hide
        problems that need many faults of one kind."""
        chance = self._chance
        drawn = [(name, inject, weight * chance.uniform(0.2, 3.0)) for name, inject, weight in self._kinds]
        kept = [each for each in drawn if (each[0] in self._only if self._only else chance.random() < KINDS_SHARE)]
        return kept or drawn

    async def inject_all(self) -> None:
        """Run to the end of the fault phase, and until everything is repaired."""
        kinds = self._draw_kinds()
        moments = sorted(self._chance.uniform(0.2, self._period_s) for _ in range(self._faults))
        loop = self._world.loop
        hits = []
        for moment in moments:
            await asyncio.sleep(max(0.0, moment - loop.true_s))
            name, inject, _ = self._chance.choices(kinds, [weight for *_, weight in kinds])[0]
            hits.append(loop.create_task(self._inject(name, inject)))
        await asyncio.gather(*hits)
        self._end_faults()

    async def _inject(self, name: str, inject: Callable[[], Awaitable[None]]) -> None:
        self._world.counts.add(f"fault: {name}")
        self._world.tell(f"fault: {name}")
        await inject()

    def _end_faults(self) -> None:
        self._world.tell("the fault phase is over")
        for server in self._world.servers:
            if server.process is not None:
                _release(server.process)
            server.start()
        for pilot in self._world.pilots:
            for process in pilot.processes:
                _release(process)
            if pilot not in self._lost_for_good:
                pilot.start()

    # durations

    async def _sleep_leases(self, shortest: float, longest: float) -> None:
        """Sleep for a number of leases, never beyond the end of the fault phase by more than that."""
        await asyncio.sleep(self._chance.uniform(shortest, longest) * self._world.lease_s)

    def _server(self) -> VirtualServer:
        return self._chance.choice(self._world.servers)

    def _pilot(self) -> VirtualPilot:
        return self._chance.choice(self._world.pilots)

    def _at_awkward_moment(self, process: VirtualProcess, happen: Callable[[], None]) -> None:
        """Now, or between any two of its next steps, or just before it writes or answers."""
        kind = self._chance.random()
        if kind < 0.25:
            happen()
        elif kind < 0.65:
            process.trap = (self._chance.choice(("journal", "journal", "write", "answer")), happen)
        else:
            process.fuse = (self._chance.randint(0, FUSE_STEPS_MAX), happen)

    # servers

    async def _kill_server(self) -> None:
        server = self._server()
        if server.process is not None:
            self._at_awkward_moment(server.process, server.process.kill)
        await self._sleep_leases(0.01, 1.2)
        server.start()

    async def _stop_server(self) -> None:
        process = self._server().process
        if process is not None:
            self._at_awkward_moment(process, process.stop)
            await self._sleep_leases(0.05, 2.0)
            _release(process)

    async def _stop_writing_server(self) -> None:
        """Stop it just before it writes, for longer than the others take to declare it dead."""
        process = self._server().process
        if process is not None:
            process.trap = (self._chance.choice(("journal", "journal", "write")), process.stop)
            await self._sleep_leases(0.6, 1.6)
            _release(process)

    # pilots

    async def _kill_agent(self) -> None:
        pilot = self._pilot()
        if pilot.agent is not None:
            self._at_awkward_moment(pilot.agent, pilot.agent.kill)
        await self._sleep_leases(0.01, 1.5)
        if pilot not in self._lost_for_good:
            pilot.start()

    async def _stop_agent(self) -> None:
        process = self._pilot().agent
        if process is not None:
            self._at_awkward_moment(process, process.stop)
            await self._sleep_leases(0.1, 2.0)
            _release(process)

    async def _kill_slot(self) -> None:
        slots = [slot for slot in self._pilot().slots.values() if slot.process.alive]
        if slots:
            self._chance.choice(slots).process.kill()

    async def _stop_slot(self) -> None:
        slots = [slot for slot in self._pilot().slots.values() if slot.process.alive]
        if slots:
            process = self._chance.choice(slots).process
            process.stop()
            await self._sleep_leases(0.1, 2.0)
            process.resume()

    async def _stop_pilot(self) -> None:
        """Stop agent and slots at once, usually for longer than a lease."""
        processes = self._pilot().processes
        for process in processes:
            process.stop()
        await self._sleep_leases(0.2, 2.5)
        for process in self._chance.sample(processes, len(processes)):
            process.resume()
            await asyncio.sleep(self._chance.uniform(0, 0.01))

    async def _lose_machine(self) -> None:
        pilot = self._pilot()
        pilot.machine.power_off()
        await self._sleep_leases(0.05, 2.0)
        if not pilot.processes and pilot not in self._lost_for_good:
            pilot.machine.boot()
            pilot.start()

    async def _lose_for_good(self) -> None:
        """Its jobs must run elsewhere; half of the pilots always remain."""
        pilot = self._pilot()
        if len(self._lost_for_good) < len(self._world.pilots) // 2:
            self._lost_for_good.add(pilot)
            pilot.machine.power_off()

    # networks

    async def _cut_pilot(self) -> None:
        await self._cut(self._pilot().name, self._server().name)

    async def _cut_servers(self) -> None:
        if len(self._world.servers) > 1:
            one, other = self._chance.sample(self._world.servers, 2)
            await self._cut(one.name, other.name)

    async def _cut(self, one: str, other: str) -> None:
        network = self._world.network
        network.cut(one, other, both=self._chance.random() < 0.6)
        await self._sleep_leases(0.05, 1.8)
        network.mend(one, other)

    async def _cut_store(self) -> None:
        name = self._server().name
        self._world.store.cut.add(name)
        await self._sleep_leases(0.05, 3.0)
        self._world.store.cut.discard(name)

    async def _bad_lines(self) -> None:
        faults, chance = self._world.network.faults, self._chance
        faults.drop_share = chance.choice((0.0, 0.02, 0.1, 0.3))
        faults.late_share = chance.choice((0.0, 0.02, 0.1, 0.3))
        faults.double_share = chance.choice((0.0, 0.02, 0.1, 0.3))
        faults.late_s = (0.01, chance.uniform(0.1, 1.5) * self._world.lease_s)
        await self._sleep_leases(0.1, 3.0)
        faults.drop_share = faults.late_share = faults.double_share = 0.0

    # the store

    async def _slow_store(self) -> None:
        faults = self._world.store.faults
        faults.slow_share = self._chance.choice((0.02, 0.1, 0.5))
        faults.slow_s = (0.01, self._chance.uniform(0.1, 1.0) * self._world.lease_s)
        await self._sleep_leases(0.1, 2.0)
        faults.slow_share = 0.0

    async def _failing_store(self) -> None:
        faults = self._world.store.faults
        faults.fail_share = self._chance.choice((0.02, 0.1, 0.3))
        await self._sleep_leases(0.1, 2.0)
        faults.fail_share = 0.0

    async def _store_away(self) -> None:
        faults = self._world.store.faults
        faults.away = True
        await self._sleep_leases(0.05, 0.8)
        faults.away = False


def _release(process: VirtualProcess) -> None:
    """Inject nothing more into it, and continue it if it was stopped."""
    process.fuse = process.trap = None
    process.resume()
