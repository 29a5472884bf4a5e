from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.services.runtime.server import HouseRules
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite import SqliteStore
from tests.services.exceptions.kit import World


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    world = World(store, tmp_path, HouseRules(files_roots=None))
    await world.house.open()
    yield world
    await world.house.close()
