"""Homes of trees of cases on a server that is alone: written first, deleted last, and all that a start looks at."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.cluster import HOME_KIND
from mendflow.services.base.cluster_terms import cluster_terms
from mendflow.services.base.homes import LAYOUT_KIND
from mendflow.stores.contract import Delete, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.recovery.kit import flow

ONE = flow(JobActivity(name="a", command="true"))


class WatchedStore(MemoryStore):
    """Notes which kinds are looked through from beginning to end."""

    def __init__(self) -> None:
        super().__init__()
        self.scanned: list[str] = []

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        if not prefix:
            self.scanned.append(kind)
        async for found in super().scan(kind, prefix):
            yield found


async def homes(store: MemoryStore) -> list[str]:
    return [found.id async for found in store.scan(HOME_KIND)]


async def test_a_case_has_a_home_until_it_is_over(tmp_path: Path) -> None:
    store = MemoryStore()
    server = server_on(store, tmp_path)
    await server.open()
    domain = Domain(server)
    await domain.deploy(ONE)
    case = (await domain.start("f", {}, who="me")).id
    assert await homes(store) == [case]
    await HandPilot(domain).run_all(lambda _: Outcome())
    await server.runtime.ledger.settled()
    assert await homes(store) == []
    await server.close()


async def test_cases_that_are_older_than_homes_are_claimed_at_the_start(tmp_path: Path) -> None:
    store = MemoryStore()
    server = server_on(store, tmp_path)
    await server.open()
    await Domain(server).deploy(ONE)
    case = (await Domain(server).start("f", {}, who="me")).id
    await server.close()
    await store.open()
    for kind, id in ((HOME_KIND, case), (LAYOUT_KIND, HOME_KIND)):
        found = await store.get(kind, id)
        assert found is not None
        await store.write([Delete(kind, id, found.version)])
    server = server_on(store, tmp_path)
    await server.open()
    assert await homes(store) == [case]
    assert (await Domain(server).case(case)).status == "running"
    await HandPilot(Domain(server)).run_all(lambda _: Outcome())
    assert (await Domain(server).case(case)).status == "completed"
    await server.close()


async def test_a_start_does_not_look_through_all_cases_and_jobs_that_ever_were(tmp_path: Path) -> None:
    store = WatchedStore()
    for _ in range(2):
        store.scanned.clear()
        server = server_on(store, tmp_path)
        await server.open()
        await server.close()
    assert HOME_KIND in store.scanned
    assert not {"case", "job", "decision", "item", "conversation", "task"} & set(store.scanned)


@pytest.mark.parametrize("lease_ms", [1_000, 3_000, 10_000, 30_000, 60_000, 600_000])
def test_whatever_the_lease_the_last_promise_is_known_to_end_within_five_seconds_more(lease_ms: int) -> None:  # JS-9
    terms = cluster_terms(lease_ms)
    assert 2 * terms.beat_ms + terms.promise_ms <= 5_000
    assert 2 * terms.beat_ms < terms.promise_ms
    assert terms.promise_ms + 2 * terms.beat_ms < terms.takeover_ms
