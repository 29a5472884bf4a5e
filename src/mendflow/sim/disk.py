"""The one store of the world, and each process's line to it, with everything that can go wrong in between.

The store itself never forgets: what was applied stays. But a call may be slow, may fail before anything of it happened,
after some or all of it happened, or before it happens all the same a moment later. That is what the store's contract
leaves open to whoever calls, and no more."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from random import Random
from typing import Any, NoReturn, TypeVar

from mendflow.core.model.problems import StoreUnavailable
from mendflow.sim.counting import Counts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import Process
from mendflow.stores.contract import Append, Delete, Document, Done, Put, Taken, Where, Write
from mendflow.stores.memory import MemoryStore

T = TypeVar("T")
PAGE = 200


class DiskFaults:
    """How bad the store is at present. Shares are of all calls; `lag_s` is how far searches may be behind."""

    def __init__(self) -> None:
        self.quick_s = (0.0005, 0.004)
        self.slow_share = 0.0
        self.slow_s = (0.2, 3.0)
        self.fail_share = 0.0
        self.piecewise_share = 0.1
        self.lag_s = 1.0
        self.away = False  # down, for everybody
        self.patience_s = (0.05, 2.0)


class LaggingIndex(MemoryStore):
    """What searches see: the same documents, later."""

    def __init__(self, truth: MemoryStore, loop: VirtualLoop) -> None:
        super().__init__()
        self._open = True
        self._truth = truth
        self._loop = loop
        self._due: deque[tuple[float, str, str]] = deque()

    def note(self, kind: str, id: str, lag_s: float) -> None:
        self._due.append((self._loop.true_s + lag_s, kind, id))

    async def catch_up(self, *, whole: bool = False) -> None:
        while self._due and (whole or self._due[0][0] <= self._loop.true_s):
            _, kind, id = self._due.popleft()
            found = await self._truth.get(kind, id)
            if found is None:
                self._documents.get(kind, {}).pop(id, None)
            else:
                self._documents.setdefault(kind, {})[id] = found


class Disk:
    """`watch` is shown each write that took effect, and whose it is."""

    def __init__(self, loop: VirtualLoop, chance: Random, counts: Counts, watch: Callable[[Write, str], None]) -> None:
        self.loop = loop
        self.chance = chance
        self.counts = counts
        self.faults = DiskFaults()
        self.truth = MemoryStore()
        self.index = LaggingIndex(self.truth, loop)
        self.cut: set[str] = set()  # machines that cannot reach it
        self._watch = watch

    def apply(self, writes: Sequence[Write], by: str) -> list[Done | Taken]:
        results = at_once(self.truth.write(writes))
        for write, result in zip(writes, results, strict=True):
            if isinstance(result, Done):
                self._watch(write, by)
                if isinstance(write, (Put, Delete)):
                    self.index.note(write.kind, write.id, self.faults.lag_s)
        return results


class DiskLine:
    """A store as one process sees it."""

    def __init__(self, disk: Disk, process: Process) -> None:
        self._disk = disk
        self._process = process
        self._loop = disk.loop
        self._open = False

    async def open(self) -> None:
        await self._disk.truth.open()
        await self._ask(self._nothing)
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def _nothing(self) -> None: ...

    # writing

    async def write(self, writes: Sequence[Write]) -> list[Done | Taken]:
        chance, faults = self._disk.chance, self._disk.faults
        await self._process.tread("journal" if any(isinstance(write, Append) for write in writes) else "write")
        fails = faults.fail_share and chance.random() < faults.fail_share
        if self._unreachable() or (fails and chance.random() < 0.3):
            self._disk.counts.add("store: failed before it was done")
            await self._lose_patience()
        if fails:
            await self._of_unknown_outcome(writes)
        answer: asyncio.Future[list[Done | Taken]] = self._loop.create_future()
        self._send(writes, self._travel_s(), answer)
        return await answer

    async def _of_unknown_outcome(self, writes: Sequence[Write]) -> NoReturn:
        """Some of it, or all, happens, or will in a moment; nobody hears which."""
        chance = self._disk.chance
        some = writes[: chance.randint(0, len(writes))] if chance.random() < 0.5 else writes
        late = chance.random() < 0.4
        self._disk.counts.add("store: done later, and nobody heard" if late else "store: done, and nobody heard")
        self._send(some, chance.uniform(0.01, 3.0) if late else self._travel_s(), None)
        await self._lose_patience()

    def _send(
        self, writes: Sequence[Write], after_s: float, answer: "asyncio.Future[list[Done | Taken]] | None"
    ) -> None:
        """From here on it is on its way, whatever becomes of this process."""
        self._loop.at(self._loop.true_s + after_s, self._arrive, writes, [], answer)

    def _arrive(
        self,
        writes: Sequence[Write],
        done: list[Done | Taken],
        answer: "asyncio.Future[list[Done | Taken]] | None",
    ) -> None:
        """It is there, and happens; sometimes not all of it in the same moment."""
        chance = self._disk.chance
        if not done and not self._process.alive and chance.random() < 0.5:
            return  # it never left the machine that has died
        piecewise = len(writes) > 1 and (done or chance.random() < self._disk.faults.piecewise_share)
        now = writes[:1] if piecewise else writes
        done = done + self._disk.apply(now, self._process.machine.name)
        if piecewise:
            self._loop.at(self._loop.true_s + chance.uniform(0, 0.02), self._arrive, writes[1:], done, answer)
        elif answer is not None:
            self._loop.at(self._loop.true_s + self._travel_s(), _hear, answer, done)

    # reading

    async def get(self, kind: str, id: str) -> Document | None:
        return await self._ask(lambda: self._disk.truth.get(kind, id))

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[Document]:
        return await self._ask(lambda: self._disk.truth.get_many(kind, ids))

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return await self._ask(lambda: self._disk.truth.read(stream, start, limit))

    async def length(self, stream: str) -> int:
        return await self._ask(lambda: self._disk.truth.length(stream))

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[Document]:
        await self._ask(self._nothing)
        passed = 0
        async for document in self._disk.truth.scan(kind, prefix):
            yield document
            passed += 1
            if passed % PAGE == 0:
                await self._ask(self._nothing)

    async def search(
        self,
        kind: str,
        where: Sequence[Where] = (),
        *,
        order_by: str = "",
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
        after: Document | None = None,
    ) -> list[Document]:
        async def look() -> list[Document]:
            await self._disk.index.catch_up()
            return await self._disk.index.search(
                kind, where, order_by=order_by, descending=descending, limit=limit, offset=offset, after=after
            )

        return await self._ask(look)

    async def count(self, kind: str, where: Sequence[Where] = (), *, by: str = "") -> dict[str, int]:
        async def look() -> dict[str, int]:
            await self._disk.index.catch_up()
            return await self._disk.index.count(kind, where, by=by)

        return await self._ask(look)

    async def refresh(self) -> None:
        await self._ask(lambda: self._disk.index.catch_up(whole=True))

    # the line

    async def _ask(self, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Looked up as late, or as early, as can be while the question is on its way."""
        chance, faults = self._disk.chance, self._disk.faults
        if self._unreachable() or (faults.fail_share and chance.random() < faults.fail_share):
            self._disk.counts.add("store: failed reads")
            await self._lose_patience()
        if chance.random() < 0.5:
            early = await look()
            await asyncio.sleep(self._travel_s())
            return early
        await asyncio.sleep(self._travel_s())
        return await look()

    async def _lose_patience(self) -> NoReturn:
        await asyncio.sleep(self._disk.chance.uniform(*self._disk.faults.patience_s))
        raise StoreUnavailable("the store does not answer; it is asked again", store="virtual")

    def _unreachable(self) -> bool:
        return self._disk.faults.away or self._process.machine.name in self._disk.cut

    def _travel_s(self) -> float:
        chance, faults = self._disk.chance, self._disk.faults
        if faults.slow_share and chance.random() < faults.slow_share:
            self._disk.counts.add("store: slow calls")
            return chance.uniform(*faults.slow_s)
        return chance.uniform(*faults.quick_s)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of something that never really waits."""
    try:
        work.send(None)
    except StopIteration as over:
        result: T = over.value
        return result
    raise AssertionError("the store in memory does not wait")


def _hear(answer: "asyncio.Future[list[Done | Taken]]", done: list[Done | Taken]) -> None:
    if not answer.done():
        answer.set_result(done)
