"""A domain, a server before it on a free port, and clients of that server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.core.model.ids import PilotId
from mendflow.server.access import Access
from mendflow.server.app import create_app
from mendflow.server.runner import Served, serve
from mendflow.services.api.local_domain import LocalDomain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import House, HouseRules
from mendflow.stores.files import FolderKeeper
from mendflow.stores.memory import MemoryStore


class Serving(Protocol):
    async def __call__(self, access: Access = ..., *, file_bytes_max: int = ...) -> Served: ...


class DomainUnderTest(LocalDomain):
    """The domain that the product serves, which can be asked to answer what it holds."""

    def let_go(self, pilot: PilotId | None) -> None:
        self._house.let_go(pilot)


@asynccontextmanager
async def opened(data: Path) -> AsyncIterator[DomainUnderTest]:
    """A domain on a store in memory, with its files in this folder."""
    keeper = FolderKeeper(data / "files")
    house = House(store=MemoryStore(), keeper=keeper, clock=SystemClock(), rules=HouseRules(), version="0")
    await house.open()
    keeper.open()
    try:
        yield DomainUnderTest(house)
    finally:
        await house.close()


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[DomainUnderTest]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def serving(domain: DomainUnderTest) -> AsyncIterator[Serving]:
    """Starts servers of the domain, and stops them in the end."""
    async with AsyncExitStack() as stack:

        async def start(access: Access | None = None, *, file_bytes_max: int = 1 << 20) -> Served:
            app = create_app(domain, access=access or Access(), let_go=domain.let_go, file_bytes_max=file_bytes_max)
            served = await serve(app)
            stack.push_async_callback(served.stop)
            return served

        yield start


@pytest.fixture
async def served(serving: Serving) -> Served:
    """A server without tokens."""
    return await serving()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served.url, user="ann") as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session
