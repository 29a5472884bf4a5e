"""A run of prune goes on only while its server can say so: another server would begin one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import Conflict, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.retention import PruneRequest, PruneView
from mendflow.services.retention.pruned_cases import PRUNED_KIND, RUN_KIND, PrunedCases, PrunedDocument
from mendflow.stores.contract import Put, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.retention.kit import OLD, Shelf


class SlowStore(MemoryStore):
    """Cases are read only when `go_on` is set. So many writes of a run fail as `away` says."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.given_up = asyncio.Event()
        self.away = 0

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        async for found in super().scan(kind, prefix):
            yield found

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if self.away and any(isinstance(each, Put) and each.kind == RUN_KIND for each in writes):
            self.away -= 1
            raise StoreUnavailable("the store is away")
        return await super().write(writes)


@pytest.fixture
async def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shelf]:
    monkeypatch.setattr("mendflow.services.retention.service.RENEW_MS", 5)
    store, files = SlowStore(), FolderFileStore(tmp_path)
    await store.open()
    files.open()
    shelf = Shelf(store, files, tmp_path)
    yield shelf
    await shelf.close()


def store_of(shelf: Shelf) -> SlowStore:
    assert isinstance(shelf.store, SlowStore)
    return shelf.store


async def test_a_run_that_another_server_has_taken_over_ends(shelf: Shelf) -> None:  # DU-6
    await shelf.case("f-1")
    await shelf.retention.prune(PruneRequest(rules=[OLD]), who="me")
    store = store_of(shelf)
    found = await store.get(RUN_KIND, "current")
    assert found is not None
    other = PruneView(id="another", server="s-2", renewed_at=shelf.clock.now())
    while not isinstance(
        (await store.write([Put(RUN_KIND, "current", msgspec.json.encode(other), found.version)]))[0], WriteDone
    ):
        found = await store.get(RUN_KIND, "current")
        assert found is not None
    async with asyncio.timeout(PATIENCE_S):
        await store.given_up.wait()
    store.go_on.set()
    assert (await shelf.retention.run("another")).server == "s-2" and await shelf.cases() == ["f-1"]


async def test_a_run_that_cannot_be_renewed_for_long_fails(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mendflow.services.retention.service.SILENT_MS", 40)
    await shelf.case("f-1")
    await shelf.retention.prune(PruneRequest(rules=[OLD]), who="me")
    store_of(shelf).away = 1_000_000
    async with asyncio.timeout(PATIENCE_S):
        await store_of(shelf).given_up.wait()


async def test_a_run_goes_on_when_the_store_was_away_for_a_moment(shelf: Shelf) -> None:  # DU-6
    await shelf.case("f-1")
    view = await shelf.retention.prune(PruneRequest(rules=[OLD]), who="me")
    store_of(shelf).away = 2
    async with asyncio.timeout(PATIENCE_S):
        while (await shelf.retention.run(view.id)).renewed_at == view.renewed_at:
            await asyncio.sleep(0.005)
        store_of(shelf).go_on.set()
        while (await shelf.retention.run(view.id)).state == "running":
            await asyncio.sleep(0.005)
    assert (await shelf.retention.run(view.id)).cases == 1


async def test_a_note_that_another_prune_changes_at_the_same_time_is_not_passed_over() -> None:
    class Contested(MemoryStore):
        async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
            found = await super().get_many(kind, ids)
            await self.write([Put(PRUNED_KIND, "f-1", b'{"by":"another"}', found[0].version if found else 0)])
            return found

    store = Contested()
    await store.open()
    note = PrunedDocument(id=CaseId("f-1"), flow="f", status="failed", started_at=0, ended_at=1, pruned_at=2)
    with pytest.raises(Conflict, match="another server prunes case f-1"):
        await PrunedCases(store).put([note])
