"""Pilots of the imagined world: the product's own agent and link, on slots that are not processes.

A pilot's machine has an agent, which can be killed and started anew while its slots go on; slots, which can be killed
and stopped one by one; and a disk, here a folder, that outlives them all."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mendflow.core.model.sync import Capacity
from mendflow.pilot.agent import Agent
from mendflow.pilot.crew import Crew
from mendflow.pilot.home import Home
from mendflow.pilot.http import Address, Exchanges, Files, ServerAway, ServerRefused
from mendflow.pilot.link import SYNC_PATH, Link
from mendflow.pilot.servers import Servers
from mendflow.pilot.slots import SlotLink
from mendflow.pilot.staging import Staging
from mendflow.pilot.vigil import SILENT_MS
from mendflow.pilot.wire import FromSlot
from mendflow.sim.machines import Machine, Process
from mendflow.sim.network import Network, Unreached
from mendflow.sim.slots import Nature, VirtualSlot

LOOK_AFTER_S = 0.25
"""How often an agent looks after its slots; a real one does so a little more often."""


class VirtualPilot:
    """One machine with a pilot. `servers` are the addresses that it was given when it was set up."""

    def __init__(
        self, machine: Machine, network: Network, nature: Nature, folder: Path, servers: list[str], *, slots: int
    ) -> None:
        self.machine = machine
        self.network = network
        self.nature = nature
        self.name = machine.name
        self.servers = servers
        self.home = Home(folder)
        self.home.make()
        self.capacity = Capacity(slots=slots, cpus=float(slots), memory_bytes=1 << 34, disk_bytes=1 << 34)
        self.slots: dict[int, VirtualSlot] = {}
        self.agent: Process | None = None
        self._starts = 0

    def start(self) -> None:
        """Start an agent, if there is none."""
        if self.agent is None or not self.agent.alive:
            self._starts += 1
            self.agent = self.machine.start("agent")
            self.agent.spawn(self._live(self.agent))

    @property
    def processes(self) -> list[Process]:
        """All of its processes that live, the agent first."""
        slots = [slot.process for slot in self.slots.values() if slot.process.alive]
        return [*([self.agent] if self.agent is not None and self.agent.alive else []), *slots]

    async def _live(self, process: Process) -> None:
        """What a real pilot's main does, without the processes, the signals and the sockets."""
        boot_ms = self.machine.boot_ms
        servers = Servers(",".join(self.servers), "", self.home.servers)
        exchanges = VirtualExchanges(self.network, process, servers.address.url)
        servers.moved = exchanges.move
        staging = Staging(self.home, Files(servers.address))
        crew = partial(VirtualCrew, self, process)
        agent = Agent(self.home, self.name, self.capacity, staging, keep=False, crew=crew, boot_ms=boot_ms)
        link = Link(
            agent,
            exchanges,
            pilot=self.name,
            site="",
            capacity=self.capacity,
            first_serial=self._starts << 32,
            life_left_ms=lambda: 0,
            others=servers,
            host=self.name,
            boot_ms=boot_ms,
            wall_ms=boot_ms,
        )
        await agent.start()
        process.spawn(self._look_after(agent))
        await link.converse()

    async def _look_after(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(LOOK_AFTER_S)
            await agent.look_after()


class VirtualExchanges(Exchanges):
    """The pilot's connections, over the imagined line."""

    def __init__(self, network: Network, process: Process, server: str) -> None:
        self._network = network
        self._process = process
        self._server = server

    def move(self, address: Address) -> None:
        self._server = address.url

    def close(self) -> None: ...

    async def post(self, body: bytes, timeout_s: float) -> bytes:
        try:
            status, answer = await self._network.call(self._process, self._server, SYNC_PATH, body, timeout_s)
        except Unreached as error:
            raise ServerAway(str(error)) from None
        if status in (502, 503, 504):
            raise ServerAway(f"the server answered {status}: {answer[:200].decode(errors='replace')}")
        if status >= 300:
            raise ServerRefused(status, answer[:500].decode(errors="replace"))
        return answer


class VirtualCrew(Crew):
    """The same crew, whose slots are found and started in the imagined machine."""

    def __init__(
        self,
        pilot: VirtualPilot,
        process: Process,
        home: Home,
        name: str,
        slots: int,
        *,
        keep: bool,
        hear: Callable[[SlotLink, FromSlot], None],
        lose: Callable[[SlotLink], None],
    ) -> None:
        super().__init__(home, name, slots, keep=keep, hear=hear, lose=lose, now_ms=pilot.machine.boot_ms)
        self._host = pilot
        self._process = process

    async def adopt(self) -> bool:
        """Find the slots that an earlier agent has left. Those that stand still are told to go on."""
        for number, slot in sorted(self._host.slots.items()):
            if slot.process.alive:
                slot.process.go_on()
                link = SlotLink(number, self._hear, self._lost, self.now_ms)
                slot.connect(self._process, link)
                if await self._greeted(link):
                    self.links[number] = link
        return bool(self.links)

    async def start(self, number: int) -> None:
        if self.ending or number >= self._slots or number in self.links:
            return
        host = self._host
        slot = host.slots[number] = VirtualSlot(host.machine, host.home, number, host.name, host.nature)
        link = self.links[number] = SlotLink(number, self._hear, self._lost, self.now_ms)
        slot.connect(self._process, link)

    def look_after(self) -> None:
        """A slot with work that stands still is told to go on."""
        now = self.now_ms()
        for number, link in self.links.items():
            slot = self._host.slots[number]
            if link.holds and slot.process.stopped and now - link.heard_at > SILENT_MS:
                slot.process.go_on()

    def _lost(self, link: SlotLink) -> None:
        if not self.ending and self.links.get(link.number) is link:
            del self.links[link.number]
            self._lose(link)

    async def end(self) -> None:
        self.ending = True
        for number in list(self.links):
            self._host.slots[number].process.kill()
