"""What a loop lets fail is left to nobody: it is found under its case, unless the case fails by it."""  # EX-3

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import Call, ForEach, JobActivity, Parallel, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair_views import DecisionQuery, FailureGroup
from mendflow.services.base.alerts import ALERT_KIND
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, flow

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
LOOP = ForEach(name="l", first=1, last=4, body=A, parallel=True, tolerate=2)
THEN_B = Sequence(name="s", body=(LOOP, B))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    never = MonitorSettings(look_ms=24 * 3_600_000)  # by itself
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, monitor=never, holds_unhandled=True))
    await made.server.open()
    yield made
    await made.server.close()


async def only_group(world: World) -> FailureGroup:
    [group] = await world.domain.failures()
    return group


async def alerted(world: World) -> list[str]:
    await world.quiet()
    return [found.id async for found in world.store.scan(ALERT_KIND)]


async def handlings(world: World, case: CaseId) -> dict[str, str]:
    return {str(each.item): each.handling for each in await world.domain.decisions(DecisionQuery(case=case))}


async def test_what_a_loop_lets_fail_waits_for_nobody_and_raises_no_alert(world: World) -> None:
    case = await world.start(flow(THEN_B))
    await world.take(items=4)
    await world.report(**{"a[0]": FAILED, "a[1]": FAILED})
    await world.quiet()
    assert await world.status(case) == "running"
    group = await only_group(world)
    assert (group.count, group.waiting, group.unhandled, group.settled) == (2, 0, 0, 2)
    assert await handlings(world, case) == {"a[0]": "settled", "a[1]": "settled"}
    assert (await world.case(case)).held == [] and await alerted(world) == []
    await world.report(**{"a[2]": Outcome(), "a[3]": Outcome()})
    await world.take()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert (await only_group(world)).settled == 2


async def test_what_is_more_than_a_loop_lets_fail_waits_also_when_all_fail_at_once(world: World) -> None:
    case = await world.start(flow(THEN_B))
    taken = await world.take(items=4)
    await world.pilot.exchange(dict.fromkeys(taken, FAILED))
    await world.quiet()
    group = await only_group(world)
    assert (group.count, group.waiting, group.settled) == (4, 2, 2)
    assert len((await world.case(case)).held) == 2


async def test_a_case_that_fails_by_more_than_its_loop_lets_fail_fails_by_all_of_them(world: World) -> None:
    case = await world.start(flow(THEN_B, on_unhandled="fail"))
    await world.take(items=4)
    await world.report(**{"a[0]": FAILED, "a[1]": FAILED, "a[2]": FAILED})
    await world.until_status(case, "failed")
    group = await only_group(world)
    assert (group.count, group.unhandled) == (3, 3)
    assert len(await alerted(world)) == 1


async def test_what_fails_in_a_case_that_a_tolerant_loop_called_is_let_fail_too(world: World) -> None:
    await world.domain.deploy(flow(A, name="inner"))
    calls = ForEach(name="l", first=1, last=2, body=Call(name="c", flow="inner"), parallel=True, tolerate=2)
    case = await world.start(flow(Sequence(name="s", body=(calls, B)), name="outer"))
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.quiet()
    assert await world.status(case) == "running"
    groups = await world.domain.failures()
    assert [(each.waiting, each.unhandled) for each in groups] == [(0, 0)] * len(groups)


async def test_of_called_cases_that_fail_at_once_a_loop_lets_no_more_fail_than_it_says(world: World) -> None:
    await world.domain.deploy(flow(A, name="inner"))
    calls = ForEach(name="l", first=1, last=3, body=Call(name="c", flow="inner"), parallel=True, tolerate=1)
    case = await world.start(flow(Sequence(name="s", body=(calls, B)), name="outer"))
    taken = await world.take(items=3)
    await world.pilot.exchange(dict.fromkeys(taken, FAILED))
    await world.quiet()
    held = (await world.case(case)).held
    assert len(held) == 2 and all(each.endswith(":a") for each in held), "there it can be mended"
    assert await world.status(case) == "running"


async def test_nothing_is_remembered_of_cases_that_are_over(world: World) -> None:
    case = await world.start(flow(THEN_B))
    await world.take(items=4)
    await world.report(**{"a[0]": FAILED, "a[1]": Outcome(), "a[2]": Outcome(), "a[3]": Outcome()})
    await world.take()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    assert world.runtime.exceptions._tolerated._turns == {}


async def test_a_failure_beside_a_tolerant_loop_waits(world: World) -> None:
    case = await world.start(flow(Parallel(name="p", branches=(LOOP, B))))
    await world.take(items=5)
    await world.report(**{"a[0]": FAILED, "b": FAILED})
    await world.quiet()
    assert (await world.case(case)).held == [f"{case}:b"]
