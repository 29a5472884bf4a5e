"""A whole server for the tests of SOAP, in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from mendflow.client import Client
from mendflow.wiring import RunningServer, ServerOptions, running_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running_server(ServerOptions(data=tmp_path / "data", announce=False)) as running:
        yield running


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[Client]:
    async with Client(server.url) as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session
