"""Failures that are tried again where their cases failed: what is told of an application of rules, of counts and of
alerts is what really was tried again, and nothing that the flow went on after."""

from collections.abc import AsyncIterator
from collections.abc import Sequence as Writes
from itertools import count
from pathlib import Path

import pytest

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Activity,
    Call,
    Catch,
    Empty,
    ForEach,
    JobActivity,
    Rethrow,
    Scope,
    Sequence,
    Throw,
)
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, FailureGroup
from mendflow.core.model.rules import RuleSet
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Write
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
CAUGHT = Scope(name="s", body=A, catches=(Catch(body=Empty(name="e")),))
TOLERANT = ForEach(name="l", first=1, last=3, body=A, tolerate=2)
OTHER = Outcome(fault=Fault(name="exit", category=Category.JOB, message="it ran out of ideas", exit_code=4))
TRY_AGAIN = exlet("try-again", mend(Primitive.RESUBMIT))
SHIPPED = RuleSet(name="*", exlets={"try-again": TRY_AGAIN})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    never = MonitorSettings(look_ms=24 * 3_600_000)  # by itself: the tests look
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, monitor=never), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


def then_b(first: Activity) -> Sequence:
    return Sequence(name="seq", body=(first, B))


async def group_of(world: World, task: str) -> FailureGroup:
    [found] = [each for each in await world.domain.failures() if task in each.tasks]
    return found


async def failed_by_b(world: World, first: Activity) -> CaseId:
    """A case whose flow went on after what it did first, and failed by `b`."""
    case = await world.start(flow(then_b(first), name="x"))
    ids = await world.take(items=3 if first is TOLERANT else 1)
    await world.pilot.exchange({id: FAILED if place < 2 else Outcome() for place, id in enumerate(ids)})
    await world.quiet()
    await world.take()
    await world.report(b=OTHER)
    await world.until_status(case, "failed")
    return case


@pytest.mark.parametrize("first", [CAUGHT, TOLERANT])
async def test_ex_7_a_case_stays_failed_if_none_of_the_failures_would_be_tried_again(
    world: World, first: Activity
) -> None:
    case = await failed_by_b(world, first)
    await world.put(rule_set("x", ExceptionType.ABORT, ("true", "try-again"), exlets=[TRY_AGAIN]))
    for retry in (False, True):
        applied = await world.domain.apply_rules((await group_of(world, "a")).id, who="me", retry=retry)
        assert (applied.taken_up, applied.cases, applied.refused) == ([], [], {})
        assert {*applied.why_left.values()} == ({"passed"} if first is TOLERANT else set())
        assert await world.status(case) == "failed"


async def test_ex_7_of_the_failures_of_a_cause_those_are_taken_up_that_are_tried_again(world: World) -> None:
    case = await world.start(flow(then_b(TOLERANT), name="x"))
    ids = await world.take(items=3)
    await world.pilot.exchange({ids[0]: FAILED, ids[1]: Outcome(), ids[2]: Outcome()})
    await world.quiet()
    await world.take()
    await world.report(b=FAILED)
    await world.until_status(case, "failed")
    by_task = {each.task: each.id for each in await world.decisions(case)}
    applied = await world.domain.apply_rules((await group_of(world, "b")).id, who="me", retry=True)
    assert (applied.taken_up, applied.left, applied.cases) == ([by_task["b"]], [by_task["a"]], [case])
    assert applied.why_left == {by_task["a"]: "passed"}
    assert await world.take() == ["b"]


async def open_alerts(world: World) -> list[tuple[str, str | None]]:
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    return sorted((each.subject, each.item) for each in await world.domain.alerts())


def catching(body: Activity, handler: Activity, name: str = "s") -> Scope:
    return Scope(name=name, body=body, catches=(Catch(body=handler),))


async def test_ui_1_what_the_flow_goes_on_after_is_settled_at_once_and_stays_so(world: World) -> None:
    case = await world.start(flow(then_b(CAUGHT), name="x"))
    await world.take()
    await world.report(a=FAILED)
    assert await world.take() == ["b"]
    for status in ("running", "failed"):
        group = await group_of(world, "a")
        assert (group.count, group.unhandled, group.settled) == (1, 0, 1), status
        assert (await world.domain.failure(group.id)).open_failed == 0
        assert "x/a" not in dict(await open_alerts(world)), status
        if status == "running":
            await world.report(b=OTHER)
            await world.until_status(case, "failed")
    applied = await world.domain.apply_rules(group.id, who="me", retry=True)
    assert (applied.taken_up, applied.left, applied.cases) == ([], [], [])


@pytest.mark.parametrize(
    ("body", "unhandled"),
    [
        (catching(A, Rethrow(name="r")), 1),
        (catching(A, Throw(name="t", fault="worse")), 1),
        (catching(catching(A, Rethrow(name="r")), Empty(name="e"), "outer"), 0),
        (catching(Call(name="c", flow="inner"), Empty(name="e")), 0),
        (catching(Call(name="c", flow="inner"), Rethrow(name="r")), 2),
        (Scope(name="s", body=A, catches=(Catch(body=Empty(name="e"), fault="another"),)), 1),
    ],
)
async def test_ui_1_what_a_handler_throws_again_is_left_to_somebody(
    world: World, body: Activity, unhandled: int
) -> None:
    await world.domain.deploy(flow(A, name="inner"))
    case = await world.start(flow(then_b(body), name="x"))
    await world.take()
    await world.report(a=FAILED)
    if not unhandled:
        assert await world.take() == ["b"]
        await world.report(b=OTHER)
    await world.until_status(case, "failed")
    group = await group_of(world, "a")
    assert (group.unhandled, group.settled) == (unhandled, group.count - unhandled)
    told = {subject for subject, _ in await open_alerts(world)}
    assert bool(told & {"x/a", "inner/a"}) == bool(unhandled)


async def test_ex_7_one_job_that_fails_again_and_again_is_one_that_rules_can_be_applied_to(world: World) -> None:
    case = await world.start(flow(A))
    for tries in range(3):
        await world.take()
        await world.report(a=FAILED)
        await world.until_status(case, "failed")
        group = await group_of(world, "a")
        view = await world.domain.failure(group.id)
        assert (group.unhandled, view.open_failed) == (1, 1), f"after {tries} more tries"
        applied = await world.domain.apply_rules(group.id, who="me", retry=True)
        assert (len(applied.taken_up), applied.left, applied.cases) == (1, [], [case])


async def test_ex_7_rules_are_asked_again_about_what_a_rule_has_let_fail(world: World) -> None:
    give_up = exlet("give-up", mend(Primitive.FAIL))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "give-up"), exlets=[give_up]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    group = await group_of(world, "a")
    assert (group.unhandled, (await world.domain.failure(group.id)).open_failed) == (0, 1)


async def only_group(world: World) -> FailureGroup:
    [group] = await world.domain.failures()
    return group


async def test_ex_7_a_failed_call_that_begins_again_is_taken_up(world: World) -> None:
    case = await world.start(flow(Call(name="c", flow="nothing"), name="x"))
    for tries in range(3):
        await world.until_status(case, "failed")
        await world.runtime.ledger.settled()
        group = await only_group(world)
        view = await world.domain.failure(group.id)
        assert (group.count, group.unhandled, view.open_failed) == (tries + 1, 1, 1)
        assert await open_alerts(world) == [("x/c", "c")]
        if tries == 2:
            await world.domain.deploy(flow(A, name="nothing"))
        applied = await world.domain.apply_rules(group.id, who="me", retry=True)
        assert (len(applied.taken_up), applied.left, applied.cases) == (1, [], [case])
    assert await world.take() == ["a"]
    assert (await only_group(world)).unhandled == 0
    assert await open_alerts(world) == []


async def test_ex_7_a_call_whose_case_goes_on_is_taken_up_and_may_fail_anew(world: World) -> None:
    await world.domain.deploy(flow(A))
    case = await world.start(flow(Call(name="c", flow="f"), name="g"))
    for tries in range(3):
        await world.take()
        await world.report(a=FAILED)
        await world.until_status(case, "failed")
        await world.runtime.ledger.settled()
        group = await only_group(world)
        view = await world.domain.failure(group.id)
        assert (group.unhandled, view.open_failed) == (2, 2), f"after {tries} more tries: the job, and the call"
        assert await open_alerts(world) == [("f/a", "a"), ("g/c", "c")]
        applied = await world.domain.apply_rules(group.id, who="me", retry=True)
        assert (len(applied.taken_up), applied.left, applied.cases) == (2, [], [case])
        assert (await only_group(world)).unhandled == 0
        assert await open_alerts(world) == []
        await world.restart()
        assert (await only_group(world)).unhandled == 0
        assert await open_alerts(world) == []


@pytest.mark.parametrize("called", ["nothing", "f"])
async def test_ex_7_a_reopening_that_is_cut_short_takes_nothing_up(
    world: World, called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.domain.deploy(flow(A))
    case = await world.start(flow(Call(name="c", flow=called), name="g"))
    if called == "f":
        await world.take()
        await world.report(a=FAILED)
    await world.until_status(case, "failed")
    await world.runtime.ledger.settled()
    group, cut_at = await only_group(world), 0
    while await is_cut_short(world, group.id, cut_at, monkeypatch):
        await world.restart()
        if await world.status(case) != "failed":
            break
        [call] = [each for each in await world.domain.decisions(DecisionQuery(case=case)) if each.item == "c"]
        assert call.handling == "unhandled", f"it was cut short at write {cut_at}"
        assert ("g/c", "c") in await open_alerts(world)
        cut_at += 1
    assert cut_at > 3
    tried = [each for each in await world.domain.decisions(DecisionQuery(case=case)) if each.handling == "handled"]
    assert [each.item for each in tried] == ["c"]


async def is_cut_short(world: World, group: str, at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Rules are applied, and the server dies before the write of this number."""
    reopener = world.runtime.recovery.groups._reopener
    write, written = reopener._now, count()

    async def dies(writes: Writes[Write]) -> None:
        if next(written) == at:
            raise StoreUnavailable("it dies here")
        await write(writes)

    with monkeypatch.context() as patched:
        patched.setattr(reopener, "_now", dies)
        try:
            await world.domain.apply_rules(group, who="me", retry=True)
        except StoreUnavailable:
            return True
    return False
