"""What goes wrong between domains, and with a domain as a whole: lines that are cut, full disks, an administrator who
disconnects by force, a peer of another version, a domain that is paused, and one that is gone for ever. All but the
last ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final, Protocol

from mendflow.sim.domains.servers import DomainServer, PeerTrouble
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.network import Network
from mendflow.sim.pilots import VirtualPilot
from mendflow.sim.servers import VirtualServer
from mendflow.sim.virtual_store import VirtualStore

LEASES: Final = (0.3, 1.0, 3.0, 8.0)
"""How long a fault lasts: for a moment, or for longer than any lease on work in another domain."""


class FaultyDomain(Protocol):
    """A domain that faults are injected into."""

    name: str
    store: VirtualStore
    servers: list[VirtualServer]
    pilots: list[VirtualPilot]
    trouble: PeerTrouble


class DomainFaults:
    def __init__(
        self,
        places: Sequence[FaultyDomain],
        network: Network,
        counts: FaultCounts,
        tell: Callable[[str], None],
        *,
        lease_s: float,
        period_s: float,
    ) -> None:
        self._places = places
        self._network = network
        self._loop: VirtualLoop = network.loop
        self._counts = counts
        self._tell = tell
        self._lease_s = lease_s
        self._period_s = period_s

    async def inject_cuts(self, chance: Random, number: int) -> None:
        """Cut domains off from each other so often."""
        await self._inject(chance, [self._cut] * number)

    async def inject_others(self, chance: Random, number: int) -> None:
        """Inject so many of the other faults."""
        kinds = (self._fill_disk, self._disconnect, self._change_version, self._pause)
        await self._inject(chance, [chance.choice(kinds) for _ in range(number)])

    async def lose(self, place: FaultyDomain, at_s: float) -> None:
        """A domain is gone, and never comes back."""
        await asyncio.sleep(at_s)
        self._note("domain gone for ever", place.name)
        for server in place.servers:
            server.machine.lose()
        for pilot in place.pilots:
            pilot.machine.lose()

    async def _inject(self, chance: Random, faults: Sequence[Callable[[Random], Awaitable[None]]]) -> None:
        running = []
        for moment, fault in zip(sorted(chance.uniform(0.5, self._period_s) for _ in faults), faults, strict=True):
            await asyncio.sleep(max(0.0, moment - self._loop.true_s))
            running.append(asyncio.ensure_future(fault(chance)))
        await asyncio.gather(*running)

    def _note(self, kind: str, what: str) -> None:
        self._counts.add(f"fault: {kind}")
        self._tell(f"fault: {kind}: {what}")

    async def _sleep(self, chance: Random) -> None:
        await asyncio.sleep(chance.choice(LEASES) * self._lease_s)

    async def _cut(self, chance: Random) -> None:
        one, other = chance.sample(self._places, 2)
        both = chance.random() < 0.5
        self._note(f"domains cut off from each other, {'both ways' if both else 'one way'}", f"{one.name} {other.name}")
        lines = [(a.name, b.name) for a in one.servers for b in other.servers]
        for a, b in lines:
            self._network.cut(a, b, both=both)
        await self._sleep(chance)
        for a, b in lines:
            self._network.mend(a, b)

    async def _fill_disk(self, chance: Random) -> None:
        """Everything can be read, and nothing can be written."""
        place = chance.choice(self._places)
        self._note("disk of a domain full", place.name)
        place.store.faults.full = True
        await self._sleep(chance)
        place.store.faults.full = False

    async def _disconnect(self, chance: Random) -> None:
        """An administrator disconnects another domain by force, and connects it again later."""
        place, other = chance.sample(self._places, 2)
        self._note("domain disconnected by force", f"{place.name} disconnects {other.name}")
        place.trouble.disconnected.add(other.name)
        place.trouble.dropped.add(other.name)
        for server in chance.sample(place.servers, len(place.servers)):
            if isinstance(server, DomainServer) and server.disconnect(other.name):
                break
        await self._sleep(chance)
        place.trouble.disconnected.discard(other.name)

    async def _change_version(self, chance: Random) -> None:
        """A domain speaks a version that the others do not know, or says things that they do not know."""
        place, is_understood = chance.choice(self._places), chance.random() < 0.5
        self._note(f"peer of another version, {'understood' if is_understood else 'refused'}", place.name)
        place.trouble.version = "more fields" if is_understood else "newer"
        await self._sleep(chance)
        place.trouble.version = ""

    async def _pause(self, chance: Random) -> None:
        """All processes of a domain are stopped and continue, in any order."""
        place = chance.choice(self._places)
        self._note("domain paused", place.name)
        processes = [each.process for each in place.servers if each.process is not None]
        processes += [process for pilot in place.pilots for process in pilot.processes]
        for process in processes:
            process.stop()
        await self._sleep(chance)
        for process in chance.sample(processes, len(processes)):
            process.resume()
            await asyncio.sleep(chance.uniform(0, 0.01))
