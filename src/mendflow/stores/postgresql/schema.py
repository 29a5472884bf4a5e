"""Which schema a store in PostgreSQL has, without bringing it to a newer one, and how its clock goes."""

import psycopg

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.postgresql.address import read_address
from mendflow.stores.postgresql.migrations import NEWEST
from mendflow.stores.schema_versions import SCHEMA_SQL, SchemaVersion

CONNECT_S = 5


def postgresql_schema(url: str, now_ms: int) -> SchemaVersion:
    address = read_address(url)
    try:
        with psycopg.connect(address.conninfo, connect_timeout=CONNECT_S) as connection:
            there = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").fetchone()
            known = connection.execute("SELECT to_regclass(%s)", (f'"{address.schema}".schema_version',)).fetchone()
            present = 0
            if known is not None and known[0] is not None:
                connection.execute("SELECT set_config('search_path', %s, true)", (f'"{address.schema}"',))
                row = connection.execute(SCHEMA_SQL).fetchone()
                present = int(row[0]) if row is not None else 0
    except psycopg.Error as error:
        raise StoreUnavailable(f"{address.shown} cannot be asked: {str(error).strip()}") from error
    ahead = int(there[0]) - now_ms if there is not None else 0
    return SchemaVersion(shown=address.shown, present=present, newest=NEWEST, ahead_ms=ahead)
