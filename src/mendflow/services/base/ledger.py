"""The ledger: writes behind the services, and a barrier before anything leaves the process.

Services change their state in memory at once and record what must be written; the ledger writes it in that order, one
batch at a time, while the next one is collected. Nothing may leave the process (an answer to a pilot, to a client)
before `settled()` has returned: then everything that it depends on is on disk. If a write fails the ledger is broken
for good: memory is ahead of the disk, so the server throws the services away and rebuilds them from the store.

Where other servers use the store too, nothing is written and nothing leaves unless this server may make promises; and
what follows from a journal's entry is written only when that entry is acknowledged. So a server whose cases were taken
over leaves nothing behind that does not follow from the journal. A server that is alone on its store relies on the
store to write a batch completely or not at all, as SQLite does."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from mendflow.core.model.errors import RequestError, StoreUnavailable
from mendflow.services.base.cluster import JOURNALS, root_of
from mendflow.services.base.counters import LedgerMetrics
from mendflow.services.base.membership import UNLIMITED_PROMISE, Promise
from mendflow.stores.contract import Append, Delete, Put, Store, Write, WriteDone

log = logging.getLogger("mendflow.runtime")

_encode = msgspec.json.Encoder().encode
_Key = tuple[str, str]
_Pending = dict[_Key, object]
_ANY_POSITION = None
_PART = "\0"
RESULT_KIND = "result"
"""Where the result of a job is, by its key. Any server may write it, and whatever it says is checked by its readers: a
new result takes the place of an older one, and a mere note that one was used gives way to any other change."""
_LEAF_KINDS = frozenset({"job", "task", "item", "runs", "snapshot", RESULT_KIND})
"""Documents of these kinds never delay journal entries: no entry follows from them that could be written too early."""
SHARED_KINDS = frozenset(
    (
        *("flow", "flow-triggers", "rules", "pattern", "compensation", "engine"),
        *("webhook", "source", "storage", "domain", "domain-own"),
        *("project", "fair-share"),
    )
)
DEFERRED_MAX = 2_000
DEFERRED_S = 0.5
"""So many documents are deferred at most, and for so long. Their ids are in no order, so each write of them touches
nearly all pages of the store's index: the more there are in one, the fewer pages each costs."""
NO_PROMISE = "this server could not renew its right to decide about its cases; loading everything again"


class AtomicChange:
    """See `Ledger.atomic`. It has no state, so one instance serves everybody at once."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, StoreUnavailable):
            # A read may have failed in the middle of a change.
            self._ledger.give_up(error.message)
        elif isinstance(error, Exception) and not isinstance(error, RequestError):
            self._ledger.give_up(f"internal error of mendflow: {error!r}; loading everything again")


class Ledger:
    """`promise` is this server's right to decide about its cases; `shared` says that other servers may use the store,
    and `on_shared` is called after something was written that all servers share."""

    def __init__(
        self,
        store: Store,
        on_broken: Callable[[str], None],
        *,
        promise: Promise = UNLIMITED_PROMISE,
        shared: bool = False,
        on_shared: Callable[[], None] | None = None,
        counts: LedgerMetrics | None = None,
    ) -> None:
        self._counts = counts or LedgerMetrics()
        self._store = store
        self._on_broken = on_broken
        self._promise = promise
        self._shared = shared
        self._on_shared = on_shared
        self._versions: dict[_Key, int] = {}
        # In the order of first touch. A document that is touched again before it is written is written once, with its
        # newest content.
        self._pending: _Pending = {}
        self._writing: _Pending = {}
        self._deferred: _Pending = {}
        self._deferring: asyncio.TimerHandle | None = None
        self._deleted: set[_Key] = set()
        self._acknowledged: set[_Key] = set()
        # by tree: the batch part that the next journal entry can join, because nothing was recorded after it
        self._tails: dict[str, _Key] = {}
        self._lengths: dict[str, int] = {}  # of the streams that all servers append to
        self._waiters: list[asyncio.Future[None]] = []
        self._watched: list[tuple[str, dict[_Key, object]]] = []
        self._whole = AtomicChange(self)
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.broken = ""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="ledger")

    async def stop(self) -> None:
        if self._task is None:
            return
        if not self.broken:
            # The last error was raised to everyone who waited; a write that was not acknowledged counts as if it never
            # happened.
            self.write_deferred()
            await asyncio.gather(self.settled(), return_exceptions=True)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def known(self, kind: str, id: str, version: int) -> None:
        """A document was read from the store, at this version."""
        self._versions[(kind, id)] = version

    def version(self, kind: str, id: str) -> int:
        """The version at which this document was last read or written here; 0: never."""
        return self._versions.get((kind, id), 0)

    def busy(self, kind: str, id: str) -> bool:
        """Whether a change of this document is waiting to be written."""
        return any((kind, id) in changes for changes in (self._deferred, self._pending, self._writing))

    @contextmanager
    def watch(self, root: str) -> Iterator[dict[_Key, object]]:
        """Record the changes of a tree of cases from now on: each document with its newest content, None if it was
        deleted."""
        watched = (root, dict[_Key, object]())
        self._watched.append(watched)
        try:
            yield watched[1]
        finally:
            self._watched = [each for each in self._watched if each is not watched]

    def _note_change(self, key: _Key, document: object) -> None:
        for root, changed in self._watched:
            if root_of(key[1]) == root:
                changed[key] = document

    def atomic(self) -> "AtomicChange":
        """Changes inside the block happen in memory completely, or not at all, or the ledger breaks: an exception in
        the middle must not leave memory in a state that was never on disk."""
        return self._whole

    def give_up(self, reason: str) -> None:
        """Write nothing more: memory is inconsistent, or this server no longer owns its cases."""
        if not self.broken:
            self._break(reason, [])

    def touch(self, kind: str, id: str, document: object, *, last: bool = False, from_outside: bool = False) -> None:
        """Write this document (a struct, encoded when it is written). `last`: it will not be written again.
        `from_outside`: it changes because of a report of a pilot or a request of a person, and not because of an entry
        in a journal."""
        key = (kind, id)
        if self._shared:
            self._note_order(key, from_outside)
        self._pending[key] = document
        if self._watched:
            self._note_change(key, document)
        if last:
            self._deleted.add(key)
        else:
            self._deleted.discard(key)
        self._work.set()

    def touch_later(self, kind: str, id: str, document: object) -> None:
        """Write this document for the last time, soon and together with others. That is cheaper if their ids are in no
        order. `settled` does not wait for it, and a crash may lose it: it must be possible to make it again."""
        self._deferred[(kind, id)] = document
        if len(self._deferred) >= DEFERRED_MAX:
            self.write_deferred()
        elif self._deferring is None:
            self._deferring = asyncio.get_running_loop().call_later(DEFERRED_S, self.write_deferred)

    def write_deferred(self) -> None:
        """Record the documents that were deferred, in the order of their ids."""
        if self._deferring is not None:
            self._deferring.cancel()
            self._deferring = None
        deferred, self._deferred = self._deferred, {}
        if not deferred:
            return
        keys = sorted(deferred)
        for key in keys if self._shared or self._watched else ():
            if self._shared:
                self._note_order(key, from_outside=True)
            if self._watched:
                self._note_change(key, deferred[key])
        self._pending.update((key, deferred[key]) for key in keys)
        self._deleted.update(keys)
        self._work.set()

    def defer(self, kind: str, id: str) -> None:
        """Write this document, with changes to come, after everything that is recorded so far."""
        if (kind, id) in self._pending:
            self._pending[(kind, id)] = self._pending.pop((kind, id))

    def leave(self, kind: str, id: str) -> None:
        """This document will not be written again: forget its version once its changes are written."""
        self._deleted.add((kind, id))

    def drop(self, kind: str, id: str) -> None:
        """Delete this document, if it was ever written."""
        key = (kind, id)
        if self._watched:
            self._note_change(key, None)
        self._pending.pop(key, None)
        if key in self._versions or key in self._writing:
            self._pending[key] = None
            if self._shared:
                self._note_order(key)
            self._deleted.add(key)
            self._work.set()

    def append(self, stream: str, position: int, entry: bytes) -> None:
        """Append an entry to a stream whose length, with all entries appended before, is `position`."""
        key = ("", stream)
        if self._shared:
            key = self._journal_part(stream, position)
        batch = self._pending.get(key)
        if batch is None:
            self._pending[key] = (position, [entry])
        else:
            assert isinstance(batch, tuple)
            assert batch[0] + len(batch[1]) == position
            batch[1].append(entry)
        self._work.set()

    def _journal_part(self, stream: str, position: int) -> _Key:
        """The batch part of an entry: the one of the entries before it, unless a document of the same tree was recorded
        since. Then the entry must not be written before that document."""
        root, key = root_of(stream.removeprefix(JOURNALS)), ("", stream)
        tail = self._tails.get(root, key)
        if tail[1].partition(_PART)[0] != stream or (root not in self._tails and key in self._pending):
            tail = ("", f"{stream}{_PART}{position}")
        self._tails[root] = tail
        return tail

    def _note_order(self, key: _Key, from_outside: bool = False) -> None:
        """Track the order of documents and entries of a tree: whether this document follows from entries before it, and
        whether later entries may follow from it."""
        if not from_outside:
            self._acknowledged.discard(key)
        elif key not in self._pending:
            self._acknowledged.add(key)
        kind, id = key
        if kind not in _LEAF_KINDS:
            self._tails.pop(root_of(id), None)

    def reaches(self, stream: str, length: int) -> None:
        """A stream that all servers append to has at least this length."""
        self._lengths[stream] = length

    def add(self, stream: str, entry: bytes) -> None:
        """Append an entry to a stream that other servers append to as well, wherever its end is by then."""
        batch = self._pending.get(("", stream))
        if batch is None:
            self._pending[("", stream)] = (_ANY_POSITION, [entry])
        else:
            assert isinstance(batch, tuple)
            batch[1].append(entry)
        self._work.set()

    async def put_now(self, kind: str, id: str, document: object, version: int) -> int | None:
        """Write a document that all servers share, at once and independently of the batches; None deletes it. `version`
        is the version that was read. Returns the new version; None if another server has changed it: then nothing was
        written."""
        [written] = await self.put_all_now(kind, [(id, document, version)])
        return written

    async def put_all_now(self, kind: str, documents: Sequence[tuple[str, object, int]]) -> list[int | None]:
        """The same for several documents, by ids and versions, in one call: each is written or not by itself."""
        if self.broken:
            raise StoreUnavailable(self.broken)
        await self._wait_for_promise()
        results = await self._store.write(
            [
                Delete(kind, id, version) if document is None else Put(kind, id, _encode(document), version)
                for id, document, version in documents
            ]
        )
        versions = [result.version if isinstance(result, WriteDone) else None for result in results]
        if kind in SHARED_KINDS and self._on_shared is not None and any(each is not None for each in versions):
            self._on_shared()
        return versions

    @property
    def idle(self) -> bool:
        return not self._pending and not self._writing

    async def settled(self) -> None:
        """Return when everything recorded so far is on disk, and may be reported."""
        if self.broken:
            raise StoreUnavailable(self.broken)
        if not self.idle:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        await self._wait_for_promise()

    async def _wait_for_promise(self) -> None:
        """Return when this server may make promises. If it may not for long, others have taken over its cases, and
        memory is given up."""
        if not self._promise.holds() and not await self._promise.renewed():
            self.give_up(NO_PROMISE)
            raise StoreUnavailable(self.broken)

    async def _run(self) -> None:
        while not self.broken:
            await self._work.wait()
            self._work.clear()
            if not self._pending:
                continue
            self._writing, self._pending = self._pending, {}
            waiters, self._waiters = self._waiters, []
            gone, self._deleted = self._deleted, set()
            from_outside, self._acknowledged = self._acknowledged, set()
            self._tails.clear()
            # A waiter that comes while we write depends on the next batch, or on this one: it waits for the next.
            self._counts.began(len(self._writing))
            try:
                await self._write(self._writing, from_outside)
                self._counts.ended()
                for key in gone:
                    self._versions.pop(key, None)
            except StoreUnavailable as error:
                self._break(error.message, waiters, error)
                return
            except Exception as error:  # every waiter must get the exception, whatever it is
                log.exception("changes could not be written to the store")
                self._break(
                    f"changes could not be written to the store: {error}; loading everything again", waiters, error
                )
                return
            finally:
                self._writing = {}
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

    async def _write(self, pending: _Pending, from_outside: set[_Key]) -> None:
        versions, writes = self._versions, dict[_Key, Write]()
        for key, noted in pending.items():
            if key[0] and noted is not None:  # as nearly every change is, without a call
                writes[key] = Put(*key, _encode(noted), versions.get(key, 0))
            elif (write := self._prepare(key, noted)) is not None:
                writes[key] = write
        while writes:
            at_once, writes = _split_by_journal(writes, from_outside) if self._shared else (writes, {})
            await self._wait_for_promise()
            again: dict[_Key, Write] = {}
            for key, result in zip(at_once, await self._store.write(list(at_once.values())), strict=True):
                if isinstance(result, WriteDone):
                    if key[0] and self._on_shared is None:
                        self._versions[key] = result.version  # as nearly every document is, without a call
                    else:
                        self._done(key, result)
                elif isinstance(write := at_once[key], Append) and write.stream in self._lengths:
                    self._lengths[write.stream] = result.actual
                    again[key] = Append(write.stream, write.entries, result.actual)
                elif isinstance(write, Put) and write.kind == RESULT_KIND:
                    if not write.expected:
                        again[key] = Put(write.kind, write.id, write.body, result.actual)
                else:
                    raise StoreUnavailable(
                        f"{result.kind or 'stream'} {result.id} was changed by another server"
                        f" (expected {result.expected}, found {result.actual}); reading it again"
                    )
            writes = {**again, **writes}

    def _prepare(self, key: _Key, noted: object) -> Write | None:
        """The write of entries, or of a document that is deleted; None if it was never written."""
        kind, id = key
        if not kind:
            assert isinstance(noted, tuple)
            position, entries = noted
            stream = id.partition(_PART)[0]
            length = self._lengths.setdefault(stream, 0) if position is _ANY_POSITION else position
            return Append(stream, entries, length)
        version = self._versions.get(key, 0)
        return Delete(kind, id, version) if version else None

    def _done(self, key: _Key, result: WriteDone) -> None:
        kind, id = key
        if kind:
            self._versions[key] = result.version
            if kind in SHARED_KINDS and self._on_shared is not None:
                self._on_shared()
        elif id in self._lengths:
            self._lengths[id] = result.version

    def _break(self, reason: str, waiters: list[asyncio.Future[None]], error: Exception | None = None) -> None:
        self.broken = reason
        self._pending = {}  # a change that is half done must not reach the disk
        self._deferred = {}
        for waiter in waiters + self._waiters:
            if not waiter.done():
                waiter.set_exception(error or StoreUnavailable(reason))
        self._waiters.clear()
        self._on_broken(reason)


def _split_by_journal(
    writes: dict[_Key, Write], from_outside: set[_Key]
) -> tuple[dict[_Key, Write], dict[_Key, Write]]:
    """Split into what can be written at once, and what comes after a journal entry of the same tree of cases and has to
    wait for that. Reports of pilots and requests of people follow from no journal; an entry may follow from them, so
    entries come last. The streams that all servers append to wait until nothing else is left."""
    at_once: dict[_Key, Write] = {}
    entries: dict[_Key, Write] = {}
    common: dict[_Key, Write] = {}
    later: dict[_Key, Write] = {}
    journals: set[str] = set()
    for key, write in writes.items():
        kind, id = key
        root = root_of(id if kind else id.removeprefix(JOURNALS))
        if not kind and not id.startswith(JOURNALS):
            common[key] = write
        elif root in journals and key not in from_outside:
            later[key] = write
        elif kind:
            at_once[key] = write
        else:
            entries[key] = write
            journals.add(root)
    if later or entries:
        return {**at_once, **entries}, {**later, **common}
    return {**at_once, **common}, {}
