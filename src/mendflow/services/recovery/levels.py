"""Levels: queues where failed jobs wait before they are retried, each with its own wait.

An entry has a key, and the same key entered twice is one entry. In recoverable mode it is a document from the moment
that `enter` has returned until it was processed; in express mode it is in memory only, and the order is repeated after
a crash. An entry that is due is passed to one callback, and removed when that has returned: after a crash in between it
is passed once more, under the same key, so the callback has to be idempotent."""

import asyncio
import heapq
import logging
from collections.abc import Collection, Sequence
from typing import Final, Literal, Protocol

import msgspec

from mendflow.core.model.errors import InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.services.base.background_tasks import BackgroundTasks, cancel_tasks
from mendflow.services.base.cluster import only, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.levels")

LEVEL_KIND: Final = "level"
DEFAULT_WAITS_MS: Final = (60_000, 600_000, 3_600_000)
_LONGEST_SLEEP_MS = 60_000

Mode = Literal["recoverable", "express"]


class LevelEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry that waits in a level, and until when."""

    key: str
    level: int
    job: JobId
    case: CaseId
    item: ItemId
    entered_at: Instant
    due_at: Instant
    mode: Mode = "recoverable"


class DueEntries(Protocol):
    """Processes entries that have waited long enough."""

    async def due(self, entry: LevelEntry) -> None: ...


_decode = msgspec.json.Decoder(LevelEntry).decode


class Levels:
    """`waits_ms` are those of the levels 1, 2, ...; beyond the last level the wait is that of the last."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        homes: HomeRegistry,
        hub: Hub,
        waits_ms: Sequence[int] = DEFAULT_WAITS_MS,
    ) -> None:
        assert waits_ms, "there is at least one level"
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._homes = homes
        self.waits_ms = tuple(waits_ms)
        self._takes = hub.need(DueEntries, self)
        self._entries: dict[str, LevelEntry] = {}
        self._heap: list[tuple[Instant, str]] = []
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._background = BackgroundTasks(ledger)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Load the entries of these trees of cases. Before anything enters: an exlet that is loaded repeats its orders,
        and its existing entries must be known then."""
        async for found in self._store.scan(LEVEL_KIND, only(roots)):
            if root_of(found.id) in roots and (entry := read_or_leave_out(found, _decode)) is not None:
                self._ledger.known(LEVEL_KIND, found.id, found.version)
                self._add_waiting(entry)

    def start(self) -> None:
        """Start the timer."""
        self._task = asyncio.create_task(self._run(), name="levels")

    async def stop(self) -> None:
        await cancel_tasks(self._task)
        await self._background.stop()

    async def enter(
        self,
        key: str,
        *,
        level: int,
        job: JobId,
        case: CaseId,
        item: ItemId,
        mode: Mode = "recoverable",
        wait_ms: int | None = None,
    ) -> LevelEntry:
        """Put an entry into a level. An entry that waits already under this key is not changed."""
        if level < 1:
            raise InvalidRequest(f"levels count from 1; there is no level {level}", field="level")
        entry = self._entries.get(key)
        if entry is None:
            now = self._clock.now()
            due_at = now + max(0, self.wait_ms(level) if wait_ms is None else wait_ms)
            entry = LevelEntry(
                key=key, level=level, job=job, case=case, item=item, entered_at=now, due_at=due_at, mode=mode
            )
            self._entries[key] = entry
            if mode == "recoverable":
                self._homes.hold(key, f"level {key}")
                self._ledger.touch(LEVEL_KIND, key, entry)
                await self._ledger.settled()
            self._add_waiting(entry)
        return entry

    def wait_ms(self, level: int) -> int:
        return self.waits_ms[min(level, len(self.waits_ms)) - 1]

    def leave(self, key: str) -> bool:
        """Remove an entry before its time. Returns whether it was there."""
        entry = self._entries.pop(key, None)
        if entry is not None and entry.mode == "recoverable":
            self._ledger.drop(LEVEL_KIND, key)
            self._homes.release(key, f"level {key}")
        return entry is not None

    def waits(self, prefix: str) -> bool:
        """Whether there is an entry whose key begins with this text."""
        return any(key.startswith(prefix) for key in self._entries)

    def leave_all(self, prefix: str) -> None:
        """Remove all entries whose keys begin with this text."""
        for key in [key for key in self._entries if key.startswith(prefix)]:
            self.leave(key)

    def drain(self, entries: Sequence[LevelEntry] | None = None) -> int:
        """Let these entries, or all, continue now; returns how many had to wait longer."""
        now = self._clock.now()
        waiting = [entry for entry in (self.entries() if entries is None else entries) if entry.due_at > now]
        for entry in waiting:
            self._add_waiting(msgspec.structs.replace(entry, due_at=now))
        return len(waiting)

    def counts(self) -> dict[int, int]:
        """How many entries each level has; the default levels are listed even if they are empty."""
        counts = dict.fromkeys(range(1, len(self.waits_ms) + 1), 0)
        for entry in self._entries.values():
            counts[entry.level] = counts.get(entry.level, 0) + 1
        return counts

    def entries(self, level: int | None = None) -> list[LevelEntry]:
        """The entries, the next one first."""
        found = [entry for entry in self._entries.values() if level is None or entry.level == level]
        return sorted(found, key=lambda entry: (entry.due_at, entry.key))

    def _add_waiting(self, entry: LevelEntry) -> None:
        self._entries[entry.key] = entry
        if entry.mode == "recoverable":
            self._homes.hold(entry.key, f"level {entry.key}")
        heapq.heappush(self._heap, (entry.due_at, entry.key))
        if self._heap[0] == (entry.due_at, entry.key):
            self._changed.set()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            while (entry := self._next_due()) is not None:
                # Separate tasks: an entry that waits for an engine of another system must not delay the others.
                self._background.start(self._release(entry))
            wait_ms = min(self._heap[0][0] - self._clock.now(), _LONGEST_SLEEP_MS) if self._heap else _LONGEST_SLEEP_MS
            try:
                # Not wait_for: before Python 3.12 it may swallow the cancellation that ends this loop.
                async with asyncio.timeout(max(wait_ms, 0) / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _next_due(self) -> LevelEntry | None:
        """The next entry that is due. An entry that was drained or removed is skipped."""
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            due_at, key = heapq.heappop(self._heap)
            entry = self._entries.get(key)
            if entry is not None and entry.due_at == due_at:
                return entry
        return None

    async def _due(self, entry: LevelEntry) -> None:
        await self._takes().due(entry)

    async def _release(self, entry: LevelEntry) -> None:
        with self._ledger.atomic():  # if the store is unreachable everything is loaded again, and with it this entry
            try:
                await self._due(entry)
            except StoreUnavailable:
                raise
            except RequestError as error:
                log.warning("entry %s of retry level %d cannot be retried: %s", entry.key, entry.level, error)
        self.leave(entry.key)
