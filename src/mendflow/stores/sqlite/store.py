"""The store in one SQLite file: the embedded default.

One thread writes, in groups (writer.py). Reads have their own connections, and thanks to the write-ahead log they never
wait: a point read is so short that it runs on the event loop, anything longer goes to one of some reading threads. A
lock beside the file keeps a second server out."""

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.keyed_semaphore import KeyedSemaphore
from mendflow.process_priority import give_way
from mendflow.stores.contract import READING_COST, FieldCondition, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.fields import check
from mendflow.stores.file_lock import FileLock
from mendflow.stores.sql import SCAN_PAGE, scan_pages
from mendflow.stores.sqlite import queries as sql
from mendflow.stores.sqlite.checkpoints import Checkpointer
from mendflow.stores.sqlite.errors import unavailable
from mendflow.stores.sqlite.migrations import migrate
from mendflow.stores.sqlite.writer import SqliteWriter

INLINE_IDS_MAX = 32
READING_THREADS = 8
READS_OF_ONE_MAX = 2
READS_OF_NOBODY_MAX = 4
"""Of the threads, those that read for one who pays, and for the server itself, at once."""

READING_NICENESS = 7
BUSY_SECONDS = 5.0

Rows = list[tuple[Any, ...]]
T = TypeVar("T")


class SqliteStore:
    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self._lock = FileLock(self._path)
        self._opened: _Opened | None = None

    async def open(self) -> None:
        assert self._opened is None, "opened twice"
        loop = asyncio.get_running_loop()
        self._opened = await asyncio.to_thread(self._translating_errors, lambda: _open(self._path, self._lock, loop))

    async def close(self) -> None:
        """Waits for queued writes; refuses later calls."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.writer.finish()
            await asyncio.to_thread(self._translating_errors, opened.close)
            self._lock.release()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        return await self._ready().writer.put(writes) if writes else []

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        rows = self._translating_errors(lambda: self._ready().loop_reader.execute(sql.GET, (kind, id)).fetchall())
        return StoredDocument(kind, id, *rows[0]) if rows else None

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        params = (kind, msgspec.json.encode(list(dict.fromkeys(ids))).decode())
        if len(ids) <= INLINE_IDS_MAX:
            rows = self._translating_errors(lambda: self._ready().loop_reader.execute(sql.GET_MANY, params).fetchall())
        else:
            rows = await self._rows(sql.GET_MANY, params)
        return _documents(kind, rows)

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        rows = await self._rows(sql.STATUSES, (kind, msgspec.json.encode(list(ids)).decode()))
        return {id.decode(): status.decode() for id, status in rows if isinstance(status, bytes)}

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return [row[0] for row in await self._rows(sql.READ, (stream, start, limit))]

    async def length(self, stream: str) -> int:
        (row,) = self._translating_errors(lambda: self._ready().loop_reader.execute(sql.LENGTH, (stream,)).fetchall())
        return int(row[0])

    def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        async def read(statement: str, after: str, end: str) -> list[StoredDocument]:
            return _documents(kind, await self._rows(statement, (kind, after, end, SCAN_PAGE)))

        return scan_pages(read, sql.SCAN_FIRST, sql.SCAN_NEXT, prefix)

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
        check(where, order_by)
        asked = sql.SearchRequest(kind, where, order_by, descending, limit, offset, after)
        if (newest := sql.newest(asked)) is not None:
            rows = await self._rows(*newest)
            if len(rows) == limit:
                return _documents(kind, rows)
        found = sql.newest_cases(asked) or sql.keyed_cases(asked) or sql.later_runs(asked) or sql.search(asked)
        return _documents(kind, await self._rows(*found))

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        check(where, by)
        return {_text(value): number for value, number in await self._rows(*sql.count(kind, where, by))}

    async def kinds(self) -> list[str]:
        return [_text(kind) for (kind,) in await self._rows(sql.KINDS, ())]

    async def refresh(self) -> None:
        """Searches do not lag here."""
        self._ready()

    async def _rows(self, statement: str, params: Sequence[Any]) -> Rows:
        readers, payer = self._ready().readers, READING_COST.get()
        if payer is None:
            async with readers.turns.of(None):
                return (await self._read(readers, statement, params))[0]
        return await asyncio.shield(asyncio.create_task(self._paid_rows(readers, statement, params, payer)))

    async def _paid_rows(
        self, readers: "_Readers", statement: str, params: Sequence[Any], payer: Callable[[float], None]
    ) -> Rows:
        """A task of its own: a thread reads on when nobody waits any more, so the turn is kept and the time is paid."""
        async with readers.turns.of(payer):
            rows, took_s = await self._read(readers, statement, params)
        payer(took_s)
        return rows

    async def _read(self, readers: "_Readers", statement: str, params: Sequence[Any]) -> tuple[Rows, float]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            readers.threads, self._translating_errors, lambda: readers.read(statement, params)
        )

    def _ready(self) -> "_Opened":
        if self._opened is None:
            raise StoreUnavailable(f"{self._path} is not open: open the store before use", path=str(self._path))
        return self._opened

    def _translating_errors(self, work: Callable[[], T]) -> T:
        """Run it, and turn errors of the disk or SQLite into messages."""
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise unavailable(self._path, error) from error


class _Readers:
    """Threads that read, each with a connection of its own: a long read holds up no short one unless there are as many
    long ones as threads. Each who asks has a few of them at once: whoever asks for much does not keep others
    waiting."""

    def __init__(self, path: Path) -> None:
        self.connections = [_reader(path) for _ in range(READING_THREADS)]
        self._free = list(self.connections)
        self.turns = KeyedSemaphore(_reads_at_once)
        self.threads = ThreadPoolExecutor(READING_THREADS, "sqlite-reader", initializer=_let_readers_give_way)

    def read(self, statement: str, params: Sequence[Any]) -> tuple[Rows, float]:
        """The rows, and the processor time that they took."""
        begun_s, connection = time.thread_time(), self._free.pop()
        try:
            rows = connection.execute(statement, params).fetchall()
        finally:
            self._free.append(connection)
        return rows, time.thread_time() - begun_s

    def close(self) -> None:
        self.threads.shutdown()
        for connection in self.connections:
            connection.close()


def _reads_at_once(payer: object) -> int:
    return READS_OF_NOBODY_MAX if payer is None else READS_OF_ONE_MAX


def _let_readers_give_way() -> None:
    """They leave the processor to the threads that answer everybody and write: what takes long is read in between."""
    if sys.platform == "linux":
        give_way(threading.get_native_id(), READING_NICENESS)


class _Opened:
    """The state of an open store: the writer and its checkpoints, a connection for short reads, and threads for all
    others."""

    def __init__(self, main: sqlite3.Connection, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.main = main
        self.checkpointer = Checkpointer(path)
        self.writer = SqliteWriter(main, path, loop, self.checkpointer)
        self.loop_reader = _reader(path)
        self.readers = _Readers(path)

    def close(self) -> None:
        self.readers.close()
        self.loop_reader.close()
        self.checkpointer.stop()
        self.main.close()
        self.checkpointer.close()


def _open(path: Path, lock: FileLock, loop: asyncio.AbstractEventLoop) -> _Opened:
    lock.acquire()
    try:
        # A new file is for its owner alone, wherever it is; what SQLite makes beside it has the same mode.
        with suppress(OSError):  # what is wrong, SQLite tells better
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        main = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for pragma in sql.PRAGMAS:
                main.execute(pragma)
            migrate(main, path)
            main.execute(sql.WAIT_FOR_NO_LOCK)
            return _Opened(main, path, loop)
        except BaseException:
            main.close()
            raise
    except BaseException:
        lock.release()
        raise


def _reader(path: Path) -> sqlite3.Connection:
    """Returns texts as bytes: bodies are needed as bytes, and decoding is saved."""
    address = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes
    return connection


def _documents(kind: str, rows: Rows) -> list[StoredDocument]:
    return [StoredDocument(kind, id.decode(), version, body) for id, version, body in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else str(value)
