"""A domain, a server before it on a free port, and clients of that server."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.ids import PilotId
from mendflow.formats.bpel.ports import PORTS, port_wsdl
from mendflow.server.access import AccessControl
from mendflow.server.app import create_app
from mendflow.server.runner import HttpServer, serve
from mendflow.services.api.domain import Domain
from mendflow.services.api.soap_endpoint import LocalSoapGateway
from mendflow.services.base.clock import SystemClock
from mendflow.services.domains.file_origins import FileOrigins
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.server.other_account import NOBODY
from tests.server.people import PEOPLE, As, clients_of


class Serving(Protocol):
    async def __call__(self, access: AccessControl = ..., *, file_bytes_max: int = ...) -> HttpServer: ...


class DomainUnderTest(Domain):
    """The domain that the product serves, which can be asked to answer what it holds."""

    def let_go(self, pilot: PilotId | None) -> None:
        self._server.answer_held(pilot)

    @property
    def soap_gateway(self) -> LocalSoapGateway:
        return LocalSoapGateway(self._server, {name: port_wsdl(name) for name in PORTS})

    @property
    def file_origins(self) -> FileOrigins:
        return self._server.runtime.file_origins


@asynccontextmanager
async def opened(data: Path) -> AsyncIterator[DomainUnderTest]:
    """A domain on a store in memory, with its files in this folder."""
    file_store = FolderFileStore(data / "files")
    server = Server(
        store=MemoryStore(), file_store=file_store, clock=SystemClock(), settings=ServerSettings(), version="0"
    )
    await server.open()
    file_store.open()
    try:
        yield DomainUnderTest(server)
    finally:
        await server.close()


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[DomainUnderTest]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def serving(domain: DomainUnderTest) -> AsyncIterator[Serving]:
    """Starts servers of the domain, and stops them in the end."""
    async with AsyncExitStack() as stack:

        async def start(access: AccessControl | None = None, *, file_bytes_max: int = 1 << 20) -> HttpServer:
            app = create_app(
                domain,
                access=access or AccessControl(),
                let_go=domain.let_go,
                gateway=domain.soap_gateway,
                file_bytes_max=file_bytes_max,
            )
            served = await serve(app)
            stack.push_async_callback(served.stop)
            return served

        yield start


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    """A server without tokens."""
    return await serving()


@pytest.fixture
async def client(served: HttpServer) -> AsyncIterator[Client]:
    async with Client(served.url, user="ann") as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def people(served: HttpServer) -> AsyncIterator[As]:
    """Clients of the people of people.py. The server of the module has to know them."""
    async with clients_of(PEOPLE, served) as clients:
        yield clients


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> int:
    """An account that does not run the server. Who may not become another one lets the server believe that it runs
    under another."""
    if os.geteuid() == 0:
        return NOBODY
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    return -1
