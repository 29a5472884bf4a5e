"""The store in a PostgreSQL database, which several servers share.

One connection writes, in groups (writer.py); a few others read. All connect to the primary, so a read sees every write
that returned before, and searches do not lag."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from psycopg import Error

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.contract import FieldCondition, Put, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.fields import check
from mendflow.stores.postgresql import queries as sql
from mendflow.stores.postgresql.address import PostgresqlAddress, read_address
from mendflow.stores.postgresql.arrays import TextArray
from mendflow.stores.postgresql.connections import ReadPool, Rows, connect, is_transient, unavailable
from mendflow.stores.postgresql.migrations import migrate
from mendflow.stores.postgresql.write_groups import fields_of
from mendflow.stores.postgresql.writer import PostgresqlWriter
from mendflow.stores.retry import RetryTimer
from mendflow.stores.sql import SCAN_PAGE, scan_pages

READERS_MAX = 4


class PostgresqlStore:
    def __init__(self, address: PostgresqlAddress) -> None:
        self._address = address
        self._writer: PostgresqlWriter | None = None
        self._readers = ReadPool(address, READERS_MAX)

    @classmethod
    def from_url(cls, url: str) -> "PostgresqlStore":
        """The store that a URL names; raises Invalid if it names none."""
        return cls(read_address(url))

    async def open(self) -> None:
        assert self._writer is None, "opened twice"
        patience = RetryTimer(self._address.patience_s)
        while True:
            try:
                await self._prepare()
                break
            except Error as error:
                if not is_transient(error) or not await patience.wait():
                    raise unavailable(self._address, error) from error
        self._writer = PostgresqlWriter(self._address)

    async def close(self) -> None:
        """Waits for queued writes; refuses later calls."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.finish()
            await self._readers.close()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        writer = self._ready()
        for write in writes:
            if isinstance(write, Put):
                fields_of(write)
        return await writer.put(writes) if writes else []

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        rows = await self._rows(sql.GET, (kind, id), prepare=True)
        return StoredDocument(kind, id, *rows[0]) if rows else None

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        self._ready()
        if not ids:
            return []
        return _documents(kind, await self._rows(sql.GET_MANY, (TextArray(dict.fromkeys(ids)), kind), prepare=True))

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        self._ready()
        if not ids:
            return {}
        rows = await self._rows(sql.STATUSES, (TextArray(dict.fromkeys(ids)), kind), prepare=True)
        return {id.decode(): status.decode() for id, status in rows}

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return [row[0] for row in await self._rows(sql.READ, (stream, start, limit), prepare=True)]

    async def length(self, stream: str) -> int:
        rows = await self._rows(sql.LENGTH, (stream,), prepare=True)
        return int(rows[0][0]) if rows else 0

    def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        async def read(statement: bytes, after: str, end: str) -> list[StoredDocument]:
            return _documents(kind, await self._rows(statement, (kind, after, end, SCAN_PAGE), prepare=True))

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
        return _documents(kind, await self._rows(*sql.search(kind, where, order_by, descending, limit, offset, after)))

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        check(where, by)
        return {label.decode(): number for label, number in await self._rows(*sql.count(kind, where, by))}

    async def kinds(self) -> list[str]:
        return [kind.decode() for (kind,) in await self._rows(sql.KINDS, ())]

    async def refresh(self) -> None:
        """Searches do not lag here; only checks that the server answers."""
        await self._rows(sql.NOTHING, (), prepare=True)

    async def _prepare(self) -> None:
        link = await connect(self._address)
        try:
            await migrate(link, self._address.schema, self._address.shown)
            await link.execute(sql.FORGET_OLD_WRITERS)
        finally:
            await link.close()

    async def _rows(self, statement: bytes, params: Sequence[Any], *, prepare: bool = False) -> Rows:
        await self._ready().settle()
        return await self._readers.rows(statement, params, prepare=prepare)

    def _ready(self) -> PostgresqlWriter:
        if self._writer is None:
            shown = self._address.shown
            raise StoreUnavailable(f"{shown} is not open: open the store before use", store=shown)
        return self._writer


def _documents(kind: str, rows: Rows) -> list[StoredDocument]:
    return [StoredDocument(kind, id.decode(), version, body) for id, version, body in rows]
