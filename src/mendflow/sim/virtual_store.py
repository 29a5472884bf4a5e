"""The simulated store, and each process's connection to it, with all faults in between.

The store itself never loses anything. But a call may be slow, may fail before anything of it happened, after some or
all of it happened, or before it happens after all a moment later. That is what the store's contract permits, and no
more."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from random import Random
from typing import Any, NoReturn, TypeVar

from mendflow.core.model.errors import StoreUnavailable
from mendflow.sim.fault_counts import FaultCounts
from mendflow.sim.loop import VirtualLoop
from mendflow.sim.machines import VirtualProcess
from mendflow.stores.contract import (
    Append,
    Delete,
    FieldCondition,
    Put,
    StoredDocument,
    Write,
    WriteConflict,
    WriteDone,
)
from mendflow.stores.memory import MemoryStore

T = TypeVar("T")
PAGE = 200


class StoreFaults:
    """The current fault rates, as shares of all calls; `lag_s` is how far searches may lag."""

    def __init__(self) -> None:
        self.quick_s = (0.0005, 0.004)
        self.slow_share = 0.0
        self.slow_s = (0.2, 3.0)
        self.fail_share = 0.0
        self.piecewise_share = 0.1
        self.lag_s = 1.0
        self.away = False  # down, for everybody
        self.full = False  # no room: what is written is refused at once
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


class VirtualStore:
    """`watch` is called with each write that took effect, and its writer."""

    def __init__(
        self, loop: VirtualLoop, chance: Random, counts: FaultCounts, watch: Callable[[Write, str], None]
    ) -> None:
        self.loop = loop
        self.chance = chance
        self.counts = counts
        self.faults = StoreFaults()
        self.truth = MemoryStore()
        self.index = LaggingIndex(self.truth, loop)
        self.cut: set[str] = set()  # machines that cannot reach it
        self._watch = watch

    def apply(self, writes: Sequence[Write], by: str) -> list[WriteDone | WriteConflict]:
        results = run_synchronously(self.truth.write(writes))
        for write, result in zip(writes, results, strict=True):
            if isinstance(result, WriteDone):
                self._watch(write, by)
                if isinstance(write, (Put, Delete)):
                    self.index.note(write.kind, write.id, self.faults.lag_s)
        return results


class StoreConnection:
    """The store as one process sees it."""

    def __init__(self, store: VirtualStore, process: VirtualProcess) -> None:
        self._store = store
        self._process = process
        self._loop = store.loop
        self._open = False

    async def open(self) -> None:
        await self._store.truth.open()
        await self._ask(self._nothing)
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def _nothing(self) -> None: ...

    # writes

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        chance, faults = self._store.chance, self._store.faults
        await self._process.reach_point("journal" if any(isinstance(write, Append) for write in writes) else "write")
        if faults.full:
            self._store.counts.add("store: no room")
            await asyncio.sleep(self._travel_s())
            raise StoreUnavailable("the disk of the store is full; free some space", store="virtual")
        fails = faults.fail_share and chance.random() < faults.fail_share
        if self._unreachable() or (fails and chance.random() < 0.3):
            self._store.counts.add("store: failed before it was done")
            await self._time_out()
        if fails:
            await self._write_with_unknown_outcome(writes)
        answer: asyncio.Future[list[WriteDone | WriteConflict]] = self._loop.create_future()
        self._send(writes, self._travel_s(), answer)
        return await answer

    async def _write_with_unknown_outcome(self, writes: Sequence[Write]) -> NoReturn:
        """Some or all of it happens, now or in a moment; the caller does not learn which."""
        chance = self._store.chance
        some = writes[: chance.randint(0, len(writes))] if chance.random() < 0.5 else writes
        late = chance.random() < 0.4
        self._store.counts.add("store: done later, without an answer" if late else "store: done, and nobody heard")
        self._send(some, chance.uniform(0.01, 3.0) if late else self._travel_s(), None)
        await self._time_out()

    def _send(
        self, writes: Sequence[Write], after_s: float, answer: "asyncio.Future[list[WriteDone | WriteConflict]] | None"
    ) -> None:
        """From here on it is in transit, whatever happens to this process."""
        self._loop.at(self._loop.true_s + after_s, self._arrive, writes, [], answer)

    def _arrive(
        self,
        writes: Sequence[Write],
        done: list[WriteDone | WriteConflict],
        answer: "asyncio.Future[list[WriteDone | WriteConflict]] | None",
    ) -> None:
        """It arrives and happens; sometimes not all of it in the same moment."""
        chance = self._store.chance
        if not done and not self._process.alive and chance.random() < 0.5:
            return  # it never left the machine, which has died
        piecewise = len(writes) > 1 and (done or chance.random() < self._store.faults.piecewise_share)
        now = writes[:1] if piecewise else writes
        done = done + self._store.apply(now, self._process.machine.name)
        if piecewise:
            self._loop.at(self._loop.true_s + chance.uniform(0, 0.02), self._arrive, writes[1:], done, answer)
        elif answer is not None:
            self._loop.at(self._loop.true_s + self._travel_s(), _resolve, answer, done)

    # reads

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        return await self._ask(lambda: self._store.truth.get(kind, id))

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        return await self._ask(lambda: self._store.truth.get_many(kind, ids))

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        return await self._ask(lambda: self._store.truth.statuses(kind, ids))

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return await self._ask(lambda: self._store.truth.read(stream, start, limit))

    async def length(self, stream: str) -> int:
        return await self._ask(lambda: self._store.truth.length(stream))

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        await self._ask(self._nothing)
        passed = 0
        async for document in self._store.truth.scan(kind, prefix):
            yield document
            passed += 1
            if passed % PAGE == 0:
                await self._ask(self._nothing)

    async def search(
        self,
        kind: str,
        where: Sequence[FieldCondition] = (),
        *,
        order_by: str = "",
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
        after: StoredDocument | None = None,
    ) -> list[StoredDocument]:
        async def look() -> list[StoredDocument]:
            await self._store.index.catch_up()
            return await self._store.index.search(
                kind, where, order_by=order_by, descending=descending, limit=limit, offset=offset, after=after
            )

        return await self._ask(look)

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        async def look() -> dict[str, int]:
            await self._store.index.catch_up()
            return await self._store.index.count(kind, where, by=by)

        return await self._ask(look)

    async def kinds(self) -> list[str]:
        return await self._ask(self._store.truth.kinds)

    async def refresh(self) -> None:
        await self._ask(lambda: self._store.index.catch_up(whole=True))

    # the connection

    async def _ask(self, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Reads at a random moment while the question is in transit."""
        chance, faults = self._store.chance, self._store.faults
        if self._unreachable() or (faults.fail_share and chance.random() < faults.fail_share):
            self._store.counts.add("store: failed reads")
            await self._time_out()
        if chance.random() < 0.5:
            early = await look()
            await asyncio.sleep(self._travel_s())
            return early
        await asyncio.sleep(self._travel_s())
        return await look()

    async def _time_out(self) -> NoReturn:
        await asyncio.sleep(self._store.chance.uniform(*self._store.faults.patience_s))
        raise StoreUnavailable("the store does not answer; retrying", store="virtual")

    def _unreachable(self) -> bool:
        return self._store.faults.away or self._process.machine.name in self._store.cut

    def _travel_s(self) -> float:
        chance, faults = self._store.chance, self._store.faults
        if faults.slow_share and chance.random() < faults.slow_share:
            self._store.counts.add("store: slow calls")
            return chance.uniform(*faults.slow_s)
        return chance.uniform(*faults.quick_s)


def run_synchronously(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration as over:
        result: T = over.value
        return result
    raise AssertionError("the store in memory does not wait")


def _resolve(answer: "asyncio.Future[list[WriteDone | WriteConflict]]", done: list[WriteDone | WriteConflict]) -> None:
    if not answer.done():
        answer.set_result(done)
