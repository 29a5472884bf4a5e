"""Writes behind, with a barrier in front of the door.

Services change their state in memory at once and note what must be written; the ledger writes it in that order, one
batch at a time, while the next one gathers. Nothing may leave the process (an answer to a pilot, to a client) before
`settled()` has returned: then all that it stands on is on disk. If a write fails the ledger is broken for good: memory
is ahead of the disk, so whoever owns the services throws them away and builds them anew from the store."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from mendflow.core.model.problems import Mistake, StoreUnavailable
from mendflow.stores.contract import Append, Delete, Done, Put, Store, Write

_encode = msgspec.json.Encoder().encode


class Ledger:
    def __init__(self, store: Store, on_broken: Callable[[str], None]) -> None:
        self._store = store
        self._on_broken = on_broken
        self._versions: dict[tuple[str, str], int] = {}
        # In the order of first touch. A document touched again before it is written is written once, as it then is.
        self._pending: dict[tuple[str, str], object] = {}
        self._gone: set[tuple[str, str]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._work = asyncio.Event()
        self._flushing = False
        self._task: asyncio.Task[None] | None = None
        self.broken = ""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="ledger")

    async def stop(self) -> None:
        if self._task is None:
            return
        try:
            if not self.broken:
                await self.settled()
        except StoreUnavailable:
            pass  # told to everyone already; what was not acknowledged is not lost, it never happened
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def known(self, kind: str, id: str, version: int) -> None:
        """A document read from the store, at this version."""
        self._versions[(kind, id)] = version

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What happens inside changes memory wholly, or not at all, or the ledger breaks: a fault of ours in the middle
        must not leave memory in a state that no disk has ever seen."""
        try:
            yield
        except (Mistake, asyncio.CancelledError):
            raise
        except Exception as error:
            if not self.broken:
                self._break(f"a fault of mendflow itself: {error!r}; reading everything again", [])
            raise

    def touch(self, kind: str, id: str, document: object, *, last: bool = False) -> None:
        """Write this document (a struct, encoded when its turn comes). `last`: it will not be written again."""
        key = (kind, id)
        self._pending[key] = document
        if last:
            self._gone.add(key)
        self._work.set()

    def leave(self, kind: str, id: str) -> None:
        """This document will not be written again: forget its version, after what is noted of it is written."""
        self._gone.add((kind, id))

    def drop(self, kind: str, id: str) -> None:
        """Delete this document, if it was ever written. One whose first write is under way stays: it is only in the
        way of nobody."""
        key = (kind, id)
        self._pending.pop(key, None)
        if key in self._versions:
            self._pending[key] = None
            self._gone.add(key)
            self._work.set()

    def append(self, stream: str, position: int, entry: bytes) -> None:
        """Add an entry to a stream whose length, with all entries given before, is `position`."""
        key = ("", stream)
        batch = self._pending.get(key)
        if batch is None:
            self._pending[key] = (position, [entry])
        else:
            assert isinstance(batch, tuple)
            assert batch[0] + len(batch[1]) == position
            batch[1].append(entry)
        self._work.set()

    @property
    def idle(self) -> bool:
        return not self._pending and not self._flushing

    async def settled(self) -> None:
        """Return when everything noted so far is on disk."""
        if self.broken:
            raise StoreUnavailable(self.broken)
        if self.idle:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    async def _run(self) -> None:
        while not self.broken:
            await self._work.wait()
            self._work.clear()
            if not self._pending:
                continue
            pending, self._pending = self._pending, {}
            waiters, self._waiters = self._waiters, []
            gone, self._gone = self._gone, set()
            self._flushing = True
            # A waiter that comes while we write stands on what gathers now, or on this batch: it waits for the next.
            try:
                await self._write(pending)
                for key in gone:
                    self._versions.pop(key, None)
            except StoreUnavailable as error:
                self._break(error.message, waiters)
                return
            finally:
                self._flushing = False
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._release_idle()

    def _release_idle(self) -> None:
        if self._pending:
            return
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def _write(self, pending: dict[tuple[str, str], object]) -> None:
        writes: list[Write] = []
        versions = self._versions
        for key, document in pending.items():
            kind, id = key
            if not kind:
                assert isinstance(document, tuple)
                writes.append(Append(id, document[1], document[0]))
            elif document is None:
                writes.append(Delete(kind, id, versions[key]))
            else:
                writes.append(Put(kind, id, _encode(document), versions.get(key, 0)))
        for key, result in zip(pending, await self._store.write(writes), strict=True):
            if isinstance(result, Done):
                if key[0]:
                    versions[key] = result.version
            else:
                raise StoreUnavailable(
                    f"{result.kind or 'stream'} {result.id} was changed by another server"
                    f" (expected {result.expected}, found {result.actual}); reading it again"
                )

    def _break(self, reason: str, waiters: list[asyncio.Future[None]]) -> None:
        self.broken = reason
        self._pending = {}  # what is half done must not reach the disk
        for waiter in waiters + self._waiters:
            if not waiter.done():
                waiter.set_exception(StoreUnavailable(reason))
        self._waiters.clear()
        self._on_broken(reason)
