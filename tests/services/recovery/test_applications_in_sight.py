"""What is told of rules that are applied to a cause: who sees some of its failures sees, and stops, these alone."""

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import Decision, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.cluster import root_of
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.reopening import Reopened
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend

A = JobActivity(name="a", command="true")
SHIPPED = RuleSet(name="*", exlets={"try-again": exlet("try-again", mend(Primitive.RESUBMIT))})
RED, BLUE, GREEN = (Sight(frozenset({project})) for project in ("red", "blue", "green"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def failed_case(world: World, project: str) -> CaseId:
    await world.domain.deploy(flow(A, name=project), project=project)
    case = (await world.domain.start(project, {}, who="me")).id
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    return case


async def test_ex_7_of_an_application_one_sees_what_is_of_ones_projects(world: World) -> None:
    red, blue = await failed_case(world, "red"), await failed_case(world, "blue")
    [group] = await world.domain.failures()
    assert (await world.domain.apply_progress(group.id, sight=RED)).started_at == 0
    await world.domain.apply_rules(group.id, who="ann", retry=True)
    whole = await world.domain.apply_progress(group.id[:5])
    assert (set(whole.cases), whole.total, whole.done) == ({red, blue}, 2, 2)
    seen = await world.domain.apply_progress(group.id[:5], sight=RED)
    assert (seen.by, seen.cases, seen.total, seen.done, seen.refused) == ("ann", [red], 1, 1, {})
    assert {root_of(id) for id in (*seen.taken_up, *seen.left)} == {red}


async def test_ex_7_a_server_tells_the_others_which_applications_came_before(world: World) -> None:
    case = await failed_case(world, "red")
    [group] = await world.domain.failures()
    for name in ("first", "second", "third"):
        await world.domain.apply_rules(group.id, who="ann", application=name)
    told = await world.domain.apply_progress(group.id)
    assert (told.application, told.earlier) == ("third", ["first", "second"])
    assert await world.status(case) == "failed"


async def test_ex_7_of_an_application_to_others_one_sees_nothing(world: World) -> None:
    await failed_case(world, "red")
    blue = await failed_case(world, "blue")
    [group] = await world.domain.failures()
    await world.domain.apply_rules(group.id, who="ben", sight=BLUE)
    assert (await world.domain.apply_progress(group.id, sight=BLUE)).left == [(await world.decision(blue)).id]
    seen = await world.domain.apply_progress(group.id, sight=RED)
    assert (seen.started_at, seen.by, seen.total, seen.left) == (0, "", 0, [])


async def test_ex_7_a_cause_that_there_is_not_is_not_found_by_anybody(world: World) -> None:
    await failed_case(world, "red")
    [group] = await world.domain.failures()
    for asked, sight in (("nothing", Sight()), ("", Sight()), (group.id, GREEN)):
        with pytest.raises(NotFound):
            await world.domain.apply_progress(asked, sight=sight)
        with pytest.raises(NotFound):
            await world.domain.stop_apply(asked, who="ann", sight=sight)


async def test_ex_7_one_stops_what_is_of_ones_projects(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    red, blue = await failed_case(world, "red"), await failed_case(world, "blue")
    [group] = await world.domain.failures()
    reopener, goes_on = world.runtime.recovery.groups._reopener, asyncio.Event()
    reopen = reopener.reopen

    async def held(case: CaseId, *, who: str, about: Collection[str], sight: Sight) -> Reopened:
        await goes_on.wait()
        return await reopen(case, who=who, about=about, sight=sight)

    monkeypatch.setattr(reopener, "reopen", held)
    applying = asyncio.ensure_future(world.domain.apply_rules(group.id, who="ann", retry=True))

    async def is_running() -> bool:
        return (await world.domain.apply_progress(group.id)).total == 2

    await world.until(is_running, "an application of two")
    assert (await world.domain.stop_apply(group.id, who="ron", sight=RED)).stopped
    assert not (await world.domain.apply_progress(group.id, sight=BLUE)).stopped
    assert (await world.domain.apply_progress(group.id)).stopped
    goes_on.set()
    applied = await applying
    stopped = (await world.decision(red)).id
    assert (applied.cases, applied.left, applied.why_left) == ([blue], [stopped], {stopped: "stopped"})


async def filed_under(world: World, project: str, case: CaseId) -> Decision:
    """The decision about the case, as if it were of another project than the case."""
    decision = await world.decision(case)
    decision.project = project
    known = await world.store.get(DECISION_KIND, decision.id)
    assert known is not None
    await world.store.write([Put(DECISION_KIND, decision.id, msgspec.json.encode(decision), known.version)])
    return decision


async def test_se_1_a_case_goes_on_for_those_of_its_own_project_whatever_a_decision_says(world: World) -> None:
    red = await failed_case(world, "red")
    decision = await filed_under(world, "blue", red)
    [group] = await world.domain.failures(sight=BLUE)
    applied = await world.domain.apply_rules(group.id, who="ben", retry=True, sight=BLUE)
    assert (applied.cases, applied.taken_up) == ([], [])
    assert applied.refused == {decision.id: f"there is no case {red}; `mendflow cases` lists them"}
    assert await world.status(red) == "failed"
    assert (await world.domain.apply_rules(group.id, who="root", retry=True)).cases == [red]


async def test_se_1_what_waits_is_tried_again_for_those_of_its_own_project(world: World) -> None:
    await world.domain.deploy(flow(A, name="red", on_unhandled="hold"), project="red")
    red = (await world.domain.start("red", {}, who="me")).id
    await world.take()
    await world.report(a=FAILED)
    await world.until_decided(red, "waiting")
    await filed_under(world, "blue", red)
    [group] = await world.domain.failures(sight=BLUE)
    applied = await world.domain.apply_rules(group.id, who="ben", retry=True, sight=BLUE)
    assert (applied.taken_up, applied.left, applied.refused) == ([], [], {})
    assert (await world.decision(red)).state == "waiting"
