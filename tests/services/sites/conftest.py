from collections.abc import AsyncIterator

import pytest

from mendflow.stores.memory import MemoryStore
from tests.services.sites.kit import Batch, HandClock, SiteServer, SlowStore


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
async def site_server(store: MemoryStore, clock: HandClock, batch: Batch) -> AsyncIterator[SiteServer]:
    site_server = SiteServer(store, clock, batch)
    site_server.ledger.start()
    yield site_server
    await site_server.monitor.stop()
    await site_server.ledger.stop()
