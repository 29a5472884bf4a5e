from collections.abc import AsyncIterator

import pytest

from mendflow.stores.memory import MemoryStore
from tests.services.provisioning.kit import Batch, HandClock, Server, SlowStore


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def batch(clock: HandClock) -> Batch:
    return Batch(clock)


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = SlowStore()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def server(store: MemoryStore, clock: HandClock, batch: Batch) -> AsyncIterator[Server]:
    server = Server(store, clock, batch)
    server.ledger.start()
    yield server
    await server.monitor.stop()
    await server.ledger.stop()
