"""Texts that users give, and that take long to read: flow files, rule files, descriptions of many jobs; and flows that
take long to check.

Long ones are read by a process beside the server, which gives way to it; others in one thread that does nothing else.
One of each who asks is read at a time, and those who ask take turns: a long one takes seconds, and neither the event
loop nor whatever else the server does in threads waits for it. What it takes is what it costs whoever asks, as reading
from a store does."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.lazy import LazyModule
from mendflow.services.base.module_processes import ENDED, TaskProcess
from mendflow.services.base.reading_cost import who_pays

if TYPE_CHECKING:
    from mendflow.services.base import reading_tasks
    from mendflow.services.base.reading_tasks import ReadingResult, ReadingTask
else:
    reading_tasks = LazyModule("mendflow.services.base.reading_tasks")

T = TypeVar("T")

SHORT_CHARS: Final = 10_000
"""XML of so many characters is read at once by whoever has it: that takes a few milliseconds."""

LONG_CHARS: Final = 20_000
"""A text of so many characters is read by the process. To read a shorter one in a thread takes less than half a second,
and starts no process."""

ATTEMPTS_MAX: Final = 2


class LongReads:
    """`aside`: there may be a process beside the server. It is started for the first long text, and stays."""

    def __init__(self, *, aside: bool = False) -> None:
        self.is_aside = aside
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long-reads")
        self._turns = KeyedSemaphore(1)
        self._one_at_a_time = asyncio.Lock()

    @cached_property
    def _process(self) -> "TaskProcess[ReadingTask, ReadingResult]":
        return TaskProcess(reading_tasks.READER_MODULE, reading_tasks.ReadingResult)

    @property
    def pid(self) -> int | None:
        """The process beside the server, if there is one."""
        return self._process.pid

    async def stop(self) -> None:
        if self.is_aside:
            await self._process.stop()

    async def read(self, chars: int, task: "ReadingTask", kind: type[T], here: Callable[[], T]) -> T:
        """Read a text of so many characters, of which something of this kind comes; `here` does the same within the
        server. What it raises arrives."""
        return await self.do_aside(task, kind) if self.is_aside and chars >= LONG_CHARS else await self.do(here)

    async def do(self, read: Callable[[], T]) -> T:
        """Read in the thread when it is the turn of whoever asks. What it raises arrives."""
        payer, clock = who_pays(), _ThreadClock()
        async with self._turns.of(payer):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, clock.timed, read)
            finally:
                if payer is not None:
                    payer(clock.took_s)

    async def do_aside(self, task: "ReadingTask", kind: type[T]) -> T:
        """Have the process do it when it is the turn of whoever asks. Raises a RequestError."""
        payer = who_pays()
        async with self._turns.of(payer), self._one_at_a_time:
            done, begun = None, time.monotonic()
            try:
                done = await self._run(task)
            finally:
                if payer is not None:
                    payer(done.took_s if done is not None else time.monotonic() - begun)
        if done.refusal is not None:
            raise done.refusal.error
        assert not done.problem, done.problem
        return msgspec.msgpack.decode(done.found, type=kind)

    async def _run(self, task: "ReadingTask") -> "ReadingResult":
        """A process that was killed is started anew. Whatever ends it again is this text. Nothing is read any further
        for who has left."""
        for _ in range(ATTEMPTS_MAX):
            try:
                await self._process.start()
                return await self._process.do(task)
            except ENDED:
                await self._process.stop()
            except asyncio.CancelledError:
                await self._process.stop()
                raise
        raise InvalidRequest("reading it takes more memory than there is for that; give less at once")


class _ThreadClock:
    """What a call took of the processor's time of its thread."""

    took_s = 0.0

    def timed(self, call: Callable[[], T]) -> T:
        begun = time.thread_time()
        try:
            return call()
        finally:
            self.took_s = time.thread_time() - begun
