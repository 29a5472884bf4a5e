"""Rules that send an item round in a cycle do it at a walk and come to an end, and somebody is told."""

import pytest

from mendflow.core.model.flow import JobActivity, Parallel, Stage
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.services.recovery import exception_service as service
from mendflow.services.recovery.exlets import STARTS_MAX, STARTS_WINDOW_MS
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
ROUNDS = 4


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "REPAIRS_MAX", ROUNDS)


async def notices_about_circles(world: World) -> list[str]:
    return [each.message for each in await world.domain.notices() if "round in a cycle" in each.message]


async def test_an_item_that_is_restarted_after_every_end_ends_at_last(world: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ITEM_POST, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    for _ in range(ROUNDS + 1):
        assert await world.take() == ["a"]
        await world.report(a=Outcome())
    await world.until_status(case, "completed")
    decisions = await world.decisions(case)
    assert [each.state for each in decisions] == ["done"] * ROUNDS + ["failed"]
    assert f"mended {ROUNDS} times already; again is not started" in decisions[-1].note
    [told] = await notices_about_circles(world)
    assert "a was mended" in told


async def test_a_job_that_is_submitted_again_after_every_failure_fails_at_last_also_after_a_restart(
    world: World,
) -> None:
    again = exlet("again", mend(Primitive.RESUBMIT))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    for number in range(ROUNDS + 1):
        await world.take()
        await world.report(a=FAILED)
        if number == ROUNDS - 2:
            await world.until_decided(case, "done")
            await world.restart()
    await world.until_status(case, "failed")
    assert len(await world.exlets(case)) == ROUNDS, "those before the restart count"
    assert len(await notices_about_circles(world)) == 1


async def test_a_rule_that_begins_an_item_again_and_again_takes_its_time(world: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(Stage(name="a", files={"x": "nowhere.txt"})))
    await world.until_status(case, "failed")
    begun = [each.started_at for each in await world.exlets(case)]
    assert len(begun) == ROUNDS > STARTS_MAX
    assert all(late - early > STARTS_WINDOW_MS / 2 for early, late in zip(begun, begun[STARTS_MAX:], strict=False))


async def test_a_case_that_is_removed_while_a_repair_waits_for_its_turn_gets_none(memory: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await memory.start(flow(Stage(name="a", files={"x": "nowhere.txt"})))

    async def paused() -> bool:
        return len(await memory.decisions(case)) > STARTS_MAX

    await memory.until(paused, "a repair that waits")
    await memory.domain.cancel(case, reason="enough", who="me")

    async def ended() -> bool:
        return (await memory.decisions(case))[-1].state == "failed"

    await memory.until(ended, "the end of the repair")
    assert len(await memory.exlets(case)) == STARTS_MAX


async def test_each_item_has_its_own_number_of_repairs(memory: World) -> None:
    again = exlet("again", mend(Primitive.RESUBMIT))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again], task="*"))
    case = await memory.start(flow(Parallel(name="p", branches=(A, B))))
    for _ in range(ROUNDS):
        await memory.take(items=2)
        await memory.report(a=FAILED, b=FAILED)
    await memory.take(items=2)
    assert len(await memory.exlets(case)) == 2 * ROUNDS
    await memory.report(a=Outcome(), b=Outcome())
    await memory.until_status(case, "completed")
    assert await notices_about_circles(memory) == []


async def test_people_may_still_mend_what_the_rules_may_not(memory: World) -> None:
    again, done = exlet("again", mend(Primitive.RESTART)), exlet("done", mend(Primitive.COMPLETE, outputs="enough"))
    await memory.put(rule_set("f", ExceptionType.ITEM_POST, ('item.outputs == "no"', "again"), exlets=[again, done]))
    case = await memory.start(flow(A, outputs={"a": "${{ jobs.a.outputs }}"}))
    for _ in range(ROUNDS):
        await memory.take()
        await memory.report(a=Outcome(outputs="no"))
    await memory.take()
    await memory.runtime.administration.mend(case, exlet="done", item="a", who="admin")
    await memory.until_status(case, "completed")
    assert (await memory.case(case)).outputs == {"a": "enough"}
