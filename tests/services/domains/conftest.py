from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.services.domains.neighbours import LocalLines, Neighbour

Settle = Callable[[str], Awaitable[Neighbour]]


@pytest.fixture
def lines() -> LocalLines:
    return LocalLines()


@pytest.fixture
async def settle(tmp_path: Path, lines: LocalLines) -> AsyncIterator[Settle]:
    """Starts a domain of this name."""
    async with AsyncExitStack() as stack:

        async def start(name: str) -> Neighbour:
            made = Neighbour(lines, tmp_path, name)
            await made.server.open()
            stack.push_async_callback(made.server.close)
            return made

        yield start


@pytest.fixture
async def north(settle: Settle) -> Neighbour:
    return await settle("north")


@pytest.fixture
async def south(settle: Settle) -> Neighbour:
    return await settle("south")
