"""Simulated servers: the product's own services behind the same exchange that pilots use over HTTP."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.core.model.rules import RuleSet
from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.pilot.agent.server_link import SYNC_PATH
from mendflow.server.access import PEERS
from mendflow.server.peers import HttpPeers, PeerEndpoint
from mendflow.server.pilot_exchange import PilotExchangeHandler
from mendflow.services.api.domain import Domain
from mendflow.services.api.peer_handler import PeerHandler
from mendflow.services.base.cluster import PeerUnavailable, ServerDocument
from mendflow.services.runtime.server import NO_PATTERNS, Runtime, Server, ServerSettings
from mendflow.sim.contentless_file_store import ContentlessFileStore
from mendflow.sim.machines import Machine, VirtualProcess, WallClock
from mendflow.sim.network import Answer, Network, NoAnswer
from mendflow.sim.virtual_store import StoreConnection, VirtualStore

T = TypeVar("T")
START_PATH = "/start"
RESTART_S = 1.0
"""A server that could not start is restarted after this long, as a service manager would do."""


class SimStartRequest(msgspec.Struct):
    """A client's request for a case of this flow, once per key."""

    flow: Flow
    key: str


class VirtualServer:
    """`alone`: no other server is on the store."""

    def __init__(
        self,
        machine: Machine,
        network: Network,
        store: VirtualStore,
        chance: Random,
        rules: ServerSettings,
        *,
        alone: bool,
    ) -> None:
        self.machine = machine
        self._alone = alone
        self.name = machine.name
        self.address = f"http://{self.name}"
        self._network = network
        self._store = store
        self._chance = chance
        self.rules = rules
        self.process: VirtualProcess | None = None
        self.server: Server | None = None

    def start(self) -> None:
        """Start the server, if it does not run and its machine is there."""
        if self.machine.is_lost:
            return
        if self.process is None or not self.process.alive:
            self.server = None
            self.process = self.machine.start("server")
            self.process.spawn(self._live(self.process))

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def runtime(self) -> Runtime | None:
        """Its running services, if there are any."""
        try:
            return self.server.runtime if self.server is not None and self.alive else None
        except StoreUnavailable:
            return None

    async def _live(self, process: VirtualProcess) -> None:
        server = self._build(process)
        try:
            await server.open()
        except StoreUnavailable:
            self._restart_later(process)
            return
        self.server = server
        domain = Domain(server, chance=self._token)
        self._network.listen(self.address, process, self._router(server, domain).answer)

    def _shipped(self) -> RuleSet | None:
        return default_rules() if self.rules.recovery else None

    def _router(self, server: Server, domain: Domain) -> "RequestRouter":
        return RequestRouter(server, domain)

    def _build(self, process: VirtualProcess, **more: Any) -> Server:
        return Server(
            store=StoreConnection(self._store, process),
            file_store=ContentlessFileStore(),
            clock=WallClock(self.machine),
            settings=self.rules,
            version="virtual",
            server=None if self._alone else self._document(),
            shipped=self._shipped(),
            patterns=default_patterns() if self.rules.recovery else NO_PATTERNS,
            peers=VirtualPeers(self._network, process),
            meter=self.machine.boot_ms,
            **more,
        )

    def _document(self) -> ServerDocument:
        return ServerDocument(id=self.name, url=self.address, host=self.name, meter=self.machine.boot_name)

    def _restart_later(self, process: VirtualProcess) -> None:
        loop = self.machine.loop
        loop.at(loop.true_s, process.kill)
        loop.at(loop.true_s + RESTART_S, self.start)

    def _token(self, size: int) -> str:
        return self._chance.randbytes(size).hex()


class VirtualPeers(HttpPeers):
    """Calls to other servers, over the simulated network."""

    def __init__(self, network: Network, process: VirtualProcess) -> None:
        super().__init__()
        self._network = network
        self._process = process

    async def _ask(self, server: ServerDocument, what: str, message: object, type: type[T], patience_s: float) -> T:
        body, path = msgspec.msgpack.encode(message), f"{PEERS}{what}"
        try:
            status, answer = await self._network.call(self._process, server.url, path, body, patience_s)
        except NoAnswer as error:
            raise PeerUnavailable(str(error)) from None
        if status != 200:
            raise PeerUnavailable(f"it answered {status}: {answer.decode(errors='replace')}")
        return msgspec.msgpack.decode(answer, type=type)


class RequestRouter:
    """Routes requests from the network to their handlers."""

    def __init__(self, server: Server, domain: Domain) -> None:
        self._domain = domain
        self._exchange = PilotExchangeHandler(domain, server.answer_held)
        self._peers = PeerEndpoint(PeerHandler(server))

    async def answer(self, path: str, body: bytes, hung_up: asyncio.Event) -> Answer:
        if path == SYNC_PATH:
            return await _Request(path, body, hung_up).send_to(self._pilots)
        if path.startswith(PEERS):
            return await _Request(path, body, hung_up).send_to(self._peers)
        assert path == START_PATH
        try:
            return 200, (await self._start(msgspec.json.decode(body, type=SimStartRequest))).encode()
        except RequestError as error:
            return error.status, error.message.encode()

    async def _pilots(self, scope: Any, receive: Any, send: Any) -> None:
        await self._exchange(scope, receive, send, "local")

    async def _start(self, wanted: SimStartRequest) -> str:
        await self._domain.deploy(wanted.flow)
        return (await self._domain.start(wanted.flow.name, {}, who="client", key=wanted.key)).id


class _Request:
    """One HTTP request, as a server passes it to its application."""

    def __init__(self, path: str, body: bytes, hung_up: asyncio.Event) -> None:
        self._scope = {"type": "http", "path": path}
        self._body: bytes | None = body
        self._hung_up = hung_up
        self._status = 0
        self._answer = b""

    async def send_to(self, application: Callable[..., Any]) -> Answer:
        await application(self._scope, self._receive, self._send)
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
