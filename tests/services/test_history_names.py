"""The history of a case names the people who did something with it, and says what they answered."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import Call, JobActivity, UserTask
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import World, flow

A = JobActivity(name="a", command="true")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


def _said(entries: list[HistoryEntry], *words: str) -> list[tuple[str, str, str, str]]:
    return [(each.source, each.by, each.what, each.message) for each in entries if each.what in words]


@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize("reason", ["", "a wrong table"])
async def test_who_cancelled_a_case_is_told_once_with_the_reason(world: World, reason: str, brief: bool) -> None:
    # EX-11, UI-1
    case = await world.start(flow(A))
    await world.domain.cancel(case, who="ann", reason=reason)
    entries = [each for each in await world.domain.history(case, brief=brief) if each.item is None]
    assert _said(entries, "started", "removed", "cancelled") == [
        ("engine", "me", "started", ""),
        ("person", "ann", "cancelled", reason),
    ]


async def test_who_suspends_resumes_and_removes_is_named(world: World) -> None:
    # EX-11
    case = await world.start(flow(A))
    await world.domain.suspend(case, who="ann")
    await world.domain.resume(case, who="bea")
    await world.domain.cancel(case, "a", who="cat", reason="not needed")
    assert _said(await world.domain.history(case), "suspended", "continued", "removed") == [
        ("person", "ann", "suspended", ""),
        ("person", "bea", "continued", ""),
        ("person", "cat", "removed", "not needed"),
    ]


async def test_a_completed_user_task_says_what_was_answered(world: World) -> None:
    # EX-11, UI-1
    case = await world.start(flow(UserTask(name="ask", role="clerk", fields={"good": "yes or no", "note": "why"})))
    await world.quiet()
    [task] = await world.domain.worklist(case=case)
    await world.domain.complete(task.id, {"good": True, "note": "x" * 300}, who="ann", comment="checked twice")
    await world.until_status(case, "completed")
    [(source, by, _, said)] = _said([each for each in await world.domain.history(case) if each.item], "completed")
    assert (source, by) == ("person", "ann")
    assert said.startswith("good: yes, note: xxx") and said.endswith(" ...; checked twice") and len(said) < 230


async def test_nobody_has_started_a_case_that_another_one_called(world: World) -> None:
    # EX-11: its caller did
    await world.domain.deploy(flow(A, "inner"))
    case = await world.start(flow(Call(name="c", flow="inner"), "outer"))
    await world.take()
    assert _said(await world.domain.history(f"{case}.1"), "started") == [("engine", "", "started", "")]
    assert _said(await world.domain.history(case), "started") == [("engine", "me", "started", "")]
