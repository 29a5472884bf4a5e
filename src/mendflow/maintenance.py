"""What looks after a store from outside, while servers may work on it: whichever kind of store it is."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import LazyModule
from mendflow.stores.backup import Backup, back_up_sqlite, restore_sqlite
from mendflow.stores.schema_versions import SchemaVersion, is_postgresql, sqlite_schema
from mendflow.stores.secret_files import SECRETS_KEY_FILE
from mendflow.stores.urls import STORE_FILE, store_at
from mendflow.version import VERSION

if TYPE_CHECKING:
    from mendflow.stores.postgresql import backup as postgresql_backup
    from mendflow.stores.postgresql import schema as postgresql
else:
    postgresql_backup = LazyModule("mendflow.stores.postgresql.backup")
    postgresql = LazyModule("mendflow.stores.postgresql.schema")

__all__ = ["SECRETS_KEY_FILE", "STORE_FILE", "Backup", "SchemaVersion", "back_up", "restore", "schema_of"]


def back_up(store: str, data: Path, to: Path) -> Backup:
    """Copy the store of this URL, or that of a data folder, as it is now."""
    file = _file(store, data)
    if file is None:
        return postgresql_backup.back_up_postgresql(store, to, VERSION)
    return back_up_sqlite(file, to, VERSION)


async def restore(backup: Path, store: str, data: Path) -> tuple[Backup, Path | None]:
    """Make a store of a copy, and tell the file that it is, if it is one."""
    file = _file(store, data)
    if file is None:
        return await postgresql_backup.restore_postgresql(backup, store), None
    return restore_sqlite(backup, file), file


def schema_of(store: str, data: Path) -> SchemaVersion | None:
    """Which schema a store has; None if its kind does not tell without being opened."""
    if store and is_postgresql(store):
        return postgresql.postgresql_schema(store, time.time_ns() // 1_000_000)
    file = store_at(store, data).file
    return sqlite_schema(file) if file is not None else None


def _file(store: str, data: Path) -> Path | None:
    """The file that a store is; None for one in PostgreSQL."""
    if store and is_postgresql(store):
        return None
    file = store_at(store, data).file
    if file is None:
        raise InvalidRequest("this store makes its own backups: use the snapshots of OpenSearch or Elasticsearch")
    return file
