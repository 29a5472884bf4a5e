"""A world that crashes between any two writes, with a flow and a repair that know how to go on.

The flow is one document: what it was told. The repair is one document for each failure: wait in the next level, then
submit again, as an exlet of one step would. After a crash both do what the engine does: give their orders again."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Outcome, Submission
from mendflow.core.recovery.ids import generation_of
from mendflow.services.base.cluster import HOME_KIND
from mendflow.services.base.contracts import Change, Failure
from mendflow.services.recovery.levels import LevelEntry, Mode
from mendflow.stores.contract import Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.proxy.world import EXIT, JOB, World, bad, new, turns

FLOW_KIND, STEP_KIND = "told", "step"
ROUNDS_MAX = 200
LEVELS = 2


class CrashingStore(MemoryStore):
    """Refuses the writes of these numbers, and whatever comes after them in the same batch."""

    def __init__(self, crashes: Iterable[int]) -> None:
        super().__init__()
        self.crashes = set(crashes)
        self.writes = 0

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        done: list[WriteDone | WriteConflict] = []
        for write in writes:
            self.writes += 1
            if self.writes in self.crashes:
                raise StoreUnavailable("the power is gone")
            done += await super().write([write])
        return done


class Told(msgspec.Struct):
    outcomes: list[Outcome]


class Step(msgspec.Struct, kw_only=True):
    key: str
    job: JobId
    level: int
    done: bool = False


class DurableWorld(World):
    """The job fails in all submissions before `good`, and then ends well. `mode` is that of the levels."""

    def __init__(self, crashes: Iterable[int], *, way: Submission, mode: Mode, good: int, retries: int = 0) -> None:
        self.crashing = CrashingStore(crashes)
        super().__init__(store=self.crashing)
        self.job = new(way=way, retries=retries)
        self.mode = mode
        self.good = good
        self.steps: dict[str, Step] = {}
        self.outcomes: list[Outcome] = []
        self.entered: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # The repair

    async def failed(self, failure: Failure) -> bool:
        self.failures.append(failure)
        step = self.steps.get(failure.id)
        if step is None:
            if failure.level >= LEVELS:
                return False
            step = self.steps[failure.id] = Step(key=failure.id, job=failure.job, level=failure.level + 1)
            self.ledger.touch(STEP_KIND, step.key, step)
            self._carry_out(step)
        return not step.done

    def _carry_out(self, step: Step) -> None:
        task = asyncio.get_running_loop().create_task(self._wait(step))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, step: Step) -> None:
        try:
            await self.levels.enter(
                step.key, level=step.level, job=step.job, case=CaseId("c-1"), item=ItemId("align"), mode=self.mode
            )
        except StoreUnavailable:
            pass  # it is entered again after the crash

    async def due(self, entry: LevelEntry) -> None:
        await self.proxy.resubmit(entry.job, Change(level=entry.level), key=entry.key)
        self.steps[entry.key].done = True
        self.ledger.touch(STEP_KIND, entry.key, self.steps[entry.key])

    # The flow

    async def _finished(self, case: CaseId, serial: int, outcome: Outcome) -> None:
        if not self.outcomes:
            self.outcomes.append(outcome)
            self.ledger.touch(FLOW_KIND, "flow", Told(self.outcomes))

    async def go_on(self) -> None:
        """What follows a start: read what is on disk, give every order again."""
        self.steps, self.outcomes = {}, []
        async for found in self.store.scan(STEP_KIND):
            self.ledger.known(STEP_KIND, found.id, found.version)
            step = msgspec.json.decode(found.body, type=Step)
            self.steps[step.key] = step
        flow = await self.store.get(FLOW_KIND, "flow")
        if flow is not None:
            self.outcomes = msgspec.json.decode(flow.body, type=Told).outcomes
        trees = await self.homes.take([found async for found in self.store.scan(HOME_KIND)])
        self.homes.begin_loading(trees)
        await self.levels.load({tree.root for tree in trees})
        self.homes.end_loading(trees)
        self.levels.start()
        if not self.outcomes:
            await self.submit(self.job, reissued=True)
        for step in list(self.steps.values()):
            if not step.done:
                self._carry_out(step)

    async def play(self) -> None:
        """Run until the flow has heard, whatever crashes on the way."""
        await self.go_on()
        for _ in range(ROUNDS_MAX):
            try:
                await self._round()
                await self.ledger.settled()
            except StoreUnavailable:
                pass
            if self.broken:
                await self.crash()
                try:
                    await self.go_on()
                except StoreUnavailable:
                    continue
            elif self.outcomes:
                return
        raise AssertionError(f"the flow never heard: {self.failures[-1:]}, {self.proxy.conversation(JOB)}")

    async def _round(self) -> None:
        running = self.running()
        assert len(running) <= 1, "one submission of the job at a time"
        well = bool(running) and generation_of(running[0]) >= self.good
        await self.sync(align=Outcome(outputs="good") if well else bad(EXIT))
        await turns()
        self.levels.drain()
        await turns()
