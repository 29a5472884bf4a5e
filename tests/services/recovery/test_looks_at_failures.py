"""What the store is asked about failures: of many together, and not of each."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, flow

READS_MAX = 8


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads = Counter[str]()

    async def search(self, kind: str, where: Sequence[FieldCondition] = (), **more: Any) -> list[StoredDocument]:
        self.reads[f"search {kind}"] += 1
        return await super().search(kind, where, **more)

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        self.reads[f"get {kind}"] += 1
        return await super().get(kind, id)

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        self.reads[f"get_many {kind}"] += 1
        return await super().get_many(kind, ids)

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        self.reads[f"statuses {kind}"] += 1
        return await super().statuses(kind, ids)


@pytest.fixture
async def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
async def world(store: CountingStore, tmp_path: Path) -> AsyncIterator[World]:
    never = MonitorSettings(look_ms=24 * 3_600_000)  # by itself: the tests look
    made = World(store, tmp_path, ServerSettings(files_roots=None, monitor=never))
    await made.server.open()
    yield made
    await made.server.close()


async def fails(world: World, name: str) -> CaseId:
    """A failure that has an alert of its own."""
    case = await world.start(flow(JobActivity(name=name, command="true")))
    await world.take()
    await world.report(**{name: FAILED})
    await world.until_status(case, "failed")
    return case


async def test_all_failures_that_were_told_are_looked_at_together(world: World, store: CountingStore) -> None:
    # UI-1, FM-8
    cases = [await fails(world, f"a{number}") for number in range(12)]
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    assert sorted(each.case for each in await world.domain.alerts()) == sorted(cases)
    store.reads.clear()
    await world.runtime.monitor.look()
    assert store.reads.total() <= READS_MAX, store.reads
    await world.domain.rerun(cases[3], who="me")
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    assert sorted(each.case for each in await world.domain.alerts()) == sorted({*cases} - {cases[3]})


async def test_what_keeps_alerts_from_being_closed_at_once_is_logged(
    world: World, store: CountingStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # UI-1: whatever it is, and the next look closes them
    case = await fails(world, "a")
    await world.runtime.ledger.settled()

    async def broken(kind: str, where: Sequence[FieldCondition] = (), **more: Any) -> list[StoredDocument]:
        if kind == "decision":
            raise ValueError("not a decision")
        return await CountingStore.search(store, kind, where, **more)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "mendflow.monitor"):
        patched.setattr(store, "search", broken)
        world.runtime.monitor.went_on(case)
        async with asyncio.timeout(10):
            while "not a decision" not in caplog.text:
                await asyncio.sleep(0.01)
    assert "alerts that are over stay until the next look" in caplog.text
    await world.domain.rerun(case, who="me")
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    assert await world.domain.alerts() == []


async def test_what_is_shown_of_a_cause_is_read_together(world: World, store: CountingStore) -> None:  # EX-7, UI-1
    cases = {await fails(world, "a") for _ in range(5)}
    [group] = await world.domain.failures()
    store.reads.clear()
    shown = await world.domain.failure(group.id)
    assert {each.case for each in shown.samples} == cases
    assert not store.reads["get decision"], store.reads
