"""The alert about a failure that no rule took up ends when nothing is left of that failure, and comes back with the
next one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionEvent, ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.alerts import ALERT_KIND, AlertDocument
from mendflow.services.base.notices import ALERT_CLOSED
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend

A = JobActivity(name="a", command="true")
LOOP = ForEach(name="l", first=1, last=2, body=A, tolerate=1)
OTHER = Fault(name="exit", category=Category.JOB, message="it ran out of ideas", exit_code=4)
DAY = 86_400_000

SHIPPED = RuleSet(name="*", exlets={"try-again": exlet("try-again", mend(Primitive.RESUBMIT))})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    never = MonitorSettings(look_ms=24 * 3_600_000)  # by itself: the tests look, or are told
    made = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, monitor=never), shipped=SHIPPED)
    await made.server.open()
    yield made
    await made.server.close()


async def failed_case(world: World) -> CaseId:
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    return case


async def done_again(world: World, case: CaseId) -> None:
    again = await world.domain.rerun(case, who="me")
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(again.id, "completed")


async def open_alerts(world: World) -> list[str]:
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    return [alert.case for alert in await world.domain.alerts() if alert.kind == "failure"]


async def test_it_lasts_while_a_case_is_failed_and_ends_when_each_was_run_again_with_success(world: World) -> None:
    # FM-8, UI-1
    first, second = await failed_case(world), await failed_case(world)
    assert await open_alerts(world) == [first], "one for both"
    await done_again(world, first)
    assert await open_alerts(world) == [second], "the other is left"
    [alert] = await world.domain.alerts()
    assert alert.sentence.startswith(f"{second}: 'a' failed"), "it tells of the one that is left"
    assert alert.raised_at == (await world.decision(second)).at, "and of when that failed"
    await done_again(world, second)
    assert await open_alerts(world) == []
    third = await failed_case(world)
    assert await open_alerts(world) == [third], "the same cause, on the same day"


async def test_what_an_engine_tells_of_a_flow_of_the_same_name_is_an_alert_of_its_own(world: World) -> None:
    # FM-8, EX-10
    case = await failed_case(world)
    [own] = await world.decisions(case)
    await world.runtime.engines.register("north")
    about = ExceptionEvent(id="e", type=ExceptionType.ABORT, case=CaseId("s-1"), flow=own.flow, item=own.item, task="a")
    await world.runtime.engines.tell("north", msgspec.structs.replace(about, fault=own.fault))
    assert sorted(await open_alerts(world)) == sorted([case, "north:s-1"])
    await done_again(world, case)
    assert await open_alerts(world) == ["north:s-1"]


async def test_one_that_somebody_has_seen_does_not_come_back_on_the_same_day(world: World) -> None:
    # FM-8
    await failed_case(world)
    [alert] = await world.domain.alerts()
    await world.domain.acknowledge(alert.id, who="me")
    await failed_case(world)
    assert await open_alerts(world) == []


async def test_it_ends_when_the_failure_is_taken_up_and_comes_back_if_it_fails_again(world: World) -> None:
    # FM-8: it goes on from where it stood
    case = await failed_case(world)
    [group] = await world.domain.failures()
    told = asyncio.create_task(told_closed(world))
    await asyncio.sleep(0)
    await world.domain.apply_rules(group.id, who="me", retry=True)
    async with asyncio.timeout(PATIENCE_S):
        await told
    assert len((await world.domain.apply_progress(group.id)).taken_up) == 1
    assert await world.take() == ["a"] and await open_alerts(world) == [], "it is under way again"
    await world.report(a=FAILED)
    await world.until_status(case, "failed")
    assert await open_alerts(world) == [case]


async def test_it_ends_when_the_case_is_run_again(world: World) -> None:  # FM-8
    case = await failed_case(world)
    again = await world.domain.rerun(case, who="me")
    assert await open_alerts(world) == []
    await world.take()
    await world.report(a=FAILED)
    await world.until_status(again.id, "failed")
    assert await open_alerts(world) == [again.id]


async def test_it_ends_when_the_case_is_cancelled(world: World) -> None:  # FM-8
    case = await failed_case(world)
    assert await open_alerts(world) == [case]
    [group] = await world.domain.failures()
    await world.domain.apply_rules(group.id, who="me", retry=True)
    await world.domain.cancel(case, who="me")
    assert await open_alerts(world) == []


async def told_closed(world: World) -> str:
    """The alert that is told to be over, without that the monitor has looked."""
    async for event in world.domain.events(kind="alert"):
        if event.state == ALERT_CLOSED:
            return event.message
    raise AssertionError("the changes have ended")


async def test_it_goes_at_once_when_the_last_case_was_run_again(world: World) -> None:
    # UI-1: nobody waits for the next look of the monitor
    case = await failed_case(world)
    [alert] = await world.domain.alerts()
    told = asyncio.create_task(told_closed(world))
    await done_again(world, case)
    async with asyncio.timeout(PATIENCE_S):
        assert await told == alert.id
    assert await world.domain.alerts() == []


async def test_what_is_held_has_no_alert_any_more_when_somebody_takes_it_up(world: World) -> None:  # UI-1
    case = await world.start(msgspec.structs.replace(flow(A), on_unhandled="hold"))
    await world.take()
    await world.report(a=FAILED)
    while not (await world.domain.case(case)).held:
        await asyncio.sleep(0)
    await world.runtime.monitor.look()
    [alert] = await world.domain.alerts()
    assert alert.kind == "case-held"
    told = asyncio.create_task(told_closed(world))
    await asyncio.sleep(0)
    [group] = await world.domain.failures()
    view = await world.domain.failure(group.id)
    assert (view.open_waiting, view.open_failed) == (1, 0)
    await world.domain.apply_rules(group.id, who="me", retry=True)
    async with asyncio.timeout(PATIENCE_S):
        assert await told == alert.id
    assert await world.domain.alerts() == []
    view = await world.domain.failure(group.id)
    assert (view.open_waiting, view.open_failed) == (0, 0)


async def test_what_was_run_again_is_not_counted_as_what_rules_can_be_applied_to(world: World) -> None:  # FM-8
    first, _ = await failed_case(world), await failed_case(world)
    [group] = await world.domain.failures()
    view = await world.domain.failure(group.id)
    assert (view.open_waiting, view.open_failed) == (0, 2)
    await done_again(world, first)
    view = await world.domain.failure(group.id)
    assert (view.open_waiting, view.open_failed) == (0, 1)


async def rerun(world: World, case: CaseId) -> CaseId:
    return (await world.domain.rerun(case, who="me")).id


async def cancelled(world: World, case: CaseId) -> CaseId:
    await world.domain.cancel(case, who="me")
    await world.until_status(case, "cancelled")
    return case


async def test_it_comes_back_when_the_later_run_is_cancelled(world: World) -> None:  # FM-8, UI-1
    case = await failed_case(world)
    again = await rerun(world, case)
    assert await open_alerts(world) == []
    told = asyncio.create_task(told_open(world))
    await asyncio.sleep(0)
    await cancelled(world, again)
    async with asyncio.timeout(PATIENCE_S):
        assert await told, "without that the monitor has looked"
    assert [alert.case for alert in await world.domain.alerts()] == [case]
    again = await rerun(world, again)
    assert await open_alerts(world) == [], "who runs the cancelled one again has taken up the first"
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(again, "completed")
    assert await open_alerts(world) == []


async def told_open(world: World) -> str:
    async for event in world.domain.events(kind="alert"):
        if event.state != ALERT_CLOSED:
            return event.message
    raise AssertionError("the changes have ended")


async def test_it_comes_back_after_a_crash_when_the_later_run_was_cancelled(  # FM-8
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = await failed_case(world)
    again = await rerun(world, case)
    assert await open_alerts(world) == []
    monkeypatch.setattr(world.runtime.monitor._closing, "_look_again", lambda: None)  # it dies before it can
    await cancelled(world, again)
    await world.restart()
    assert await open_alerts(world) == [case]


async def test_it_comes_back_when_the_same_fails_again_before_the_first_look_of_a_new_server(world: World) -> None:
    # FM-8
    await done_again(world, await failed_case(world))
    assert await open_alerts(world) == []
    await world.restart()
    case = await failed_case(world)
    await world.runtime.ledger.settled()
    [alert] = await world.domain.alerts()
    assert (alert.kind, alert.case) == ("failure", case)


async def test_it_comes_back_when_a_later_run_that_had_failed_goes_on_and_is_cancelled(world: World) -> None:  # FM-8
    case = await failed_case(world)
    again = await rerun(world, case)
    await world.take()
    await world.report(a=Outcome(fault=OTHER))
    await world.until_status(again, "failed")
    assert await open_alerts(world) == [again], "of another cause"
    await world.runtime.recovery.reopener.reopen(again, who="me")
    await cancelled(world, again)
    assert await open_alerts(world) == [case]


async def test_one_that_somebody_has_seen_does_not_come_back_when_the_later_run_is_cancelled(world: World) -> None:
    # FM-8
    case = await failed_case(world)
    [alert] = await world.domain.alerts()
    await world.domain.acknowledge(alert.id, who="me")
    await cancelled(world, await rerun(world, case))
    assert await open_alerts(world) == []


async def test_it_never_tells_of_another_task(world: World) -> None:  # FM-8
    other = JobActivity(name="b", command="true")
    first, second = await failed_case(world), await world.start(flow(other))
    await world.take()
    await world.report(b=FAILED)
    await world.until_status(second, "failed")
    found = await alerts_of(world)
    assert found == [("f/a", first, "a"), ("f/b", second, "b")], "the same cause, and an alert for each task"
    await done_again(world, first)
    assert await alerts_of(world) == [("f/b", second, "b")]


async def test_it_tells_of_another_item_of_the_same_case_that_is_left(world: World) -> None:  # FM-8
    case = await world.start(flow(LOOP))
    one, two = await world.take(items=2)
    await world.pilot.exchange({one: FAILED, two: FAILED})
    await world.until_status(case, "failed")
    [(_, at, item)] = await alerts_of(world)
    decisions = {str(each.item): each for each in await world.decisions(case)}
    other = two if item == one else one
    replaced = msgspec.structs.replace(decisions[str(item)], replaced_by="another")
    found = await world.store.get(DECISION_KIND, replaced.id)
    assert at == case and found is not None
    await world.store.write([Put(DECISION_KIND, replaced.id, msgspec.json.encode(replaced), found.version)])
    assert await alerts_of(world) == [("f/a", case, other)]


async def alerts_of(world: World) -> list[tuple[str, str, str | None]]:
    await world.runtime.ledger.settled()
    await world.runtime.monitor.look()
    return sorted((each.subject, each.case, each.item) for each in await world.domain.alerts())


async def test_attempts_that_the_queue_tries_again_push_no_failure_out_of_sight(world: World) -> None:  # FM-8
    first, second = await failed_case(world), await failed_case(world)
    [decision] = await world.decisions(second)
    retried = msgspec.structs.replace(decision, result="retried", case=CaseId("f-0"))
    many = [msgspec.structs.replace(retried, id=f"f-0/{n}", at=decision.at + 1) for n in range(300)]
    await world.store.write([Put(DECISION_KIND, each.id, msgspec.json.encode(each), 0) for each in many])
    await done_again(world, first)
    assert await open_alerts(world) == [second]
    await done_again(world, second)
    assert await open_alerts(world) == []


async def test_failures_of_the_day_are_those_of_when_it_failed_not_of_when_it_was_told(world: World) -> None:  # FM-8
    first, second = await failed_case(world), await failed_case(world)
    await world.runtime.ledger.settled()
    [alert] = await world.domain.alerts()
    found = await world.store.get(ALERT_KIND, alert.id)
    assert found is not None
    late = msgspec.structs.replace(msgspec.json.decode(found.body, type=AlertDocument), raised_at=alert.raised_at + DAY)
    await world.store.write([Put(ALERT_KIND, alert.id, msgspec.json.encode(late), found.version)])
    await done_again(world, first)
    assert await open_alerts(world) == [second]
    await done_again(world, second)
    assert await open_alerts(world) == []


async def test_one_that_names_an_item_of_another_task_ends_with_the_failures_of_its_own(world: World) -> None:  # FM-8
    first, second = await failed_case(world), await world.start(flow(JobActivity(name="b", command="true")))
    await world.take()
    await world.report(b=FAILED)
    await world.until_status(second, "failed")
    await world.runtime.ledger.settled()
    [alert] = [each for each in await world.domain.alerts() if each.subject == "f/a"]
    found = await world.store.get(ALERT_KIND, alert.id)
    assert found is not None
    document = msgspec.json.decode(found.body, type=AlertDocument)
    astray = msgspec.structs.replace(document, case=second, item=ItemId("b"))
    await world.store.write([Put(ALERT_KIND, alert.id, msgspec.json.encode(astray), found.version)])
    assert await alerts_of(world) == [("f/a", first, "a"), ("f/b", second, "b")], "it tells of its own task again"
    found = await world.store.get(ALERT_KIND, alert.id)
    assert found is not None
    await world.store.write([Put(ALERT_KIND, alert.id, msgspec.json.encode(astray), found.version)])
    await done_again(world, first)
    assert await alerts_of(world) == [("f/b", second, "b")]
