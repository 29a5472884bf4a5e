"""The same for what people do: a crash at any write of a raise, a mend, an application or a rejection leaves it undone,
or it is finished after the start. Nothing is skipped, nothing is done twice, and the case goes on.

A person whose command got no answer gives it again, and is content if it turns out to be done."""

import asyncio
import tempfile
from abc import abstractmethod
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Call, Flow, Input, JobActivity, UserTask
from mendflow.core.model.jobs import Job as JobDocument
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.repair_views import RejectRequest, RepairRequest, RuleSpec
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.notices import NOTICES
from tests.services.recovery.kit import exlet, flow, mend, rule_set
from tests.services.recovery.test_crashes import Story, journal

A = JobActivity(name="a", command="true", env={"N": "1"})
WRONG = exlet("wrong", mend(Primitive.SUSPEND), UserTask(name="hold", role="clerk"))
RIGHT = exlet("right", mend(Primitive.WRITE, values={"N": "9"}), mend(Primitive.NOTIFY, message="put right"))
DRY = exlet("dry", mend(Primitive.NOTIFY, message="put right"))
FLOOD = 'trigger == "flood"'


class Command(Story):
    """Somebody does one thing to one case. The crash is at that many writes after he began."""

    what: Flow = flow(A)
    rules = RuleSet(name="f")
    ends = "completed"
    number = 1
    worklets: tuple[Flow, ...] = ()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [])
        self.cases: list[str] = []

    async def ready(self) -> bool:
        """Whether it is time for the command."""
        return bool(self.world.pilot.held)

    @abstractmethod
    async def command(self) -> None: ...

    async def tell_with(self, writes: int) -> int:
        """The whole story with a crash after so many writes of the command; how many writes it had from there on."""
        await self._begin()
        while not await self.ready():
            await self.world.pilot.sync(want=4, wait_ms=5)
        await self.world.quiet()
        before = self.store.written
        self.store.crash_at(before + writes)
        await self.again(self.command)
        for _ in range(1_000):
            if await self.again(self._over):
                return self.store.written - before
            await self.again(self._work)
        raise AssertionError(f"the story has no end: {[await self.world.decisions(case) for case in self.cases]}")

    async def _begin(self) -> None:
        world = self.world
        await world.server.open()
        for each in (self.what, *self.worklets):
            await world.domain.deploy(each)
        await world.put(self.rules)
        self.cases = [str((await world.domain.start("f", {}, who="me")).id) for _ in range(self.number)]

    async def _over(self) -> bool:
        return not await self._open() and all([await self.world.status(case) == self.ends for case in self.cases])

    def outcome(self, item: str, job: str) -> Outcome:
        return Outcome()

    async def check(self) -> None:
        for case in self.cases:
            assert [word for word, times in (await journal(self.store, case)).items() if times > 1] == []
        told = [entry for entry in await self.store.read(NOTICES) if b"put right" in entry]
        assert len(told) == len(self.cases)

    async def found(self) -> list[Decision]:
        documents = [msgspec.json.decode(each.body, type=Decision) async for each in self.store.scan("decision")]
        return sorted(documents, key=lambda each: each.id)


class Rejecting(Command):
    rules = rule_set("f", ExceptionType.ITEM_PRE, ("true", "wrong"), exlets=[WRONG])

    async def ready(self) -> bool:
        return bool(await self.world.domain.worklist(state="offered"))

    async def command(self) -> None:
        wish = RejectRequest(decision=f"{self.cases[0]}/1/item-pre", flow=RIGHT, condition='item.data.N == "1"')
        try:
            await self.world.domain.reject_choice(wish, who="ann")
        except Conflict as conflict:
            assert "rejected already" in conflict.message

    async def check(self) -> None:
        await super().check()
        [job] = [msgspec.json.decode(found.body, type=JobDocument) async for found in self.store.scan("job")]
        assert job.spec.env == {"N": "9"}
        first, second = await self.found()
        assert (first.state, first.replaced_by, second.state, second.result) == (
            "rejected",
            second.id,
            "done",
            "completed",
        )
        exlets = {each.id: each.status for each in await self.world.domain.cases() if each.mends}
        assert exlets == {first.exlet_case: "cancelled", second.exlet_case: "completed"}
        assert [each.state for each in await self.world.domain.worklist()] == ["withdrawn"]
        rules = self.world.runtime.exceptions.rules.newest("f").trees[ExceptionType.ITEM_PRE]["a"].rules
        assert len(rules) == 2, "the correction is there once"


class RejectingAWorklet(Command):
    what = flow(Call(name="a", inputs={}), inputs={"n": Input(default=50)})
    worklets = (flow(JobActivity(name="small", command="true"), "small"), flow(A, "large"))
    rules = rule_set("f", ExceptionType.SELECTION, ("true", "small"))

    async def command(self) -> None:
        wish = RejectRequest(decision=f"{self.cases[0]}/1/selection", exlet="large", condition="case.data.n > 10")
        try:
            await self.world.domain.reject_choice(wish, who="ann")
        except Conflict as conflict:
            assert "rejected already" in conflict.message

    async def check(self) -> None:
        assert set((await journal(self.store, self.cases[0])).values()) <= {1}
        first, second = await self.found()
        assert (first.exlet, first.state, second.exlet, second.state) == ("small", "rejected", "large", "done")
        assert first.replaced_by == second.id
        called = Counter((each.flow, each.status) for each in await self.world.domain.cases() if each.parent)
        assert called == {("small", "cancelled"): 1, ("large", "completed"): 1}


class RejectingAWorkletByHand(RejectingAWorklet):
    async def command(self) -> None:
        wish = RejectRequest(decision=f"{self.cases[0]}/1/selection", exlet="large")
        try:
            await self.world.domain.reject_choice(wish, who="ann")
        except Conflict as conflict:
            assert "rejected already" in conflict.message

    async def check(self) -> None:
        await super().check()
        assert self.world.runtime.exceptions.rules.newest("f").version == 1, "no rule was made"


class Raising(Command):
    """What is raised is known, or it is not and somebody mends it."""

    async def command(self) -> None:
        [case] = self.cases
        waiting = [each for each in await self.found() if each.state == "waiting"]
        if not waiting and not await self.found():
            await self.world.domain.raise_trigger(case, "flood", who="ann")
        if not any(each.exlet for each in await self.found()):
            await self.world.domain.mend(case, RepairRequest(flow=DRY, condition=FLOOD), who="ann")

    async def check(self) -> None:
        await super().check()
        [decision] = await self.found()
        assert (decision.state, decision.exlet) == ("done", "dry")
        told = [entry for entry in await self.store.read(NOTICES) if b"no rule knows it" in entry]
        assert len(told) == 1
        rules = self.world.runtime.exceptions.rules.newest("f").trees[ExceptionType.CASE_EXTERNAL][""].rules
        assert len(rules) == 1


class RaisingWhatIsKnown(Command):
    rules = rule_set("f", ExceptionType.CASE_EXTERNAL, (FLOOD, "dry"), exlets=[DRY])

    async def command(self) -> None:
        if not await self.found():
            await self.world.domain.raise_trigger(self.cases[0], "flood", who="ann")


class MendingAsItIs(Command):
    """No exception at all: somebody wants an exlet for the case as it is."""

    async def command(self) -> None:
        if not await self.found():
            await self.world.domain.mend(self.cases[0], RepairRequest(flow=DRY), who="ann")

    async def check(self) -> None:
        await super().check()
        [decision] = await self.found()
        assert (decision.state, decision.exlet) == ("done", "dry")


class Applying(Command):
    """A rule is made for the first of two that wait, and applied to both."""

    number = 2

    async def ready(self) -> bool:
        if len(self.world.pilot.held) < self.number:
            return False
        for case in self.cases:
            await self.world.domain.raise_trigger(case, "flood", who="ann")
        return True

    async def command(self) -> None:
        [group] = await self.world.domain.failures()
        await self.world.domain.add_rule(RuleSpec(condition=FLOOD, exlet="dry", flow=DRY, group=group.id), who="ann")
        await self.world.domain.apply_rules(group.id, who="ann")

    async def check(self) -> None:
        await super().check()
        assert [(each.state, each.exlet) for each in await self.found()] == [("done", "dry")] * 2
        rules = self.world.runtime.exceptions.rules.newest("f").trees[ExceptionType.CASE_EXTERNAL][""].rules
        assert len(rules) == 1


async def play(story: type[Command], writes: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        told = story(Path(folder))
        written = await told.tell_with(writes)
        await told.world.runtime.ledger.settled()
        await told.check()
        assert [each.id async for each in told.store.scan("open-decision")] == []
        await told.world.server.close()
        return written


STORIES = [
    Rejecting,
    RejectingAWorklet,
    RejectingAWorkletByHand,
    Raising,
    RaisingWhatIsKnown,
    MendingAsItIs,
    Applying,
]


@pytest.mark.parametrize("story", STORIES)
def test_a_crash_at_any_write_of_a_persons_command_neither_skips_nor_repeats_anything(story: type[Command]) -> None:
    # EX-8 EX-9 EX-7
    whole = asyncio.run(play(story, 10_000))
    assert whole > 5
    for writes in range(whole):
        asyncio.run(play(story, writes))
