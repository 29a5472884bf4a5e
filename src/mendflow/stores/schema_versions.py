"""Which schema a store has, without opening it for work: what is only looked at is not brought to a newer one."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

import msgspec

from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.stores.sqlite.migrations import NEWEST as SQLITE_NEWEST
from mendflow.stores.url_parts import split

SCHEMA_SQL = "SELECT coalesce(max(number), 0) FROM schema_version"


class SchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """`present` is 0 if there is nothing yet, and `newest` what this mendflow writes. `ahead_ms` says by how much the
    clock of a database goes ahead of the one here."""

    shown: str
    present: int
    newest: int
    ahead_ms: int = 0


def sqlite_schema(path: Path) -> SchemaVersion:
    """The schema of a store that is a file. Raises StoreUnavailable if it cannot be read, or is damaged."""
    if not path.exists():
        return SchemaVersion(shown=str(path), present=0, newest=SQLITE_NEWEST)
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        try:
            [told] = connection.execute("PRAGMA quick_check(1)").fetchone()
            present = connection.execute(SCHEMA_SQL).fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be read as a store: {error}") from error
    if told != "ok":
        raise StoreUnavailable(f"{path} is damaged: {told}")
    return SchemaVersion(shown=str(path), present=present, newest=SQLITE_NEWEST)


def is_postgresql(url: str) -> bool:
    try:
        return split(url).scheme in ("postgresql", "postgres")
    except ValueError as error:
        raise InvalidRequest("the store's URL cannot be read: check its brackets") from error
