"""The one thread that writes to the SQLite file, and groups commits.

Whoever writes leaves a batch in a queue and awaits its answer. The thread takes all that has gathered, and treats it
as one transaction: it reads the present versions of everything named, decides each compare-and-set in order from
those, and writes the last body of each document. One sync to disk then answers every batch at once. Deciding from
versions that were just read is safe because the file's lock keeps every other writer out.

The thread goes through SQLite in a handful of steps a group, not a few a write: the interpreter's lock is given up
around each step, and a busy event loop would be slow to give it back."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from mendflow.core.model.problems import StoreUnavailable
from mendflow.stores import sqlite_queries as sql
from mendflow.stores.contract import Append, Delete, Done, Put, Taken, Write
from mendflow.stores.fields import BadDocument
from mendflow.stores.sqlite_troubles import is_the_worlds, unavailable

Answer = list[Done | Taken]
Batch = tuple[Sequence[Write], "asyncio.Future[Answer]"]
Key = tuple[str, str]

GROUP_WRITES_MAX = 4096
"""Bounds how long one commit takes, and with it how long the first of the group waits for the last."""

_ROWS = (256, 128, 64, 32, 16, 8, 4, 2, 1)
_PUTS = [(rows, sql.many(sql.PUT, rows)) for rows in _ROWS]
_APPENDS = [(rows, sql.many(sql.APPEND, rows)) for rows in _ROWS]


class Changes:
    """A group decided in memory: what is there now, and what is to be written when the group is complete."""

    def __init__(self, versions: dict[Key, int], lengths: dict[str, int]) -> None:
        self.versions = versions
        self.lengths = lengths
        self.bodies: dict[Key, bytes | None] = {}
        self.entries: list[str | int | bytes] = []

    def decide(self, writes: Sequence[Write]) -> Answer:
        return [self._append(write) if isinstance(write, Append) else self._document(write) for write in writes]

    def _document(self, write: Put | Delete) -> Done | Taken:
        key = (write.kind, write.id)
        actual = self.versions.get(key, 0)
        if actual != write.expected:
            return Taken(write.kind, write.id, write.expected, actual)
        if isinstance(write, Put):
            self.versions[key] = actual + 1
            self.bodies[key] = write.body
            return Done(actual + 1)
        self.versions[key] = 0
        self.bodies[key] = None
        return Done(0)

    def _append(self, write: Append) -> Done | Taken:
        actual = self.lengths.get(write.stream, 0)
        if actual != write.expected:
            return Taken("stream", write.stream, write.expected, actual)
        for position, body in enumerate(write.entries, actual):
            self.entries += (write.stream, position, body)
        self.lengths[write.stream] = actual + len(write.entries)
        return Done(actual + len(write.entries))


class Writer:
    """Give it an open connection; from `start` on, that connection is the thread's own."""

    def __init__(self, connection: sqlite3.Connection, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._path = path
        self._loop = loop
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, writes: Sequence[Write]) -> "asyncio.Future[Answer]":
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._queue.put((writes, future))
        return future

    def finish(self) -> None:
        """Blocks until everything in the queue is on disk."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            group, last = self._gather()
            if group:
                answers = self._answers(group)
                try:
                    self._loop.call_soon_threadsafe(_resolve, group, answers)
                except RuntimeError:
                    return  # the event loop has ended: nobody is left to be told

    def _gather(self) -> tuple[list[Batch], bool]:
        """Everything queued, at least one batch; and whether the end was among it."""
        batch = self._queue.get()
        group: list[Batch] = []
        writes = 0
        while batch is not None:
            group.append(batch)
            writes += len(batch[0])
            if writes >= GROUP_WRITES_MAX:
                return group, False
            try:
                batch = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _answers(self, group: list[Batch]) -> list[Answer | Exception]:
        try:
            return list(self._commit(group))
        except Exception as error:  # noqa: BLE001 - the thread must live, and whoever waits must hear of anything
            self._roll_back()
            if isinstance(error, sqlite3.Error) and is_the_worlds(error):
                return [unavailable(self._path, error)] * len(group)
            if len(group) == 1:
                return [_guilt(error)]
        # One batch holds something that cannot be stored. Alone, each finds its own answer.
        return [self._answers([batch])[0] for batch in group]

    def _commit(self, group: list[Batch]) -> list[Answer]:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        changes = self._look([writes for writes, _ in group])
        answers = [changes.decide(writes) for writes, _ in group]
        self._write(changes)
        execute("COMMIT")
        return answers

    def _look(self, batches: list[Sequence[Write]]) -> Changes:
        """What the group's documents and streams are at now."""
        keys: set[Key] = set()
        streams: set[str] = set()
        for writes in batches:
            for write in writes:
                if isinstance(write, Append):
                    streams.add(write.stream)
                else:
                    keys.add((write.kind, write.id))
        versions = {(kind, id): version for kind, id, version in self._ask(sql.VERSIONS, keys)} if keys else {}
        lengths = dict(self._ask(sql.LENGTHS, streams)) if streams else {}
        return Changes(versions, lengths)

    def _ask(self, statement: str, about: set[Key] | set[str]) -> Any:
        (answer,) = self._connection.execute(statement, (msgspec.json.encode(about).decode(),)).fetchone()
        return msgspec.json.decode(answer)

    def _write(self, changes: Changes) -> None:
        rows: list[str | int | bytes] = []
        gone: list[Key] = []
        for key, body in changes.bodies.items():
            if body is None:
                gone.append(key)
            else:
                rows += (*key, changes.versions[key], body)
        if gone:
            self._connection.execute(sql.DELETE, (msgspec.json.encode(gone).decode(),))
        self._insert(_PUTS, 4, rows)
        self._insert(_APPENDS, 3, changes.entries)

    def _insert(self, statements: list[tuple[int, str]], width: int, params: list[str | int | bytes]) -> None:
        """Many rows in few statements, of sizes that stay prepared."""
        start = 0
        for rows, statement in statements:
            span = rows * width
            while len(params) - start >= span:
                self._connection.execute(statement, params[start : start + span])
                start += span

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return  # SQLite has rolled back by itself, which it does when the disk fails under it


def _guilt(error: Exception) -> Exception:
    """What is told to the one whose batch cannot be stored."""
    if isinstance(error, StoreUnavailable):
        return error
    return BadDocument(f"this cannot be stored: {error}; a document must be JSON, and ids plain text")


def _resolve(group: list[Batch], answers: list[Answer | Exception]) -> None:
    for (_, future), answer in zip(group, answers, strict=True):
        if future.done():
            continue  # whoever waited has gone
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
