"""Whoever removes a case removes what mends it: its exlets stop, with all that they have called and submitted, whatever
moment a server is stopped at. Only the exlet that removes the case itself goes on to its end."""

import asyncio

import msgspec
import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Call, JobActivity, Parallel, Scope, Sequence, UserTask
from mendflow.core.model.jobs import Job as JobDocument
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set, tree
from tests.services.recovery.test_crashes_of_people import Command, play

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")
HOLD = UserTask(name="hold", role="clerk")
DEEP = Call(name="w", flow="outer")


INNER = flow(JobActivity(name="deep", command="true"), "inner")
OUTER = flow(Call(name="i", flow="inner"), "outer")


async def until_over(world: World, *cases: str) -> list[str]:
    for case in cases:
        await world.until_status(case, "completed", "failed", "cancelled")
    return [await world.status(case) for case in cases]


async def test_removing_a_case_stops_its_exlets_and_all_that_they_have_begun(world: World) -> None:
    # EX-2 EX-4
    await world.domain.deploy(INNER)
    await world.domain.deploy(OUTER)
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "fix"), exlets=[exlet("fix", DEEP)]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    assert await world.take() == ["deep"]
    await world.domain.cancel(case, who="ann", reason="no longer wanted")
    below = (f"{case}.x1", f"{case}.x1.1", f"{case}.x1.1.1")
    assert await until_over(world, *below) == ["cancelled"] * 3
    await world.quiet()
    await world.pilot.sync()
    assert world.pilot.held == []
    decision = await world.decision(case)
    assert (decision.state, decision.result) == ("failed", "removed")
    assert "no longer wanted" in decision.note
    assert "no longer wanted" in str((await world.case(below[0])).fault)
    assert not any("fix" in notice.message for notice in await world.domain.notices()), "who removed it knows"


async def test_the_exlet_that_removes_its_case_goes_on_and_the_others_stop(world: World) -> None:
    # EX-2 remove case
    gone = exlet("gone", mend(Primitive.REMOVE, "case"), mend(Primitive.NOTIFY, message="gone for good"))
    rules = rule_set("f", ExceptionType.ABORT, ("true", "gone"), exlets=[gone, exlet("fix", HOLD)], task="a")
    beside = rule_set("f", ExceptionType.ABORT, ("true", "fix"), task="b")
    trees = {ExceptionType.ABORT: {**rules.trees[ExceptionType.ABORT], **beside.trees[ExceptionType.ABORT]}}
    await world.put(msgspec.structs.replace(rules, trees=trees))
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await world.take(items=2)
    await world.report(b=FAILED)
    await world.until_decided(case, "running")
    await world.report(a=FAILED)
    await world.until_status(case, "cancelled")
    assert await until_over(world, f"{case}.x1", f"{case}.x2") == ["cancelled", "completed"]
    await world.until_decided(case, "done")
    found = {each.exlet: (each.state, each.result) for each in await world.decisions(case)}
    assert found == {"fix": ("failed", "removed"), "gone": ("done", "removed")}
    assert any("gone for good" in notice.message for notice in await world.domain.notices())


async def test_what_waits_in_a_level_leaves_it_when_its_case_is_removed(memory: World) -> None:
    # AD-4
    later = exlet("later", mend(Primitive.RETRY_LATER, level=1, wait_ms=600_000))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "later"), exlets=[later]))
    case = await memory.start(flow(A))
    await memory.take()
    await memory.report(a=FAILED)

    async def waiting() -> int:
        return (await memory.domain.levels())[0].waiting

    await memory.until(waiting)
    await memory.domain.cancel(case, who="ann")
    assert await until_over(memory, f"{case}.x1") == ["cancelled"]
    await memory.quiet()
    assert await waiting() == 0
    assert [found.id async for found in memory.store.scan("level")] == []


async def test_the_exlet_of_an_item_that_is_removed_leaves_its_level_and_ends(memory: World) -> None:
    # AD-4
    later = exlet("later", mend(Primitive.RETRY_LATER, level=1, wait_ms=600_000))
    await memory.put(rule_set("f", ExceptionType.ABORT, ("true", "later"), exlets=[later], task="a"))
    case = await memory.start(flow(Parallel(name="p", branches=(A, B))))
    await memory.take(items=2)
    await memory.report(a=FAILED)

    async def waiting() -> int:
        return (await memory.domain.levels())[0].waiting

    await memory.until(waiting)
    await memory.domain.cancel(case, "a", who="ann", reason="no longer wanted")
    assert await until_over(memory, f"{case}.x1") == ["cancelled"]
    await memory.quiet()
    assert await waiting() == 0
    decision = await memory.decision(case)
    assert (decision.state, decision.result) == ("failed", "removed")
    assert "item a of case" in decision.note and "no longer wanted" in decision.note
    assert not any("later" in notice.message for notice in await memory.domain.notices()), "who removed it knows"
    await memory.report(b=Outcome())
    assert await until_over(memory, case) == ["completed"]


async def test_an_item_that_is_held_and_removed_waits_for_nobody(world: World) -> None:
    # EX-9
    held = msgspec.structs.replace(flow(Parallel(name="p", branches=(A, B))), on_unhandled="hold")
    case = await world.start(held)
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.until_decided(case, "waiting")
    await world.domain.cancel(case, "a", who="ann")
    await world.quiet()
    assert (await world.case(case)).held == []
    assert world.runtime.exceptions.decisions.open == {}


async def test_nothing_waits_for_a_person_in_a_case_that_is_removed(world: World) -> None:
    # EX-9
    case = await world.start(flow(A))
    await world.domain.raise_trigger(case, "flood", who="ann")
    await world.domain.cancel(case, who="ann")
    await world.quiet()
    assert (await world.decision(case)).state == "ignored"
    assert world.runtime.exceptions.decisions.open == {}


async def test_an_unwinding_that_has_begun_goes_on_when_its_case_is_removed(world: World) -> None:
    # EX-2: what it has taken upon itself to undo nobody else would undo
    hotel = JobActivity(name="hotel", command="true")
    booked = Scope(name="booked", body=hotel, compensation=JobActivity(name="undo-hotel", command="true"))
    undo = exlet("undo", mend(Primitive.UNWIND))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "undo"), exlets=[undo]))
    case = await world.start(flow(Sequence(name="s", body=(booked, A))))
    await world.take()
    await world.report(hotel=Outcome())
    await world.take()
    await world.report(a=FAILED)
    assert await world.take() == ["undo-hotel"]
    await world.domain.cancel(case, who="ann")
    assert await until_over(world, case, f"{case}.x1") == ["cancelled", "cancelled"]
    await world.restart()
    assert await world.take() == ["undo-hotel"]
    await world.pilot.exchange({"undo-hotel": Outcome()})
    assert await until_over(world, f"{case}.x1.1") == ["completed"]


class RemovingByAnExlet(Command):
    """One exlet removes the case while another waits for somebody."""

    gone = exlet("gone", mend(Primitive.REMOVE, "case"), mend(Primitive.NOTIFY, message="put right"))
    rules = RuleSet(
        name="f",
        trees={
            ExceptionType.ITEM_PRE: {"a": tree(("true", "fix"))},
            ExceptionType.CASE_EXTERNAL: {"": tree(('trigger == "flood"', "gone"))},
        },
        exlets={"fix": exlet("fix", mend(Primitive.SUSPEND), HOLD), "gone": gone},
    )
    ends = "cancelled"

    async def ready(self) -> bool:
        return bool(await self.world.domain.worklist(state="offered"))

    async def command(self) -> None:
        if not any(each.exlet == "gone" for each in await self.found()):
            await self.world.domain.raise_trigger(self.cases[0], "flood", who="ann")

    async def check(self) -> None:
        await super().check()
        found = {each.exlet: (each.state, each.result) for each in await self.found()}
        assert found == {"fix": ("failed", "removed"), "gone": ("done", "removed")}
        [case] = self.cases
        statuses = {each.id: each.status for each in await self.world.domain.cases()}
        assert statuses == {case: "cancelled", f"{case}.x1": "cancelled", f"{case}.x2": "completed"}
        assert [each.state for each in await self.world.domain.worklist()] == ["withdrawn"]


class Removing(Command):
    """Somebody removes a case while a worklet of a worklet of its exlet works."""

    rules = rule_set("f", ExceptionType.ITEM_PRE, ("true", "fix"), exlets=[exlet("fix", mend(Primitive.SUSPEND), DEEP)])
    ends = "cancelled"
    worklets = (INNER, OUTER)

    async def command(self) -> None:
        try:
            await self.world.domain.cancel(self.cases[0], who="ann", reason="no longer wanted")
        except Conflict as conflict:
            assert "is over" in conflict.message

    async def check(self) -> None:
        [case] = self.cases
        found = {each.id: each.status for each in await self.world.domain.cases()}
        assert found == {case: "cancelled", f"{case}.x1": "cancelled", f"{case}.x1.2": "cancelled"} | {
            f"{case}.x1.2.1": "cancelled"
        }
        assert [each.state for each in await self.world.decisions(case)] == ["failed"]
        await self.world.pilot.sync()
        assert self.world.pilot.held == []
        jobs = [msgspec.json.decode(each.body, type=JobDocument) async for each in self.store.scan("job")]
        assert [job.spec.item for job in jobs] == ["deep"]


@pytest.mark.parametrize("story", [Removing, RemovingByAnExlet])
def test_a_crash_at_any_write_of_a_removal_leaves_nothing_running(story: type[Command]) -> None:
    # EX-2 EX-4
    whole = asyncio.run(play(story, 10_000))
    for writes in range(whole):
        asyncio.run(play(story, writes))
