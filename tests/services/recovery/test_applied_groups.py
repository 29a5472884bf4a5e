"""What is told of a cause after its rules were applied to what had failed: each failure counts once, what people did is
theirs, and no accident is offered as a condition."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RuleSpec
from mendflow.core.model.rules import RuleSet
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")
CODE = "fault.exit_code == 3"
SHIPPED = RuleSet(name="*", exlets={"try-again": exlet("try-again", mend(Primitive.RESUBMIT))})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def fails(world: World, case: CaseId) -> CaseId:
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    return case


async def failed_case(world: World) -> CaseId:
    return await fails(world, await world.start(flow(A)))


async def applied(world: World) -> list[str]:
    """A rule is made for the only cause, and applied; the cases that go on."""
    [group] = await world.domain.failures()
    await world.domain.add_rule(RuleSpec(condition=CODE, exlet="try-again", group=group.id), who="ann")
    return (await world.domain.apply_rules(group.id, who="ann")).cases


async def ends_well(world: World, *cases: CaseId) -> None:
    await world.take(items=len(cases))
    await world.report(a=Outcome())
    for case in cases:
        await world.until_status(case, "completed")


async def test_ex_7_a_failure_whose_case_was_reopened_counts_once_in_what_tells_the_cause_apart(world: World) -> None:
    cases = [await failed_case(world) for _ in range(3)]
    assert sorted(await applied(world)) == sorted(cases)
    await ends_well(world, *cases)
    [group] = await world.domain.failures()
    values = await world.domain.failure_values(group.id)
    assert (group.count, {each.of_here for each in values}) == (3, {3})
    [code] = [each for each in values if each.path == "fault.exit_code"]
    assert code.here == 3


async def test_ex_7_when_failures_occurred_stays_when_a_rule_is_applied_to_them(world: World) -> None:
    cases = [await failed_case(world) for _ in range(2)]
    [before] = await world.domain.failures()
    await asyncio.sleep(0.01)  # of the clock that the failures are told by
    await applied(world)
    await ends_well(world, *cases)
    [after] = await world.domain.failures()
    assert (after.count, after.first_at, after.last_at) == (2, before.first_at, before.last_at)
    assert [each.last_at for each in (await world.domain.overview()).failures] == [before.last_at]


async def test_ex_7_no_accident_of_history_is_proposed_where_a_rule_mended_the_cause(world: World) -> None:
    cases = [await failed_case(world) for _ in range(2)]
    await applied(world)
    await ends_well(world, *cases)
    mended = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await ends_well(world, mended)
    [group] = await world.domain.failures()
    offered = [each.condition for each in (await world.domain.failure(group.id)).candidates]
    assert offered[0] == CODE
    accidents = ("history.", "job.attempts", "job.generation", "fault.retry_")
    assert not [each for each in offered if each.startswith(accidents)]


async def test_ui_1_what_a_person_applied_a_rule_to_was_not_mended_by_itself(world: World) -> None:
    case = await failed_case(world)
    await applied(world)
    await ends_well(world, case)
    by_itself = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await ends_well(world, by_itself)
    seen = (await world.domain.overview()).recovered
    assert (seen.count, seen.count_by_hand) == (1, 1)
    assert [(by.rules, by.exlet, by.count) for by in seen.by_rule] == [("f", "try-again", 1)]
    assert [(by.rules, by.exlet, by.count) for by in seen.by_hand] == [("f", "try-again", 1)]


async def test_du_7_a_failed_case_that_was_run_again_stays_as_it_is(world: World) -> None:
    first, other = await failed_case(world), await failed_case(world)
    again = (await world.domain.rerun(first, who="me")).id
    await fails(world, again)
    cancelled = (await world.domain.rerun(other, who="me")).id
    await world.domain.cancel(cancelled, who="me")
    assert sorted(await applied(world)) == sorted([again, other]), "what was cancelled stands for nothing"
    assert await world.status(first) == "failed"


async def test_du_7_a_case_that_was_run_again_stays_as_it_is_where_a_rule_had_tried_in_vain(world: World) -> None:
    in_vain = exlet("in-vain", mend(Primitive.RETRY_LATER, level=9))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "in-vain"), exlets=[in_vain]))
    first, other = await failed_case(world), await failed_case(world)
    await world.domain.rerun(first, who="bob")
    [group] = await world.domain.failures()
    assert (await world.domain.failure(group.id)).open_failed == 1
    assert (await world.domain.apply_rules(group.id, who="ann", retry=True)).cases == [other]
    assert await world.status(first) == "failed"


class LaggingStore(MemoryStore):
    """As Elasticsearch: no search finds what was written since the last refresh. Only of later runs, here."""

    def __init__(self) -> None:
        super().__init__()
        self.unseen = set[str]()

    async def search(self, kind: str, where: Sequence[FieldCondition] = (), **more: Any) -> list[StoredDocument]:
        found = await super().search(kind, where, **more)
        about = any(each.field == "stands_for" for each in where)
        return [each for each in found if not (about and each.id in self.unseen)]

    async def refresh(self) -> None:
        self.unseen.clear()


@pytest.fixture
async def lagging(tmp_path: Path) -> AsyncIterator[World]:
    made = World(LaggingStore(), tmp_path, ServerSettings(files_roots=None), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def run_again(world: World, case: CaseId) -> CaseId:
    again = (await world.domain.rerun(case, who="bob")).id
    assert isinstance(world.store, LaggingStore)
    world.store.unseen.add(again)
    return again


async def test_du_7_a_case_that_was_run_again_a_moment_ago_stays_as_it_is(lagging: World) -> None:
    first, other = await failed_case(lagging), await failed_case(lagging)
    await run_again(lagging, first)
    assert await applied(lagging) == [other]
    assert await lagging.status(first) == "failed"


async def test_du_7_a_case_that_is_run_again_while_rules_are_applied_stays_as_it_is(
    lagging: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [await failed_case(lagging), await failed_case(lagging)]
    reopener, went_on = lagging.runtime.recovery.reopener, list[CaseId]()
    reopen = reopener.reopen

    async def slowly(case: CaseId, **more: Any) -> Any:
        went_on.append(case)
        for other in {*cases} - {*went_on}:
            await run_again(lagging, other)
        return await reopen(case, **more)

    monkeypatch.setattr(reopener, "reopen", slowly)
    assert await applied(lagging) == went_on and len(went_on) == 1
    [late] = {*cases} - {*went_on}
    [group] = await lagging.domain.failures()
    told = await lagging.domain.apply_progress(group.id)
    assert [id.partition("/")[0] for id in told.left] == [late]
    assert told.why_left == {told.left[0]: "run-again"}
    assert await lagging.status(late) == "failed"
