"""Long steps of cases, done beside the server by a process of its own.

An expression may do much work, and a case may evaluate one after the other. Within the server that would stand between
everybody else and an answer. So the server counts what the expressions of each project do. A project that has done more
than its share of late gets the rest aside: its events are taken at once and cut before their first step, and what was
cut is done where nobody waits, one step of each project at a time. A single step that turns out to be long is
interrupted within the server, as if it had not begun, and goes the same way. The outcome is the same, and so is the
journal: a step is a function of the state and the event."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final, Protocol

import msgspec

from mendflow.core.engine import Case, snapshot
from mendflow.core.engine.messages import Event, Order
from mendflow.core.engine.state import restore, restore_beside
from mendflow.core.expressions.work_budget import WORK
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.services.base.buckets import Bucket, BucketTable
from mendflow.services.base.module_processes import ENDED, TaskProcess

UNITS_PER_S: Final = 100_000
UNITS_AT_ONCE: Final = 400_000
"""Work that the expressions of one project may do within the server, in the units of the engine's meter."""

TIMER_UNITS: Final = 200
"""What a timer counts for: a case may set one that is due at once, again and again."""

LONG_UNITS: Final = 40_000
LONG_FOR_S: Final = 600.0
"""A step of more than so many units is interrupted within the server; from then on the steps of its project are done
aside for so long."""

INSTANCES_MAX: Final = 5_000
"""A case with more activities at once stays within the server, and is not interrupted: sending it there and back would
keep the others longer than its steps do."""

REST: Final = 9
"""After a step that was done aside its project waits so many times as long as sending the case there and back took:
that is work of the server too, and grows with the case."""

PROJECTS_MAX: Final = 10_000
RUNNER_MODULE: Final = "mendflow.services.cases.step_process"
ATTEMPTS_MAX: Final = 3
AGAIN_S: Final = 0.5


class StepTask(msgspec.Struct, frozen=True, array_like=True):
    """What the process is given: a case, or nothing for one that has not begun, the entries of its journal that it has
    not seen, and the event to apply behind them, if there is one."""

    state: bytes
    event: Event | None = None
    entries: list[bytes] = []


class StepResult(msgspec.Struct, frozen=True, array_like=True):
    """What it gives back: the case after all of it, the event with where it was cut, and what follows. `problem` is an
    internal error; then there is no case."""

    state: bytes = b""
    event: Event | None = None
    orders: list[Order] = []
    work: int = 0
    problem: str = ""


class StepRunner(Protocol):
    async def run(self, task: StepTask) -> StepResult: ...

    async def stop(self) -> None: ...


class DoneStep(msgspec.Struct, frozen=True):
    """`rest_s` is how long its project waits before the next one."""

    case: Case
    event: Event
    orders: list[Order]
    work: int
    rest_s: float


class LongSteps:
    """Counts the work of projects, and does the steps of those that have done too much aside."""

    def __init__(self, runner: StepRunner, now_s: Callable[[], float] = time.monotonic) -> None:
        self._runner = runner
        self._now_s = now_s
        self._buckets = BucketTable(lambda now: Bucket(UNITS_PER_S, UNITS_AT_ONCE, now), PROJECTS_MAX)
        self._long_until: OrderedDict[str, float] = OrderedDict()
        self._turns = KeyedSemaphore(1)  # one step at a time for each project
        self._one_at_a_time = asyncio.Lock()

    def count(self, project: str, units: int) -> None:
        """A step of a case of this project has done so much work."""
        now = self._now_s()
        self._buckets.of(project, now).take(units)
        if units >= LONG_UNITS:
            self._long_until[project] = now + LONG_FOR_S
            self._long_until.move_to_end(project)
            if len(self._long_until) > PROJECTS_MAX:
                self._long_until.popitem(last=False)

    def count_timer(self, project: str) -> None:
        """A timer of a case of this project has fired."""
        self._buckets.of(project, self._now_s()).take(TIMER_UNITS)

    def was_long(self, project: str) -> None:
        """A step of this project was interrupted."""
        self.count(project, LONG_UNITS)

    def interrupting(self, case: Case) -> AbstractContextManager[None]:
        """Raise LongWork in what is done to the case here if it gets long."""
        return nullcontext() if _is_large(case) else WORK.interrupted_after(LONG_UNITS)

    def wants(self, project: str, case: Case) -> bool:
        """Whether the steps of this case are to be done aside by now."""
        bucket = self._buckets.find(project)
        has_done_much = bucket is not None and bucket.was_empty
        if not (has_done_much or self._long_until) or _is_large(case):
            return False
        now = self._now_s()
        if self._long_until.get(project, 0.0) > now:
            return True
        return bucket is not None and bucket.wait_s(0, now) > 0

    def turn(self, project: str) -> AbstractAsyncContextManager[None]:
        """Wait until a step of this project may be done. The steps of a project wait for each other, so that each
        project that has some gets its turn."""
        return self._turns.of(project)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no other project has a step in the process. Whoever has its turn asks for it, and keeps it only
        for the step: what follows from that is nothing that others wait for."""
        async with self._one_at_a_time:
            yield

    async def do(self, project: str, case: Case, event: Event) -> DoneStep:
        """Apply the event to a copy of the case, which must not change meanwhile. Raises StepFailed for an internal
        error."""
        begun = time.thread_time()
        task = StepTask(snapshot(case), event)
        took = time.thread_time() - begun
        done = await self._runner.run(task)
        if done.problem or done.event is None:
            raise StepFailed(done.problem)
        self.count(project, done.work)
        begun = time.thread_time()
        after = restore_beside(done.state, case)
        took += time.thread_time() - begun
        return DoneStep(after, done.event, done.orders, done.work, took * REST)

    async def replay(self, state: bytes, entries: list[bytes]) -> Case:
        """Apply entries of a journal to a case, or to none, in the process. Raises StepFailed."""
        async with self.alone():
            done = await self._runner.run(StepTask(state, None, entries))
        if done.problem:
            raise StepFailed(done.problem)
        return restore(done.state)

    async def stop(self) -> None:
        await self._runner.stop()


def _is_large(case: Case) -> bool:
    return len(case.instances) > INSTANCES_MAX


class StepFailed(Exception):
    """The engine has raised an internal error; the message has it."""


class ProcessStepRunner:
    """Does steps in a process, which is started for the first of them and stays."""

    def __init__(self) -> None:
        self._process = TaskProcess[StepTask, StepResult](RUNNER_MODULE, StepResult)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def run(self, task: StepTask) -> StepResult:
        """A process that was killed is started anew. Whatever kills it again and again is in this case, which fails."""
        problem = ""
        for attempt in range(ATTEMPTS_MAX):
            try:
                await self._process.start()
                return await self._process.do(task)
            except ENDED as error:
                await self.stop()
                problem = f"the process for long steps has ended {attempt + 1} times: {error}"
                await asyncio.sleep(AGAIN_S)
            except asyncio.CancelledError:
                await self.stop()
                raise
        return StepResult(problem=problem)

    async def stop(self) -> None:
        await self._process.stop()
