"""The writer of the SQLite file; it groups commits.

A caller queues a batch and awaits its answer. Everything queued becomes one transaction: the writer reads the current
versions of all keys, decides each compare-and-set in order, and writes the last body of each document. One sync to disk
then answers every batch. Deciding from versions that were just read, or that this writer itself wrote last, is safe
because the file lock keeps every other writer out.

The statements of a small group run on the event loop, a few microseconds per write; only the commit, which waits for
the disk, goes to a thread, unless the group is tiny and the disk fast. Running the statements in the thread would be
slower: the interpreter lock is released around every step of SQLite, and a busy event loop is slow to give it back. A
large group, or one with an error, runs in the thread as a whole, where it blocks nothing."""

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from mendflow.stores.contract import Append, Delete, Put, RemoveStream, Write, WriteConflict, WriteDone
from mendflow.stores.fields import BadDocument
from mendflow.stores.sqlite import queries as sql
from mendflow.stores.sqlite.checkpoints import Checkpointer
from mendflow.stores.sqlite.errors import is_busy, is_environment_error, removed, unavailable
from mendflow.stores.sqlite.row_writer import REMEMBERED_MAX, Key, RowWriter
from mendflow.stores.write_batches import WriteBatch, WriteOutcomes, resolve, take_group

log = logging.getLogger("mendflow.store")

ON_THE_LOOP_WRITES_MAX = 512
ON_THE_LOOP_BYTES_MAX = 256 * 1024
ON_THE_LOOP_DOCUMENT_BYTES_MAX = 32 * 1024
"""A group up to this size, of documents up to that size, blocks the event loop for a few milliseconds at most: SQLite
reads all of a document for its columns, several times."""

COMMIT_HERE_WRITES_MAX = 16
COMMIT_HERE_MS_MAX = 1.0
"""With a disk that syncs this fast, a small group is committed on the event loop: waking a thread and being woken by it
takes about as long as the sync, and the caller waits for this answer only."""

VERSIONS_RESERVED = 1_000_000
"""So many versions are reserved at once, which costs one more write in a million; unused numbers do no harm."""

LOOK_ONE_BY_ONE_MAX = 4

LOOKED_FOR_S = 0.02
"""So long after a look at the names of the files, they are taken for the same: a look costs as much as a page of the
log, and whoever removes the store removes all of it."""

LOCKED_SECONDS_MAX = 5.0
"""How long to wait for another program that holds the file locked."""


class SqliteWriter:
    """Takes over an open connection without a busy timeout."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, loop: asyncio.AbstractEventLoop, checkpointer: Checkpointer
    ) -> None:
        self._connection = connection
        self._transaction = Transaction(connection)
        self._checkpointer = checkpointer
        self._path = path
        self._files = _files_of(path)
        self._looked_for_at = 0.0
        self._loop = loop
        self._gathered: list[WriteBatch] = []
        self._at_work = False
        self._idle: asyncio.Future[None] | None = None
        self._commit_ms = COMMIT_HERE_MS_MAX  # the running mean; until it is known, commits go to the thread
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    def put(self, writes: Sequence[Write]) -> "asyncio.Future[WriteOutcomes]":
        future: asyncio.Future[WriteOutcomes] = self._loop.create_future()
        self._gathered.append((writes, future))
        if not self._at_work:
            self._at_work = True
            self._loop.call_soon(self._next_group)
        return future

    async def finish(self) -> None:
        """Returns when all queued writes are on disk."""
        if self._at_work:
            self._idle = self._loop.create_future()
            await self._idle
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)

    def _next_group(self) -> None:
        group, self._gathered, writes = take_group(self._gathered)
        if not group:
            self._at_work = False
            if self._idle is not None:
                self._idle.set_result(None)
            return
        if writes <= ON_THE_LOOP_WRITES_MAX and _is_small(group):
            try:
                answers = self._transaction.prepare(group)
            except Exception:  # noqa: BLE001 - whatever it is, the thread meets it again and has time to sort it out
                self._transaction.roll_back()
            else:
                if writes <= COMMIT_HERE_WRITES_MAX and self._is_commit_short:
                    self._resolve(group, self._committed(group, answers))
                else:
                    self._work.put(lambda: self._tell(group, self._committed(group, answers)))
                return
        self._work.put(lambda: self._tell(group, self._answers(group)))

    @property
    def _is_commit_short(self) -> bool:
        return self._commit_ms < COMMIT_HERE_MS_MAX and not self._checkpointer.is_nearly_done

    def _resolve(self, group: list[WriteBatch], answers: list[WriteOutcomes | Exception]) -> None:
        resolve(group, answers)
        # The callers run before this, and their next writes join the next group.
        self._loop.call_soon(self._next_group)

    # From here on: in the thread.

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _tell(self, group: list[WriteBatch], answers: list[WriteOutcomes | Exception]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, group, answers)
        except RuntimeError:
            return  # the event loop has ended: nobody waits for the answer

    def _committed(self, group: list[WriteBatch], answers: list[WriteOutcomes]) -> list[WriteOutcomes | Exception]:
        started = time.perf_counter()
        try:
            if started - self._looked_for_at > LOOKED_FOR_S:
                if _files_of(self._path) != self._files:
                    self._transaction.roll_back()
                    return [removed(self._path)] * len(group)
                self._looked_for_at = started
            self._transaction.commit()
        except sqlite3.Error as error:
            self._transaction.roll_back()
            return [unavailable(self._path, error)] * len(group)
        self._commit_ms += 0.1 * ((time.perf_counter() - started) * 1000 - self._commit_ms)
        self._check_log()
        return list(answers)

    def _check_log(self) -> None:
        """What is committed stays so, whatever a checkpoint meets."""
        try:
            if self._checkpointer.is_nearly_done:
                self._checkpointer.complete(self._connection)
            self._checkpointer.after_commit()
        except (sqlite3.Error, OSError) as error:
            log.warning("%s: no checkpoint now: %s", self._path, error)

    def _answers(self, group: list[WriteBatch]) -> list[WriteOutcomes | Exception]:
        try:
            return self._committed(group, self._when_unlocked(group))
        except Exception as error:  # noqa: BLE001 - the thread must live, and whoever waits must hear of anything
            self._transaction.roll_back()
            if isinstance(error, sqlite3.Error) and is_environment_error(error):
                return [unavailable(self._path, error)] * len(group)
            if len(group) == 1:
                return [BadDocument(f"this cannot be stored: {error}; a document must be JSON, and ids plain text")]
        # One batch has something that cannot be stored. Written alone, each gets its own answer.
        return [self._answers([batch])[0] for batch in group]

    def _when_unlocked(self, group: list[WriteBatch]) -> list[WriteOutcomes]:
        give_up_at = time.monotonic() + LOCKED_SECONDS_MAX
        while True:
            try:
                return self._transaction.prepare(group)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > give_up_at:
                    raise
            self._transaction.roll_back()
            time.sleep(0.02)


def _is_small(group: list[WriteBatch]) -> bool:
    size = 0
    for writes, _ in group:
        for write in writes:
            if isinstance(write, Put):
                if len(write.body) > ON_THE_LOOP_DOCUMENT_BYTES_MAX:
                    return False
                size += len(write.body)
            elif isinstance(write, Append):
                size += sum(map(len, write.entries))
    return size <= ON_THE_LOOP_BYTES_MAX


def _files_of(path: Path) -> list[tuple[int, int]]:
    """Which files are there by the names of the store and of its log. SQLite goes on writing to files that were
    removed, and all of it would be lost."""
    try:
        found = [os.stat(each) for each in (path, f"{path}-wal")]
    except OSError:
        return []
    return [(each.st_dev, each.st_ino) for each in found]


class Transaction:
    """A group of batches as one SQLite transaction, in a few statements."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows = RowWriter(connection)
        # As committed: nobody else writes to the file.
        self._versions: dict[Key, int] = {}
        self._lengths: dict[str, int] = {}
        self._version = self._reserved = int(connection.execute(sql.RESERVED).fetchone()[0])
        self._prepared = GroupChanges({}, {}, 0)

    def prepare(self, group: list[WriteBatch]) -> list[WriteOutcomes]:
        """Everything except the commit."""
        self._connection.execute("BEGIN IMMEDIATE")
        changes = self._look(group)
        answers = [changes.decide(writes) for writes, _ in group]
        self._version = changes.version
        if self._version > self._reserved:
            self._reserved = self._version + VERSIONS_RESERVED
            self._connection.execute(sql.RESERVE, (self._reserved,))
        self._write(changes)
        self._prepared = changes
        return answers

    def commit(self) -> None:
        self._connection.commit()
        self._rows.remember()
        self._remember(self._prepared)

    def _remember(self, changes: "GroupChanges") -> None:
        for known in (self._versions, self._lengths):
            if len(known) > REMEMBERED_MAX:
                known.clear()
        self._versions.update(changes.versions)
        self._lengths.update(changes.lengths)

    def roll_back(self) -> None:
        self._rows.forget()
        self._versions.clear()
        self._lengths.clear()
        self._reserved = 0  # versions that this transaction reserved are not; the next one reserves them again
        try:
            self._connection.rollback()
        except sqlite3.Error:
            return  # SQLite has rolled back by itself, as it does when the disk fails

    def _look(self, group: list[WriteBatch]) -> "GroupChanges":
        """The current versions and lengths of the group's documents and streams."""
        keys: set[Key] = set()
        streams: set[str] = set()
        for writes, _ in group:
            for write in writes:
                if isinstance(write, (Append, RemoveStream)):
                    streams.add(write.stream)
                else:
                    keys.add((write.kind, write.id))
        return GroupChanges(self._versions_of(keys), self._lengths_of(streams), self._version)

    def _versions_of(self, keys: set[Key]) -> dict[Key, int]:
        versions = {key: self._versions[key] for key in keys if key in self._versions}
        unknown = keys.difference(versions)
        if len(unknown) <= LOOK_ONE_BY_ONE_MAX:
            for key in unknown:
                row = self._connection.execute(sql.VERSION, key).fetchone()
                versions[key] = row[0] if row else 0
        else:
            by_kind: dict[str, list[str]] = {}
            for kind, id in unknown:
                by_kind.setdefault(kind, []).append(id)
            for kind, ids in by_kind.items():
                versions.update(((kind, id), version) for id, version in self._ask(sql.VERSIONS, kind, about=ids))
        return versions

    def _lengths_of(self, streams: set[str]) -> dict[str, int]:
        lengths = {stream: self._lengths[stream] for stream in streams if stream in self._lengths}
        unknown = streams.difference(lengths)
        if unknown:
            lengths.update(self._ask(sql.LENGTHS, about=list(unknown)))
        return lengths

    def _ask(self, statement: str, *params: str, about: list[str]) -> Any:
        (answer,) = self._connection.execute(statement, (*params, msgspec.json.encode(about).decode())).fetchone()
        return msgspec.json.decode(answer)

    def _write(self, changes: "GroupChanges") -> None:
        self._rows.write(changes.bodies, changes.versions)
        if changes.removed:
            self._connection.execute(sql.REMOVE_STREAMS, (msgspec.json.encode(changes.removed).decode(),))
        self._rows.append(changes.entries)


class GroupChanges:
    """A group decided in memory: what is there now, and what to write when the group is complete. `version` is the last
    one used."""

    def __init__(self, versions: dict[Key, int], lengths: dict[str, int], version: int) -> None:
        self.versions = versions
        self.lengths = lengths
        self.version = version
        self.bodies: dict[Key, bytes | None] = {}
        self.entries: list[str | int | bytearray] = []
        self.removed: set[str] = set()  # streams; their entries of before the group go

    def decide(self, writes: Sequence[Write]) -> WriteOutcomes:
        return [self._put(write) if isinstance(write, Put) else self._decide(write) for write in writes]

    def _put(self, write: Put) -> WriteDone | WriteConflict:
        key = (write.kind, write.id)
        actual = self.versions.get(key, 0)
        if actual != write.expected:
            return WriteConflict(write.kind, write.id, write.expected, actual)
        self.version = version = self.version + 1
        self.versions[key] = version
        self.bodies[key] = write.body
        return WriteDone(version)

    def _decide(self, write: Delete | Append | RemoveStream) -> WriteDone | WriteConflict:
        if isinstance(write, Append):
            return self._append(write)
        return self._remove(write) if isinstance(write, RemoveStream) else self._delete(write)

    def _remove(self, write: RemoveStream) -> WriteDone:
        self.removed.add(write.stream)
        self.lengths[write.stream] = 0
        rows = [self.entries[at : at + 3] for at in range(0, len(self.entries), 3)]
        self.entries = [value for row in rows if row[0] != write.stream for value in row]
        return WriteDone(0)

    def _delete(self, write: Delete) -> WriteDone | WriteConflict:
        key = (write.kind, write.id)
        actual = self.versions.get(key, 0)
        if actual != write.expected:
            return WriteConflict(write.kind, write.id, write.expected, actual)
        self.versions[key] = 0
        self.bodies[key] = None
        return WriteDone(0)

    def _append(self, write: Append) -> WriteDone | WriteConflict:
        actual = self.lengths.get(write.stream, 0)
        if actual != write.expected:
            return WriteConflict("stream", write.stream, write.expected, actual)
        for position, body in enumerate(write.entries, actual):
            self.entries += (write.stream, position, bytearray(body))
        self.lengths[write.stream] = actual + len(write.entries)
        return WriteDone(actual + len(write.entries))
