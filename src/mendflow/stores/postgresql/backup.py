"""Copies of a store in PostgreSQL, and stores made of such copies; it holds its stored files itself."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg

from mendflow.core.model.errors import Conflict, StoreUnavailable
from mendflow.stores.backup import (
    Backup,
    backup_of_kind,
    begin_backup,
    count_rows,
    describe_backup,
    now_ms,
    open_copy,
)
from mendflow.stores.postgresql.address import read_address
from mendflow.stores.postgresql.migrations import NEWEST, migrate
from mendflow.stores.schema_versions import SCHEMA_SQL
from mendflow.stores.urls import STORE_FILE

ROWS_TOGETHER: Final = 500
POSTGRESQL_TABLES: Final = {
    "documents": ("kind", "id", "version", "by_case", "by_state", "by_status", "body"),
    "streams": ("stream", "length"),
    "entries": ("stream", "position", "body"),
}
"""What a store in PostgreSQL consists of. Which writes its servers have sent is theirs alone, and not copied."""
_VERSIONS: Final = "SELECT last_value FROM versions"


def back_up_postgresql(url: str, to: Path, mendflow: str) -> Backup:
    """Copy a store in PostgreSQL, which holds its stored files itself."""
    address, draft = read_address(url), begin_backup(to)
    try:
        with psycopg.connect(address.conninfo) as connection, closing(sqlite3.connect(draft)) as copy:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute("SELECT set_config('search_path', %s, true)", (f'"{address.schema}"',))
            taken_at = now_ms()
            for table, columns in POSTGRESQL_TABLES.items():
                names, places = ", ".join(columns), ", ".join("?" * len(columns))
                copy.execute(f"CREATE TABLE {table} ({names})")
                rows = _rows(connection, f"SELECT {names} FROM {table}")
                copy.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
            copy.execute("CREATE TABLE versions (upto)")
            copy.execute("INSERT INTO versions VALUES (?)", connection.execute(_VERSIONS).fetchone() or (1,))
            copy.commit()
            counted, schema = count_rows(copy), connection.execute(SCHEMA_SQL).fetchone() or (0,)
    except psycopg.Error as error:
        raise StoreUnavailable(f"{address.shown} cannot be copied: {str(error).strip()}") from error
    return describe_backup(to, "postgresql", mendflow, int(schema[0]), taken_at, counted, {})


def _rows(connection: Any, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, some at a time: a store may be larger than the memory."""
    with connection.cursor(name="backup") as cursor:
        cursor.itersize = ROWS_TOGETHER
        cursor.execute(query)
        yield from cursor


async def restore_postgresql(backup: Path, url: str) -> Backup:
    """Fill an empty database from a copy, all of it or nothing."""
    found, address = backup_of_kind(backup, "postgresql", NEWEST), read_address(url)
    try:
        async with await psycopg.AsyncConnection.connect(address.conninfo) as connection, connection.transaction():
            await connection.execute("SELECT set_config('search_path', %s, true)", (f'"{address.schema}"',))
            await migrate(connection, address.schema, address.shown)
            if await (await connection.execute("SELECT 1 FROM documents LIMIT 1")).fetchone() is not None:
                raise Conflict(f"there are cases in {address.shown} already: name an empty database or another schema")
            with closing(open_copy(backup / STORE_FILE)) as copy:
                await _fill(connection, copy)
    except psycopg.Error as error:
        raise StoreUnavailable(f"{address.shown} cannot be restored: {str(error).strip()}") from error
    return found


async def _fill(connection: Any, copy: sqlite3.Connection) -> None:
    for table, columns in POSTGRESQL_TABLES.items():
        names = ", ".join(columns)
        async with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copying:
            for row in copy.execute(f"SELECT {names} FROM {table}"):
                await copying.write_row(row)
    [upto] = copy.execute("SELECT upto FROM versions").fetchone()
    await connection.execute("SELECT setval('versions', %s)", (upto,))
