"""Simulated pilots: the product's own agent and server link, on simulated slots.

A pilot's machine has an agent, which can be killed and restarted while its slots continue; slots, which can be killed
and stopped one by one; and a disk, here a folder, that survives them all."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mendflow.core.model.sync import Capacity
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.http import ExchangeClient, FileClient, ServerAddress, ServerAway, ServerRefused
from mendflow.pilot.agent.server_link import SYNC_PATH, ServerLink
from mendflow.pilot.agent.servers import ServerAddresses
from mendflow.pilot.agent.slot_health import SILENT_MS
from mendflow.pilot.agent.slot_link import SlotLink
from mendflow.pilot.agent.slot_pool import SlotPool
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.messages import FromSlot
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.sim.machines import Machine, VirtualProcess
from mendflow.sim.network import Network, NoAnswer
from mendflow.sim.slots import OutcomeModel, VirtualSlot

LOOK_AFTER_S = 0.25
"""How often an agent checks its slots; a real one does so a little more often."""


class VirtualPilot:
    """One machine with a pilot. `servers` are the addresses that it was configured with."""

    def __init__(
        self,
        machine: Machine,
        network: Network,
        outcomes: OutcomeModel,
        folder: Path,
        servers: list[str],
        *,
        slots: int,
    ) -> None:
        self.machine = machine
        self.network = network
        self.outcomes = outcomes
        self.name = machine.name
        self.servers = servers
        self.work_folder = WorkFolder(folder)
        self.work_folder.make()
        self.capacity = Capacity(slots=slots, cpus=float(slots), memory_bytes=1 << 34, disk_bytes=1 << 34)
        self.slots: dict[int, VirtualSlot] = {}
        self.agent: VirtualProcess | None = None
        self._starts = 0

    def start(self) -> None:
        """Start an agent, if there is none and its machine is there."""
        if self.machine.is_lost:
            return
        if self.agent is None or not self.agent.alive:
            self._starts += 1
            self.agent = self.machine.start("agent")
            self.agent.spawn(self._live(self.agent))

    @property
    def processes(self) -> list[VirtualProcess]:
        """All its live processes, the agent first."""
        slots = [slot.process for slot in self.slots.values() if slot.process.alive]
        return [*([self.agent] if self.agent is not None and self.agent.alive else []), *slots]

    async def _live(self, process: VirtualProcess) -> None:
        """What a real pilot's main does, without processes, signals and sockets."""
        boot_ms = self.machine.boot_ms
        servers = ServerAddresses(",".join(self.servers), "", self.work_folder.servers)
        exchanges = VirtualExchangeClient(self.network, process, servers.address.url)
        servers.on_move = exchanges.move
        staging = FileStager(self.work_folder, FileClient(servers.address))
        slot_pool = partial(VirtualSlotPool, self, process)
        agent = Agent(self.work_folder, self.name, self.capacity, staging, slot_pool=slot_pool, boot_ms=boot_ms)
        link = ServerLink(
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
        process.spawn(self._maintain(agent))
        await link.run_exchanges()

    async def _maintain(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(LOOK_AFTER_S)
            await agent.maintain()


class VirtualExchangeClient(ExchangeClient):
    """The pilot's connections, over the simulated network."""

    def __init__(self, network: Network, process: VirtualProcess, server: str) -> None:
        self._network = network
        self._process = process
        self._server = server

    def move(self, address: ServerAddress) -> None:
        self._server = address.url

    def close(self) -> None: ...

    async def post(self, body: bytes, timeout_s: float) -> bytes:
        try:
            status, answer = await self._network.call(self._process, self._server, SYNC_PATH, body, timeout_s)
        except NoAnswer as error:
            raise ServerAway(str(error)) from None
        if status in (502, 503, 504):
            raise ServerAway(f"the server answered {status}: {answer[:200].decode(errors='replace')}")
        if status >= 300:
            raise ServerRefused(status, answer[:500].decode(errors="replace"))
        return answer


class VirtualSlotPool(SlotPool):
    """The product's slot pool, with simulated slots."""

    def __init__(
        self,
        pilot: VirtualPilot,
        process: VirtualProcess,
        work_folder: WorkFolder,
        name: str,
        slots: int,
        *,
        settings: SlotSettings,
        on_message: Callable[[SlotLink, FromSlot], None],
        on_lost: Callable[[SlotLink], None],
    ) -> None:
        super().__init__(
            work_folder,
            name,
            slots,
            settings=settings,
            on_message=on_message,
            on_lost=on_lost,
            now_ms=pilot.machine.boot_ms,
        )
        self._host = pilot
        self._process = process

    async def adopt(self) -> bool:
        """Find the slots that an earlier agent left. Stopped ones are continued."""
        for number, slot in sorted(self._host.slots.items()):
            if slot.process.alive:
                slot.process.resume()
                link = SlotLink(number, self._on_message, self._handle_lost, self.now_ms)
                slot.connect(self._process, link)
                if await self._wait_for_hello(link):
                    self.links[number] = link
        return bool(self.links)

    async def start(self, number: int) -> None:
        if self.ending or number >= self._slots or number in self.links:
            return
        host = self._host
        slot = host.slots[number] = VirtualSlot(host.machine, host.work_folder, number, host.name, host.outcomes)
        link = self.links[number] = SlotLink(number, self._on_message, self._handle_lost, self.now_ms)
        slot.connect(self._process, link)

    def maintain(self) -> None:
        """Continue slots that have work and are stopped."""
        now = self.now_ms()
        for number, link in self.links.items():
            slot = self._host.slots[number]
            if link.holds and slot.process.stopped and now - link.last_message_at > SILENT_MS:
                slot.process.resume()

    def _handle_lost(self, link: SlotLink) -> None:
        if not self.ending and self.links.get(link.number) is link:
            del self.links[link.number]
            self._on_lost(link)

    async def end(self) -> None:
        self.ending = True
        for number in list(self.links):
            self._host.slots[number].process.kill()
