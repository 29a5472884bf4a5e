"""Several whole servers in one process, on one store in memory, each on a port of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.client import Client
from mendflow.formats.bpel.ports import PORTS, port_wsdl
from mendflow.server.access import AccessControl, AccessToken
from mendflow.server.app import create_app
from mendflow.server.peer_requests import PeerRequests
from mendflow.server.peers import HttpPeers
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.case_locator import CaseLocator
from mendflow.services.api.domain import Domain
from mendflow.services.api.peer_handler import PeerHandler
from mendflow.services.api.soap_endpoint import LocalSoapGateway
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import read_job

SERVERS_TOKEN = "the servers' own"
LEASE_MS = 7_500


class Shared(MemoryStore):
    """It outlives the servers that open and close it."""

    async def close(self) -> None: ...


class Citizen:
    """One server. `die` leaves it as a kill would: its port is closed, its beats end, and it says nothing."""

    def __init__(self, name: str, store: Shared, folder: Path, tokens: list[AccessToken]) -> None:
        self.name = name
        self.document = ServerDocument(id=name, url="", lease_ms=LEASE_MS)
        self.peers = HttpPeers()
        self.peers.introduce(SERVERS_TOKEN)
        file_store = FolderFileStore(folder / name)
        file_store.open()
        self.server = Server(
            store=store,
            file_store=file_store,
            clock=SystemClock(),
            meter=steady_ms,
            settings=ServerSettings(lease_ms=LEASE_MS),
            version="0",
            server=self.document,
            peers=self.peers,
            read_job=read_job,
        )
        self.domain = Domain(self.server)
        self.access = AccessControl(tokens, stored=self.server.access_tokens, servers_token=SERVERS_TOKEN)
        self.homes = CaseLocator(self.server)
        self.peer_requests = PeerRequests(self.homes.find, SERVERS_TOKEN)
        self.served: HttpServer
        self.dead = False

    async def open(self) -> None:
        await self.server.open()
        app = create_app(
            self.domain,
            access=self.access,
            let_go=self.server.answer_held,
            peer=PeerHandler(self.server),
            homes=self.homes,
            peer_requests=self.peer_requests,
            gateway=LocalSoapGateway(self.server, {name: port_wsdl(name) for name in PORTS}),
        )
        self.served = await serve(app)
        self.document.url = self.served.url

    @property
    def member(self) -> ServerMembership:
        assert isinstance(self.server.membership, ServerMembership)
        return self.server.membership

    @property
    def url(self) -> str:
        return self.served.url

    def client(self, token: str = "") -> Client:
        return Client(self.url, token)

    async def die(self) -> None:
        self.dead = True
        await self.member.drop()
        await self.served.stop()
        await self.server.runtime.stop()
        await self._close_lines()

    async def stop(self) -> None:
        if not self.dead:
            await self.served.stop()
            await self.server.close()
            await self._close_lines()

    async def _close_lines(self) -> None:
        await self.peer_requests.close()
        await self.peers.close()


async def until(holds: Callable[[], bool], patience_s: float = 20) -> None:
    async with asyncio.timeout(patience_s):
        while not holds():
            await asyncio.sleep(0.02)


def _reached(citizen: Citizen) -> list[ServerDocument]:
    return [server for server in citizen.member.live_servers() if server.url]


@asynccontextmanager
async def town(folder: Path, *names: str, tokens: list[AccessToken] | None = None) -> AsyncIterator[list[Citizen]]:
    """Servers that know each other."""
    store = Shared()
    async with AsyncExitStack() as stack:
        citizens = [Citizen(name, store, folder, tokens or []) for name in names]
        for citizen in citizens:
            await citizen.open()
            stack.push_async_callback(citizen.stop)
        await until(lambda: all(len(_reached(citizen)) == len(names) - 1 for citizen in citizens))
        yield citizens
