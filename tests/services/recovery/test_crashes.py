"""Whatever write a server is stopped at, in the middle of exlets, of levels and of unwinding: nothing is skipped and
nothing is done twice.

A store here takes a number of writes and then fails in the middle of a batch, as a machine does that loses its power:
what was written stays, the rest never was. The house throws its services away and builds them anew from that."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mendflow.core.engine.messages import Event
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.flow import Call, Input, JobActivity, Scope, Sequence
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job as JobDocument
from mendflow.core.model.jobs import JobState, Outcome
from mendflow.core.model.repair import Decision, ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.notices import NOTICES
from mendflow.services.cases.live_case import journal_of
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.examples import examples
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, tree

WRITES = 110
"""About so many writes has the whole story; a crash is at one of them."""
READS = 96
"""And at least so many reads, about."""
STORY_READS = 48
"""About so many of them are made once, whatever the machine; what the clock asks for again and again is not counted."""
BY_THE_CLOCK = frozenset(
    {
        *("alert", "decision", "learned-group", "learned-usage", "learning"),
        *("open-decision", "proposal", "retention"),
    }
)


class FailingStore(MemoryStore):
    """Fails once at each of these counts of writes, in the middle of whatever batch that is in; and once at each of
    these counts of reads."""

    def __init__(self, crashes: Many[int], unanswered: Many[int] = ()) -> None:
        super().__init__()
        self._crashes = sorted(set(crashes), reverse=True)
        self.unanswered = frozenset(unanswered)
        self.written = 0
        self.asked = 0
        self.asked_once = 0

    def _ask(self, kind: str) -> None:
        self.asked += 1
        self.asked_once += kind not in BY_THE_CLOCK
        if self.asked in self.unanswered:
            raise StoreUnavailable("the store does not answer")

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        self._ask(kind)
        return await super().get(kind, id)

    async def get_many(self, kind: str, ids: Many[str]) -> list[StoredDocument]:
        self._ask(kind)
        return await super().get_many(kind, ids)

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        self._ask(stream)
        return await super().read(stream, start, limit)

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        self._ask(kind)
        async for found in super().scan(kind, prefix):
            yield found

    def crash_at(self, written: int) -> None:
        self._crashes = [written]

    async def write(self, writes: Many[Write]) -> list[WriteDone | WriteConflict]:
        if self._crashes and self.written + len(writes) > self._crashes[-1]:
            kept = max(0, self._crashes.pop() - self.written)
            self.written += kept
            await super().write(writes[:kept])
            raise StoreUnavailable("the power is gone")
        self.written += len(writes)
        return await super().write(writes)


class HastyClock(SystemClock):
    """Waits for the store to come back are short here."""

    async def sleep(self, ms: int) -> None:
        await asyncio.sleep(min(ms, 20) / 1000)


HOTEL = Scope(
    name="booked",
    body=JobActivity(name="hotel", command="true"),
    compensation=JobActivity(name="undo-hotel", command="true"),
)
STORY = flow(
    Sequence(
        name="s",
        body=(
            HOTEL,
            JobActivity(name="a", command="true", env={"SEATS": "0"}),
            JobActivity(name="b", command="true"),
            JobActivity(name="c", command="true"),
        ),
    )
)
WORKLET = flow(
    JobActivity(name="venue", command="true"),
    "worklet",
    inputs={"n": Input()},
    outputs={"seats": "${{ jobs.venue.outputs }}"},
)
BEFORE_A = exlet(
    "before-a",
    mend(Primitive.SUSPEND),
    Call(name="w", flow="worklet", inputs={"n": 1}),
    mend(Primitive.WRITE, values={"SEATS": "${{ jobs.w.outputs.seats }}"}),
    mend(Primitive.NOTIFY, message="another venue"),
    mend(Primitive.CONTINUE),
)
LATER = exlet("later", mend(Primitive.RETRY_LATER, level=1))
UNDO = exlet("undo", mend(Primitive.UNWIND), mend(Primitive.FAIL, throw=True))
RULES = RuleSet(
    name="f",
    trees={
        ExceptionType.ITEM_PRE: {"a": tree(("true", "before-a"))},
        ExceptionType.ABORT: {"b": tree(("job.generation == 1", "later")), "c": tree(("true", "undo"))},
    },
    exlets={"before-a": BEFORE_A, "later": LATER, "undo": UNDO},
)


class Story:
    """Drives one case through its whole story, past every crash."""

    what, rules, ends = STORY, RULES, "failed"

    def __init__(self, folder: Path, crashes: Many[int], unanswered: Many[int] = ()) -> None:
        self.store = FailingStore(crashes, unanswered)
        rules = ServerSettings(files_roots=None, levels_ms=(10,), check_ms=1_000)
        self.world = World(self.store, folder, rules)
        self.world.server = Server(
            store=self.store,
            file_store=self.world.server.file_store,
            clock=HastyClock(),
            settings=rules,
            version="test",
        )
        self.world.domain = type(self.world.domain)(self.world.server)
        self.world.pilot.domain = self.world.domain

    async def again(self, do: Any) -> Any:
        """Try until the store is there."""
        for _ in range(500):
            try:
                return await do()
            except StoreUnavailable:
                await asyncio.sleep(0.005)
        raise AssertionError("the store never came back")

    async def tell(self) -> CaseId:
        world = self.world
        await self.again(world.server.open)
        await self.again(lambda: world.domain.deploy(self.what))
        await self.again(lambda: world.domain.deploy(WORKLET))

        async def put() -> None:
            if not any(each.name == "f" for each in world.runtime.exceptions.rules.all()):
                await world.runtime.exceptions.rules.put(self.rules, author="test")
            await world.runtime.ledger.settled()

        await self.again(put)
        case = await self.again(self._started)
        for _ in range(2_000):
            if await self.again(lambda: world.status(case)) == self.ends and not await self.again(self._open):
                return CaseId(case)
            await self.again(self._work)
        raise AssertionError(f"the story has no end: {await world.decisions(case)}")

    async def _started(self) -> str:
        return (await self.world.domain.start("f", {}, who="me", key="the case")).id

    async def _open(self) -> bool:
        await self.world.runtime.ledger.settled()
        return bool(self.world.runtime.exceptions.decisions.open)

    async def _work(self) -> None:
        pilot = self.world.pilot
        await pilot.sync(want=4, wait_ms=5)
        reports = {str(each.spec.item): self.outcome(str(each.spec.item), each.job) for each in pilot.held}
        if reports:
            await pilot.exchange(reports)

    def outcome(self, item: str, job: str) -> Outcome:
        if item == "c" or (item == "b" and "~" not in job):
            return FAILED
        return Outcome(outputs=400) if item == "venue" else Outcome()


async def journal(store: MemoryStore, case: str) -> Counter[str]:
    """What exlets did to a case: each command with the step that gave it."""
    entries = [msgspec.json.decode(entry, type=Event) for entry in await store.read(journal_of(CaseId(case)))]
    given = [(type(entry.fact).__name__, entry.fact) for entry in entries]
    found = [(command, getattr(fact, "item", None) or "", getattr(fact, "by", "")) for command, fact in given]
    return Counter(f"{command} {item} by {by}" for command, item, by in found if by)


async def check(store: MemoryStore, case: CaseId) -> None:
    jobs = [msgspec.json.decode(found.body, type=JobDocument) async for found in store.scan("job")]
    assert Counter(str(job.spec.item) for job in jobs) == Counter(
        {"hotel": 1, "venue": 1, "a": 1, "b": 2, "c": 1, "undo-hotel": 1}
    )
    assert {job.id for job in jobs if job.state is not JobState.COMPLETED} == {f"{case}/3", f"{case}/4"}
    [a] = [job for job in jobs if job.spec.item == "a"]
    assert a.spec.env == {"SEATS": "400"}
    assert set((await journal(store, case)).values()) == {1}
    found = [msgspec.json.decode(each.body, type=Decision) async for each in store.scan("decision")]
    assert sorted((each.exlet, each.state, each.result) for each in found) == [
        ("before-a", "done", "completed"),
        ("later", "done", "recovered"),
        ("undo", "done", "failed"),
    ]
    assert [each.id async for each in store.scan("open-decision")] == []
    assert [each.id async for each in store.scan("level")] == []
    told = [entry for entry in await store.read(NOTICES) if b"another venue" in entry]
    assert len(told) == 1


async def play(crashes: Many[int] = (), unanswered: Many[int] = ()) -> FailingStore:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder), crashes, unanswered)
        case = await story.tell()
        story.store.unanswered = frozenset()
        await story.world.runtime.ledger.settled()
        await check(story.store, case)
        await story.world.server.close()
        return story.store


async def test_the_story_without_a_crash() -> None:
    # EX-4 AD-4 AD-5
    store = await play()
    assert WRITES * 0.7 < store.written < WRITES * 1.5
    assert store.asked > READS * 0.7
    assert STORY_READS * 0.7 < store.asked_once < STORY_READS * 1.5


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(3, WRITES), min_size=1, max_size=4))
@example([60])
def test_a_crash_at_any_write_neither_skips_nor_repeats_anything(crashes: list[int]) -> None:
    # AD-2 AD-4 AD-5 EX-4: exlets, levels and unwinding are durable
    asyncio.run(play(crashes))


@pytest.mark.parametrize("question", range(1, READS + 1))
def test_a_question_that_the_store_does_not_answer_fails_no_exlet(question: int) -> None:  # law 7; AD-2 EX-4
    asyncio.run(play(unanswered=[question]))
