"""The store in a PostgreSQL database, which several servers share.

One connection writes, in groups (postgresql_writer.py); a few others read. All of them speak to the primary, so a read
sees every write that returned before, and searches do not lag."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from psycopg import Error

from mendflow.core.model.problems import StoreUnavailable
from mendflow.stores import postgresql_queries as sql
from mendflow.stores.contract import Document, Done, Put, Taken, Where, Write
from mendflow.stores.fields import check
from mendflow.stores.patience import Patience
from mendflow.stores.postgresql_address import Address, read_address
from mendflow.stores.postgresql_arrays import Texts
from mendflow.stores.postgresql_links import Readers, Rows, connect, may_pass, unavailable
from mendflow.stores.postgresql_migrations import migrate
from mendflow.stores.postgresql_parcels import fields_of
from mendflow.stores.postgresql_writer import Writer

SCAN_PAGE = 1000
READERS_MAX = 4


class PostgresqlStore:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._writer: Writer | None = None
        self._readers = Readers(address, READERS_MAX)

    @classmethod
    def from_url(cls, url: str) -> "PostgresqlStore":
        """The store that a URL names; raises Invalid if it names none."""
        return cls(read_address(url))

    async def open(self) -> None:
        assert self._writer is None, "opened twice"
        patience = Patience(self._address.patience_s)
        while True:
            try:
                await self._prepare()
                break
            except Error as error:
                if not may_pass(error) or not await patience.wait():
                    raise unavailable(self._address, error) from error
        self._writer = Writer(self._address)

    async def close(self) -> None:
        """Waits for what is queued; what is asked after this is refused."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.finish()
            await self._readers.close()

    async def write(self, writes: Sequence[Write]) -> list[Done | Taken]:
        writer = self._ready()
        for write in writes:
            if isinstance(write, Put):
                fields_of(write)
        return await writer.put(writes) if writes else []

    async def get(self, kind: str, id: str) -> Document | None:
        rows = await self._rows(sql.GET, (kind, id), prepare=True)
        return Document(kind, id, *rows[0]) if rows else None

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[Document]:
        self._ready()
        if not ids:
            return []
        return _documents(kind, await self._rows(sql.GET_MANY, (Texts(dict.fromkeys(ids)), kind), prepare=True))

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return [row[0] for row in await self._rows(sql.READ, (stream, start, limit), prepare=True)]

    async def length(self, stream: str) -> int:
        rows = await self._rows(sql.LENGTH, (stream,), prepare=True)
        return int(rows[0][0]) if rows else 0

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[Document]:
        statement, after = sql.SCAN_FIRST, prefix
        while page := _documents(kind, await self._rows(statement, (kind, after, SCAN_PAGE), prepare=True)):
            for document in page:
                if not document.id.startswith(prefix):
                    return
                yield document
            statement, after = sql.SCAN_NEXT, page[-1].id

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
        check(where, order_by)
        return _documents(kind, await self._rows(*sql.search(kind, where, order_by, descending, limit, offset, after)))

    async def count(self, kind: str, where: Sequence[Where] = (), *, by: str = "") -> dict[str, int]:
        check(where, by)
        return {label.decode(): number for label, number in await self._rows(*sql.count(kind, where, by))}

    async def refresh(self) -> None:
        """Nothing lags here; only the server must be there."""
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

    def _ready(self) -> Writer:
        if self._writer is None:
            shown = self._address.shown
            raise StoreUnavailable(f"{shown} is not open: open the store before use", store=shown)
        return self._writer


def _documents(kind: str, rows: Rows) -> list[Document]:
    return [Document(kind, id.decode(), version, body) for id, version, body in rows]
