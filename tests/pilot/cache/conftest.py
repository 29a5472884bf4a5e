"""Pilots in processes of their own, with a server that lets them share."""

from collections.abc import AsyncIterator

import pytest

from tests.pilot.cache.sharing import SharingServer
from tests.pilot.conftest import hire

__all__ = ["hire", "server"]


@pytest.fixture
async def server() -> AsyncIterator[SharingServer]:
    server = SharingServer()
    await server.up()
    yield server
    await server.down()
