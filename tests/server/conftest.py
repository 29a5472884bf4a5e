"""A domain, a server before it on a free port, and clients of that server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Protocol

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.server.access import Access
from mendflow.server.app import create_app
from mendflow.server.runner import Served, serve
from mendflow.services.domain import Domain
from tests.server.memory_domain import MemoryDomain


class Serving(Protocol):
    async def __call__(self, access: Access = ..., *, file_bytes_max: int = ...) -> Served: ...


@pytest.fixture
def domain() -> Domain:
    return MemoryDomain()


@pytest.fixture
async def serving(domain: Domain) -> AsyncIterator[Serving]:
    """Starts servers of the domain, and stops them in the end."""
    async with AsyncExitStack() as stack:

        async def start(access: Access | None = None, *, file_bytes_max: int = 1 << 20) -> Served:
            let_go = getattr(domain, "let_go", None)
            app = create_app(domain, access=access or Access(), let_go=let_go, file_bytes_max=file_bytes_max)
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
