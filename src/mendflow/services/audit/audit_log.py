"""The writer of one server's chain.

A record is on disk when `write` returns, and the caller gets the answer after that. What comes while a batch is being
written goes into the next one, so that many requests at once cost few writes. If it is not known whether a batch was
written, its place in the chain tells: there is one entry at most in each."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from mendflow.core.audit.chain import SEGMENT_ENTRIES_MAX, ChainEnd
from mendflow.core.model.audit import AUDIT_CHAIN_KIND, AUDIT_SEGMENT_KIND, AuditChain, AuditSegment, RequestRecord
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.services.audit.chain_store import ChainStore, segment_id, stream_of
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.stores.contract import Append, Put, Store, WriteDone

log = logging.getLogger("mendflow.audit")

BATCH_MAX: Final = 1000
TRIES_MAX: Final = 5
_encode = msgspec.json.Encoder().encode
_Pending = tuple[RequestRecord, asyncio.Future[None]]


class AuditLog:
    """`server` says the name of the chain, which may become another when a second server of that name appears."""

    def __init__(self, store: Store, server: Callable[[], str], now: Callable[[], Instant]) -> None:
        self._store = store
        self._chains = ChainStore(store)
        self._server = server
        self._now = now
        self._end: ChainEnd | None = None
        self._head_version = 0
        self._pending: list[_Pending] = []
        self._writing: list[_Pending] = []
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="audit-log")

    async def stop(self) -> None:
        """What is pending or being written is on disk after this, if the store is there."""
        if (
            self._task is not None
            and not self._task.done()
            and (left := [done for _, done in (*self._writing, *self._pending)])
        ):
            await asyncio.wait(left)
        await cancel_tasks(self._task)

    async def write(self, record: RequestRecord) -> None:
        """Returns when the record is on disk. Raises StoreUnavailable if it could not be written."""
        await self.put(record)

    def put(self, record: RequestRecord) -> asyncio.Future[None]:
        """The same, for who does not wait for it."""
        done = asyncio.get_running_loop().create_future()
        self._pending.append((record, done))
        self._work.set()
        return done

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._pending:
                self._writing, self._pending = self._pending[:BATCH_MAX], self._pending[BATCH_MAX:]
                batch = self._writing
                try:
                    await self._write([record for record, _ in batch])
                except Exception as error:  # noqa: BLE001 - every waiter hears of it, and the next batch is tried
                    self._end = None
                    _fail(batch, error)
                else:
                    for _, done in batch:
                        if not done.done():
                            done.set_result(None)
                self._writing = []

    async def _write(self, records: Sequence[RequestRecord]) -> None:
        left = list(records)
        while left:
            written = await self._write_part(left)
            left = left[written:]

    async def _write_part(self, records: Sequence[RequestRecord]) -> int:
        """Append as many as the segment has room for; how many those were."""
        end = await self._room()
        here = records[: SEGMENT_ENTRIES_MAX - end.position]
        for _ in range(TRIES_MAX):
            entries, after = _chained(end, here, self._now())
            if await self._append(end, after, entries):
                self._end = after
                return len(here)
            # Somebody else was first: an earlier life of this server, or our own try whose answer was lost.
            if await self._is_stored(end, entries):
                self._end = await self._chains.end(end.server)
                return len(here)
            self._end = None
            end = await self._room()
            here = records[: SEGMENT_ENTRIES_MAX - end.position]
        raise StoreUnavailable("the audit log of this server is written by another one under the same name")

    async def _append(self, end: ChainEnd, after: ChainEnd, entries: list[bytes]) -> bool:
        """False if somebody else has appended at this place, or nobody knows whether it was us."""
        segment = AuditSegment(server=end.server, first=end.first, at=0, previous="")
        head = AuditChain(server=end.server, count=after.number - 1, sha256=after.previous)
        try:
            appended, counted = await self._store.write(
                [
                    Append(stream_of(segment), entries, end.position),
                    Put(AUDIT_CHAIN_KIND, end.server, _encode(head), self._head_version),
                ]
            )
        except StoreUnavailable:
            # Raises again if the store is away for good.
            if await self._is_stored(end, entries):
                await self._count(end.server)
                return True
            return False
        if isinstance(counted, WriteDone):
            self._head_version = counted.version
        elif isinstance(appended, WriteDone):
            await self._count(end.server)
        return isinstance(appended, WriteDone)

    async def _is_stored(self, end: ChainEnd, entries: list[bytes]) -> bool:
        segment = AuditSegment(server=end.server, first=end.first, at=0, previous="")
        return await self._store.read(stream_of(segment), end.position, len(entries)) == entries

    async def _count(self, server: str) -> None:
        """Say how long the chain is by what is stored."""
        end = await self._chains.end(server)
        while True:
            head, self._head_version = await self._chains.head(server)
            if head is not None and head.count >= end.number - 1:
                return
            told = AuditChain(server=server, count=end.number - 1, sha256=end.previous)
            [result] = await self._store.write([Put(AUDIT_CHAIN_KIND, server, _encode(told), self._head_version)])
            if isinstance(result, WriteDone):
                self._head_version = result.version
                return

    async def _room(self) -> ChainEnd:
        """The end of the chain, in a segment that has room."""
        server = self._server()
        if self._end is None or self._end.server != server:
            self._end = await self._chains.end(server)
            await self._count(server) if self._end.number > 1 else await self._read_version(server)
        if self._end.wants_segment(self._now()):
            end, segment = self._end.begin_segment(self._now())
            # It is there already if another life of this server began it: then both mean the same.
            await self._store.write([Put(AUDIT_SEGMENT_KIND, segment_id(segment), _encode(segment), 0)])
            self._end = end
        return self._end

    async def _read_version(self, server: str) -> None:
        _, self._head_version = await self._chains.head(server)


def _chained(end: ChainEnd, records: Sequence[RequestRecord], now: Instant) -> tuple[list[bytes], ChainEnd]:
    entries: list[bytes] = []
    for record in records:
        end, entry = end.add(record, now)
        entries.append(entry)
    return entries, end


def _fail(batch: Sequence[_Pending], error: Exception) -> None:
    if not isinstance(error, StoreUnavailable):
        log.error("the audit log could not be written", exc_info=error)
        error = StoreUnavailable(f"the audit log could not be written: {error}")
    else:
        log.error("%d requests could not be put on record: %s", len(batch), error.message)
    for _, done in batch:
        if not done.done():
            done.set_exception(error)
            done.exception()  # whoever does not wait for it need not ask
