"""What one bad thing may not do: take everything else along."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.engine import evolve_new as real
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.flow import Call, JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import Put, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S, until
from tests.services.conftest import HandPilot, server_on
from tests.services.test_domain import named, start


class FullStore(MemoryStore):
    """A store with no room as long as it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.refused = 0

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if self.full:
            self.refused += 1
            raise StoreUnavailable("the disk is full")
        return await super().write(writes)


async def test_a_disk_that_stays_full_is_tried_by_one_repairer_and_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendflow.services.runtime.server._FIRST_RETRY_MS", 5)
    monkeypatch.setattr("mendflow.services.runtime.server._LONGEST_RETRY_MS", 20)
    store = FullStore()
    server = server_on(store, tmp_path)
    await server.open()
    domain = Domain(server)
    case = await start(domain, named(JobActivity(name="a", command="x")))
    store.full = True
    with pytest.raises(StoreUnavailable):
        await domain.start("f", {}, who="me")
    await until(lambda: store.refused >= 3, "the third try")
    assert store.refused <= 120, "one try after another, not one beside the other"
    assert sum("_rebuild" in repr(task.get_coro()) for task in asyncio.all_tasks()) == 1
    store.full = False
    async with asyncio.timeout(PATIENCE_S):
        while server.health().status != "ok":
            await asyncio.sleep(0.01)
    await HandPilot(domain).run_all(lambda spec: Outcome())
    assert (await domain.case(case)).status == "completed"
    await server.close()


async def test_a_wall_clock_that_was_set_back_while_the_server_was_away_is_survived(tmp_path: Path) -> None:
    store = MemoryStore()
    ahead = SystemClock()
    ahead.catch_up(ahead.now() + 86_400_000)
    first = server_on(store, tmp_path)
    first.clock = ahead
    await first.open()
    case = await start(Domain(first), named(JobActivity(name="a", command="x")))
    await first.close()
    second = server_on(store, tmp_path)
    await second.open()
    assert second.clock.now() >= ahead.now() - 60_000
    domain = Domain(second)
    await HandPilot(domain).run_all(lambda spec: Outcome())
    assert (await domain.case(case)).status == "completed"
    await second.close()


async def test_a_case_that_cannot_go_on_fails_and_no_other_does(
    server: Server, domain: Domain, pilot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await start(domain, named(JobActivity(name="a", command="x")))
    good = await start(domain, named(JobActivity(name="a", command="x")))

    def evolve_new(case: Any, event: Any) -> Any:
        if case.id == bad:
            raise MemoryError("too large")
        return real(case, event)

    monkeypatch.setattr("mendflow.services.cases.event_recorder.evolve_new", evolve_new)
    await pilot.run_all(lambda spec: Outcome())
    assert (await domain.case(good)).status == "completed"
    failed = await domain.case(bad)
    assert failed.status == "failed"
    assert failed.fault is not None and "MemoryError" in failed.fault.message
    assert server.health().status == "ok"


async def test_one_unreadable_document_does_not_keep_the_server_from_starting(tmp_path: Path) -> None:
    store = MemoryStore()
    first = server_on(store, tmp_path)
    await first.open()
    case = await start(Domain(first), named(JobActivity(name="a", command="x")))
    await first.close()
    await store.open()
    await store.write([Put("flow", "broken", b"{}", 0), Put("case", "odd", b'{"id": 5}', 0)])
    await store.close()
    second = server_on(store, tmp_path)
    await second.open()
    domain = Domain(second)
    assert [flow.name for flow in await domain.flows()] == ["f"]
    await HandPilot(domain).run_all(lambda spec: Outcome())
    assert (await domain.case(CaseId(case))).status == "completed"
    await second.close()


async def test_a_flow_that_calls_itself_without_end_fails_and_fills_nothing(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendflow.services.cases.called_cases.LEVELS_MAX", 8)
    case = await start(domain, named(Call(name="again", flow="f")))
    async with asyncio.timeout(PATIENCE_S):
        while (view := await domain.case(case)).status == "running":
            await asyncio.sleep(0.01)
    assert view.status == "failed"
    assert view.fault is not None and "8 levels deep" in view.fault.message
    assert len(await domain.cases()) == 9
