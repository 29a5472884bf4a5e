"""Rules change while a thousand cases run: every later exception sees the change, and nothing earlier does (EX-7)."""

import asyncio

import msgspec
import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity, Sequence, UserTask
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.sync import AttemptReport, AttemptStatus, Capacity, SyncRequest
from mendflow.core.rules import problems_of
from mendflow.services.recovery.rules.store import CONDITIONS_PER_SLICE
from tests.services.conftest import HandPilot
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set, tree

CASES = 1_000
ROOM = Capacity(slots=2 * CASES, cpus=2.0 * CASES, memory_bytes=1 << 40, disk_bytes=1 << 40)
ONE = flow(JobActivity(name="a", command="true"))
TWO = flow(Sequence(name="s", body=(JobActivity(name="a", command="true"), JobActivity(name="b", command="true"))))


def completing(word: str) -> RuleSet:
    """Rules that complete whatever fails with this word."""
    done = exlet(word, mend(Primitive.COMPLETE, outputs=word))
    trees = {ExceptionType.ABORT: {"*": tree(("true", word))}}
    return RuleSet(name="f", trees=trees, exlets={word: done})


async def documents(world: World) -> dict[str, bytes]:
    await world.runtime.ledger.settled()
    return {found.id: found.body async for found in world.store.scan("decision")}


class Large(HandPilot):
    """A pilot that holds all the jobs of a thousand cases."""

    def __init__(self, world: World) -> None:
        super().__init__(world.domain, "large", ROOM)

    async def fail(self, item: str, *, most: int) -> int:
        """Fail so many of the held jobs of an item."""
        failing = [each for each in self.held if each.spec.item == item][:most]
        still = [each for each in self.held if each not in failing]
        self.serial += 1
        request = SyncRequest(
            pilot=self.name,
            serial=self.serial,
            heard=self.heard,
            host="here",
            capacity=ROOM,
            want=0,
            running=[AttemptStatus(each.job, each.fence, "running", Measurements()) for each in still],
            reports=[AttemptReport(each.job, each.fence, FAILED) for each in failing],
        )
        answer = await self.domain.sync(request)
        assert len(answer.accepted) == len(failing)
        self.heard = self.serial
        self.held = [*still, *answer.jobs]
        return len(failing)


async def fetch(world: World, pilot: HandPilot, item: str, count: int) -> None:
    async def there() -> bool:
        await pilot.sync(want=2 * CASES, wait_ms=10)
        return sum(each.spec.item == item for each in pilot.held) >= count

    await world.until(there, f"{count} jobs {item}")


@pytest.mark.full
async def test_a_change_holds_for_all_later_exceptions_of_a_thousand_running_cases_and_for_none_earlier(
    memory: World,
) -> None:
    # EX-7
    pilot = Large(memory)
    await memory.put(completing("first"))
    cases = [await memory.start(ONE) for _ in range(CASES)]
    await fetch(memory, pilot, "a", CASES)
    assert sum([await pilot.fail("a", most=50) for _ in range(10)]) == CASES // 2
    await memory.quiet()
    earlier = await documents(memory)
    assert len(earlier) == CASES // 2
    await memory.put(completing("second"))
    assert sum([await pilot.fail("a", most=50) for _ in range(10)]) == CASES // 2
    for case in cases:
        await memory.until_status(case, "completed")
    after = await documents(memory)
    assert {id: after[id] for id in earlier} == earlier, "what was decided stays as it was"
    said = [msgspec.json.decode(body, type=Decision) for id, body in after.items() if id not in earlier]
    assert len(said) == CASES // 2
    assert {(each.exlet, each.conclusion.version) for each in said if each.conclusion} == {("second", 2)}


@pytest.mark.full
async def test_rules_that_come_in_the_middle_of_a_storm_split_it_in_two(memory: World) -> None:
    # EX-7: whoever was asked before the change was answered by the old rules, whoever after by the new ones
    pilot = Large(memory)
    await memory.put(completing("v1"))
    for _ in range(200):
        await memory.start(ONE)
    await fetch(memory, pilot, "a", 200)

    async def change() -> None:
        for number in range(2, 12):
            await memory.runtime.exceptions.rules.put(completing(f"v{number}"), author="ann")
            await asyncio.sleep(0)

    async def storm() -> None:
        while await pilot.fail("a", most=20):
            await asyncio.sleep(0)

    await asyncio.gather(storm(), change())
    await memory.quiet()
    found = await memory.runtime.exceptions.decisions.search([], limit=1_000)
    assert len(found) == 200
    assert all(each.conclusion is not None and each.exlet == f"v{each.conclusion.version}" for each in found)
    versions = [each.conclusion.version for each in sorted(found, key=lambda each: each.at) if each.conclusion]
    assert versions == sorted(versions)


async def test_an_exlet_under_way_is_the_one_of_its_own_version_also_after_a_restart(world: World) -> None:
    # EX-7
    hold = UserTask(name="hold", role="clerk")
    old = exlet("fix", hold, mend(Primitive.COMPLETE, outputs="old"))
    new = exlet("fix", mend(Primitive.COMPLETE, outputs="new"))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "fix"), exlets=[old]))
    case = await world.start(flow(JobActivity(name="a", command="true"), outputs={"a": "${{ jobs.a.outputs }}"}))
    await world.take()
    await world.report(a=FAILED)
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "fix"), exlets=[new]))
    await world.restart()
    [task] = await world.domain.worklist(state="offered")
    await world.domain.complete(task.id, None, who="ann")
    await world.until_status(case, "completed")
    assert (await world.case(case)).outputs == {"a": "old"}


async def test_a_point_that_was_passed_is_not_asked_again_after_a_restart(world: World) -> None:
    # EX-7: a rule that comes later does not reach back
    case = await world.start(TWO)
    assert await world.take() == ["a"]
    stop = exlet("stop", mend(Primitive.REMOVE, "case"))
    await world.put(rule_set("f", ExceptionType.ITEM_PRE, ("true", "stop"), exlets=[stop], task="a"))
    await world.restart()
    await world.report(a=Outcome())
    assert await world.take() == ["b"]
    assert await world.decisions(CaseId(case)) == []


async def test_an_exlet_whose_name_could_do_harm_is_refused_with_its_rules(world: World) -> None:
    bad = rule_set("f", ExceptionType.ABORT, ("true", "../../x"), exlets=[exlet("../../x", mend(Primitive.RESTART))])
    with pytest.raises(BadFlow, match="not a valid name for a flow"):
        await world.runtime.exceptions.rules.put(bad)
    assert "f" not in {each.name for each in world.runtime.exceptions.rules.all()}


async def test_others_are_served_while_many_rules_are_judged(memory: World) -> None:
    # EX-5
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await memory.put(
        rule_set("f", ExceptionType.ABORT, *((f"job.attempts == {each}", "") for each in range(1000, 1400)))
    )
    beside.cancel()
    assert turns >= 400 // CONDITIONS_PER_SLICE


def test_the_conditions_of_what_is_no_tree_are_not_judged() -> None:
    lost = {id: Rule(id=id, condition="1 +", exlet="none") for id in (1, 2)}
    [problem] = problems_of(RuleSet(name="f", trees={ExceptionType.ABORT: {"a": RuleTree(lost, 1)}}))
    assert problem == "abort/a: rule 2 hangs on no other"
