"""Servers of the imagined world: the product's own services under their own roof, behind the same exchange that pilots
meet over HTTP."""

import asyncio
import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import PilotId
from mendflow.core.model.problems import Mistake, StoreUnavailable
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import PilotView
from mendflow.pilot.link import SYNC_PATH
from mendflow.server.pilots import Exchange
from mendflow.services.cluster.contract import NeighbourAway, ServerDocument
from mendflow.services.house import House, HouseRules, Services
from mendflow.services.local_domain import LocalDomain
from mendflow.sim.disk import Disk, DiskLine
from mendflow.sim.machines import Machine, Process, WallClock
from mendflow.sim.network import Answer, Network, Unreached

START_PATH = "/start"
PASS_PATH = "/neighbours/sync"
NUDGE_PATH = "/neighbours/nudge"
NEIGHBOUR_S = 5.0
RESTART_S = 1.0
"""A server that could not start is started again after this long, as whoever keeps services running would."""

_encode = msgspec.msgpack.Encoder().encode


class Start(msgspec.Struct):
    """What a client asks for: a case of this flow, once for each key."""

    flow: Flow
    key: str


class NoFiles:
    """A keeper for a world without files."""

    async def keep(self, name: str, chunks: Any, *, sha256: str = "") -> FileRef:
        raise NotImplementedError

    async def keep_path(self, path: str) -> FileRef:
        raise NotImplementedError

    def kept(self, sha256: str) -> Any:
        raise NotImplementedError

    async def size(self, sha256: str) -> int | None:
        return None


class VirtualServer:
    """`alone`: no other server is on the store."""

    def __init__(
        self, machine: Machine, network: Network, disk: Disk, chance: Random, rules: HouseRules, *, alone: bool
    ) -> None:
        self.machine = machine
        self._alone = alone
        self.name = machine.name
        self.address = f"http://{self.name}"
        self._network = network
        self._disk = disk
        self._chance = chance
        self._rules = rules
        self.process: Process | None = None
        self.house: House | None = None

    def start(self) -> None:
        """Start the server, if it does not run."""
        if self.process is None or not self.process.alive:
            self.house = None
            self.process = self.machine.start("server")
            self.process.spawn(self._live(self.process))

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def services(self) -> Services | None:
        """Its living services, if it has any just now."""
        try:
            return self.house.services if self.house is not None and self.alive else None
        except StoreUnavailable:
            return None

    async def _live(self, process: Process) -> None:
        house = House(
            store=DiskLine(self._disk, process),
            keeper=NoFiles(),
            clock=WallClock(self.machine),
            rules=self._rules,
            version="virtual",
            server=None if self._alone else ServerDocument(id=self.name, url=self.address, host=self.name),
            neighbours=Lines(self._network, process),
            meter=self.machine.boot_ms,
        )
        try:
            await house.open()
        except StoreUnavailable:
            self._again(process)
            return
        self.house = house
        domain = LocalDomain(house, chance=self._token)
        exchange = Exchange(domain, house.let_go)
        self._network.listen(self.address, process, Desk(house, domain, exchange).answer)

    def _again(self, process: Process) -> None:
        loop = self.machine.loop
        loop.at(loop.true_s, process.kill)
        loop.at(loop.true_s + RESTART_S, self.start)

    def _token(self, size: int) -> str:
        return self._chance.randbytes(size).hex()


class Passed(msgspec.Struct, array_like=True):
    """A pilot's request that another server passes on."""

    request: SyncRequest
    who: str


class Nudge(msgspec.Struct, array_like=True):
    pilots: list[PilotId]
    work: bool
    by: str


_decode_passed = msgspec.msgpack.Decoder(Passed).decode
_decode_nudge = msgspec.msgpack.Decoder(Nudge).decode
_decode_answer = msgspec.msgpack.Decoder(SyncAnswer).decode


class Lines:
    """The way to other servers, over the imagined lines."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        body = _encode(Passed(request, who))
        try:
            status, answer = await self._network.call(self._process, server.url, PASS_PATH, body, NEIGHBOUR_S)
        except Unreached as error:
            raise NeighbourAway(str(error)) from None
        if status != 200:
            raise NeighbourAway(f"it answered {status}: {answer.decode(errors='replace')}")
        return _decode_answer(answer)

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        return []

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        body = _encode(Nudge(pilots, work, by))
        with contextlib.suppress(Unreached):
            await self._network.call(self._process, server.url, NUDGE_PATH, body, NEIGHBOUR_S)


class Desk:
    """What comes over the line, brought to whom it is meant for."""

    def __init__(self, house: House, domain: LocalDomain, exchange: Exchange) -> None:
        self._house = house
        self._domain = domain
        self._exchange = exchange

    async def answer(self, path: str, body: bytes, hung_up: asyncio.Event) -> Answer:
        if path == SYNC_PATH:
            return await _Request(body, hung_up).put_to(self._exchange)
        try:
            return 200, await self._do(path, body)
        except Mistake as mistake:
            return mistake.status, mistake.message.encode()

    async def _do(self, path: str, body: bytes) -> bytes:
        if path == PASS_PATH:
            passed = _decode_passed(body)
            return _encode(await self._domain.sync(passed.request, who=passed.who))
        if path == NUDGE_PATH:
            nudge = _decode_nudge(body)
            self._house.services.exchange.nudged(nudge.pilots, work=nudge.work, by=nudge.by)
            return b""
        assert path == START_PATH
        wanted = msgspec.json.decode(body, type=Start)
        await self._domain.deploy(wanted.flow)
        view = await self._domain.start(wanted.flow.name, {}, who="client", key=wanted.key)
        return view.id.encode()


class _Request:
    """One HTTP request, as a server hands it to its application."""

    def __init__(self, body: bytes, hung_up: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._hung_up = hung_up
        self._status = 0
        self._answer = b""

    async def put_to(self, application: Callable[..., Any]) -> Answer:
        await application({"type": "http", "path": SYNC_PATH}, self._receive, self._send, "local")
        return self._status, self._answer

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._answer += message["body"]
