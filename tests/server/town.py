"""Several whole servers in one process, on one store in memory, each on a port of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mendflow.client import Client
from mendflow.formats.bpel.ports import PORTS, port_wsdl
from mendflow.server.access import Access, Token
from mendflow.server.app import create_app
from mendflow.server.passing import Passing
from mendflow.server.peers import HttpNeighbours
from mendflow.server.runner import Served, serve
from mendflow.services.api.case_locator import Whereabouts
from mendflow.services.api.local_domain import LocalDomain
from mendflow.services.api.peer_handler import Counterpart
from mendflow.services.api.soap_endpoint import LocalOffice
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cluster.membership import ServerMembership
from mendflow.services.runtime.server import House, HouseRules
from mendflow.stores.files import FolderKeeper
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import read_job

SERVERS_TOKEN = "the servers' own"
LEASE_MS = 7_500


class Shared(MemoryStore):
    """It outlives the servers that open and close it."""

    async def close(self) -> None: ...


class Citizen:
    """One server. `die` leaves it as a kill would: its port is closed, its beats end, and it says nothing."""

    def __init__(self, name: str, store: Shared, folder: Path, tokens: list[Token]) -> None:
        self.name = name
        self.document = ServerDocument(id=name, url="", lease_ms=LEASE_MS)
        self.neighbours = HttpNeighbours()
        self.neighbours.introduce(SERVERS_TOKEN)
        keeper = FolderKeeper(folder / name)
        keeper.open()
        self.house = House(
            store=store,
            keeper=keeper,
            clock=SystemClock(),
            meter=steady_ms,
            rules=HouseRules(lease_ms=LEASE_MS),
            version="0",
            server=self.document,
            neighbours=self.neighbours,
            read_job=read_job,
        )
        self.domain = LocalDomain(self.house)
        self.access = Access(tokens, servers_token=SERVERS_TOKEN)
        self.where = Whereabouts(self.house)
        self.passing = Passing(self.where.find, SERVERS_TOKEN)
        self.served: Served
        self.dead = False

    async def open(self) -> None:
        await self.house.open()
        app = create_app(
            self.domain,
            access=self.access,
            let_go=self.house.let_go,
            peer=Counterpart(self.house),
            where=self.where,
            passing=self.passing,
            office=LocalOffice(self.house, {name: port_wsdl(name) for name in PORTS}),
        )
        self.served = await serve(app)
        self.document.url = self.served.url

    @property
    def member(self) -> ServerMembership:
        assert isinstance(self.house.membership, ServerMembership)
        return self.house.membership

    @property
    def url(self) -> str:
        return self.served.url

    def client(self, token: str = "") -> Client:
        return Client(self.url, token)

    async def die(self) -> None:
        self.dead = True
        await self.member.drop()
        await self.served.stop()
        await self.house.services.stop()
        await self._close_lines()

    async def stop(self) -> None:
        if not self.dead:
            await self.served.stop()
            await self.house.close()
            await self._close_lines()

    async def _close_lines(self) -> None:
        await self.passing.close()
        await self.neighbours.close()


async def until(holds: Callable[[], bool], patience_s: float = 20) -> None:
    async with asyncio.timeout(patience_s):
        while not holds():
            await asyncio.sleep(0.02)


def _reached(citizen: Citizen) -> list[ServerDocument]:
    return [server for server in citizen.member.living() if server.url]


@asynccontextmanager
async def town(folder: Path, *names: str, tokens: list[Token] | None = None) -> AsyncIterator[list[Citizen]]:
    """Servers that know each other."""
    store = Shared()
    async with AsyncExitStack() as stack:
        citizens = [Citizen(name, store, folder, tokens or []) for name in names]
        for citizen in citizens:
            await citizen.open()
            stack.push_async_callback(citizen.stop)
        await until(lambda: all(len(_reached(citizen)) == len(names) - 1 for citizen in citizens))
        yield citizens
