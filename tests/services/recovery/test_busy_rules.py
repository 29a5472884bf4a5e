"""Rules may make whoever asks them wait. What happens meanwhile stands, and no other project waits. SE-3"""

import asyncio
from typing import Any

import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.services.recovery.rules import store
from tests.patience import PATIENCE_S
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true")
SKIP = exlet("skip", mend(Primitive.COMPLETE, item="a", outputs="skipped"))
STOP = exlet("stop", mend(Primitive.REMOVE, "case"))


class BusyRules:
    """Rules that answer when the test lets them."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_answer = 0, asyncio.Event()
        self._judge = world.runtime.exceptions.rules.judge
        monkeypatch.setattr(world.runtime.exceptions.rules, "judge", self.judge)

    async def judge(self, *about: Any, **more: Any) -> Any:
        self.asked += 1
        await self.may_answer.wait()
        return await self._judge(*about, **more)


async def test_a_person_who_mends_while_the_rules_are_asked_is_not_overruled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = world.runtime.administration
    case = await world.start(flow(A))
    waiting = await office.raise_exception(case, "flood", who="ann")
    await world.put(rule_set("f", ExceptionType.CASE_EXTERNAL, ("true", "stop"), exlets=[STOP]))
    busy = BusyRules(world, monkeypatch)
    asking = asyncio.create_task(office.apply(waiting.id, who="ben"))
    while not busy.asked:
        await asyncio.sleep(0)
    await office.mend(case, exlet="skip", steps=SKIP, who="ann")
    busy.may_answer.set()
    with pytest.raises(Conflict, match="was mended while the rules were asked"):
        await asking
    await world.until_status(case, "completed")
    assert [(each.exlet, each.state) for each in await world.decisions(case)] == [("skip", "done")]


async def test_a_trigger_that_is_raised_twice_at_once_is_decided_once(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, heard = memory.runtime.administration, list[Any]()
    case = await memory.start(flow(A))
    decide = office._external.decide

    async def twice(event: Any, **more: Any) -> Decision:
        heard[:] = await asyncio.gather(decide(event, **more), decide(event, **more))
        found = heard[0]
        assert isinstance(found, Decision)
        return found

    monkeypatch.setattr(office._external, "decide", twice)
    busy = BusyRules(memory, monkeypatch)
    raising = asyncio.create_task(office.raise_exception(case, "flood", who="ann"))
    while busy.asked < 2:
        await asyncio.sleep(0)
    raised = asyncio.Event()
    begin = memory.runtime.exceptions.decisions.begin

    def begin_and_tell(decision: Decision) -> None:
        begin(decision)
        raised.set()

    monkeypatch.setattr(memory.runtime.exceptions.decisions, "begin", begin_and_tell)
    busy.may_answer.set()
    await raising
    assert raised.is_set() and heard[0] is heard[1]


async def test_no_project_without_rules_of_its_own_waits_for_another(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "UNITS_PER_S", 0.001)
    monkeypatch.setattr(store, "UNITS_AT_ONCE", 1)
    costly = ('fault.message.split("").size() > 100000', "stop")
    await memory.put(rule_set(DEFAULT_RULES, ExceptionType.ABORT, costly, exlets=[STOP]))
    for name in ("red", "blue"):
        await memory.domain.deploy(flow(A, name), project=name)
    for name in ("red", "blue"):
        case = (await memory.domain.start(name, {}, who="me")).id
        await memory.take()
        async with asyncio.timeout(PATIENCE_S):
            await memory.report(a=FAILED)
        await memory.until_status(case, "failed")
    paces = memory.runtime.exceptions.rules._paces
    now = memory.server.clock.now() / 1000
    assert paces.of("red", now).wait_s(0, now) > 0, "its conditions have done much work"
