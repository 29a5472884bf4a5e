"""The same tests on both stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.services.recovery.kit import World

RULES = ServerSettings(files_roots=None, levels_ms=(60, 120), check_ms=30)


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    world = World(store, tmp_path, RULES)
    await world.server.open()
    yield world
    await world.server.close()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[World]:
    """Where the store makes no difference."""
    world = World(MemoryStore(), tmp_path, RULES)
    await world.server.open()
    yield world
    await world.server.close()
