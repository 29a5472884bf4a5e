"""Histories of long journals: replayed beside the server, the same as those that it replays itself, and of the last
entries no more is read than they need."""  # EX-6

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence, Stage, UserTask
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.services.api import case_history
from mendflow.services.api.domain import Domain
from mendflow.services.observe import long_journals
from mendflow.services.observe.journal_reader import is_order
from mendflow.services.observe.long_journals import LongJournals
from tests.services.test_repairs import ran, rules_for

TURNS = 12


@pytest.fixture
def aside(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> LongJournals:
    """The domain's server has a process for every journal."""
    monkeypatch.setattr(long_journals, "LONG_ENTRIES", 1)
    monkeypatch.setattr(long_journals, "ENTRIES_AT_ONCE", 5)
    monkeypatch.setattr(case_history, "BESIDE", 2)
    domain._server.long_journals = LongJournals(aside=True)
    return domain._server.long_journals


def mixed() -> Flow:
    turns = ForEach(
        name="loop", items=list(range(TURNS)), body=JobActivity(name="a", command="true"), on_fault="finish"
    )
    asked = UserTask(name="asked", role="editor")
    return Flow(name=FlowName("f"), body=Sequence(name="all", body=(turns, asked)))


async def case_of(domain: Domain, pilot: Any, mended: str = "fault.exit_code == 7") -> str:
    await domain.put_rules(rules_for("f", again=mended, touch="fault.exit_code == 9"), who="ann")
    return await ran(domain, pilot, mixed())


async def test_a_long_journal_is_told_as_a_short_one(domain: Domain, pilot: Any, aside: LongJournals) -> None:
    case = await case_of(domain, pilot)
    whole = await domain.history(case)
    assert aside.pid is not None
    domain._server.long_journals = LongJournals(aside=False)
    assert whole == await domain.history(case)
    await aside.stop()


async def test_the_last_entries_are_those_of_the_whole_history(domain: Domain, pilot: Any, aside: LongJournals) -> None:
    case = await case_of(domain, pilot)
    whole = await domain.history(case)
    assert {"began", "failed", "decided", "repaired", "completed"} <= {each.what for each in whole}
    for last in range(1, len(whole) + 3):
        assert await domain.history(case, last=last) == whole[-last:], last
    await aside.stop()


async def test_who_looks_again_has_only_what_came_since_replayed(
    domain: Domain, pilot: Any, aside: LongJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = await case_of(domain, pilot, mended="true")
    before = await domain.history(case)
    asked = list[int]()
    read = domain._server.store.read

    async def counted(stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        found = await read(stream, start, limit)
        asked.extend(range(start, start + len(found)) if stream == f"case/{case}" else [])
        return found

    monkeypatch.setattr(domain._server.store, "read", counted)
    pid = aside.pid
    await domain.suspend(case, who="me")
    after = await domain.history(case)
    assert (aside.pid, [each.what for each in after[len(before) :]]) == (pid, ["suspended"])
    assert len(asked) <= 2, "the journal was read again"
    await aside.stop()


async def test_a_process_that_is_killed_is_nobodys_loss(domain: Domain, pilot: Any, aside: LongJournals) -> None:
    case = await case_of(domain, pilot)
    whole = await domain.history(case)
    killed = aside.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert await domain.history(case) == whole
    assert await domain.history(case) == whole
    assert aside.pid not in (None, killed)
    await aside.stop()
    assert aside.pid is None


async def test_a_brief_history_is_the_whole_one_without_orders_and_replays_nothing(
    domain: Domain, pilot: Any, aside: LongJournals
) -> None:
    case = await case_of(domain, pilot, mended="true")
    [task] = await domain.worklist(case=case)
    await domain.complete(task.id, {}, who="me")
    brief = await domain.history(case, brief=True)
    assert aside.pid is None, "the journal was replayed"
    whole = [each for each in await domain.history(case) if not is_order(each)]
    assert {"started", "began", "failed", "decided", "repaired", "completed"} <= {each.what for each in brief}
    assert [(each.what, each.item, each.by, each.source) for each in brief] == [
        (each.what, each.item, each.by, each.source) for each in whole
    ]
    for last in range(1, len(brief) + 3):
        assert await domain.history(case, last=last, brief=True) == brief[-last:], last
    await aside.stop()


async def test_where_no_document_tells_of_an_item_the_journal_is_replayed(
    domain: Domain, pilot: Any, aside: LongJournals
) -> None:
    case = await case_of(domain, pilot)
    exlet = next(each.exlet_case for each in await domain.decisions(DecisionQuery(case=case)) if each.exlet_case)
    brief = await domain.history(exlet, brief=True)
    assert brief == [each for each in await domain.history(exlet) if not is_order(each)]
    assert "mended" in {each.what for each in brief}
    for last in range(1, len(brief) + 3):
        assert await domain.history(exlet, last=last, brief=True) == brief[-last:], last
    await aside.stop()


@pytest.mark.parametrize("is_aside", [True, False])
async def test_a_brief_history_of_a_replayed_journal_has_as_many_entries_as_were_asked_for(
    domain: Domain, aside: LongJournals, tmp_path: Path, is_aside: bool
) -> None:
    (tmp_path / "x").write_text("x")
    turns = ForEach(name="loop", items=list(range(40)), body=JobActivity(name="a", command="true"))
    staged = Stage(name="in", files={"x": str(tmp_path / "x")})
    await domain.deploy(Flow(name=FlowName("f"), body=Sequence(name="all", body=(staged, turns))))
    case = (await domain.start("f", {}, who="ann")).id
    async with asyncio.timeout(60):
        while len(whole := await domain.history(case)) < 40:
            await asyncio.sleep(0.01)
    if not is_aside:
        domain._server.long_journals = LongJournals(aside=False)
    brief = [each for each in whole if not is_order(each)]
    assert [each.what for each in brief] == ["started", "staged"]
    assert all(is_order(each) for each in whole[-40:])
    for last in range(1, 6):
        assert await domain.history(case, last=last, brief=True) == brief[-last:], last
    await aside.stop()
