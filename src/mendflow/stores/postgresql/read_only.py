"""Asks a PostgreSQL database one question, over a connection that can only read."""

from typing import Any

from psycopg import AsyncConnection, Error

from mendflow.core.model.errors import StoreUnavailable


async def read_rows(
    address: str, password: str, query: str, parameters: dict[str, Any], *, timeout_ms: int, rows_max: int
) -> tuple[list[str], list[Any]]:
    """The names of the columns, and the first rows. `query` has its parameters as `%(name)s`."""
    options = f"-c default_transaction_read_only=on -c statement_timeout={timeout_ms}"
    given: dict[str, Any] = {"password": password} if password else {}
    try:
        async with await AsyncConnection.connect(address, options=options, **given) as connection:
            cursor = await connection.execute(query.encode(), parameters or None)
            return [each.name for each in cursor.description or ()], await cursor.fetchmany(rows_max)
    except Error as error:
        raise StoreUnavailable((str(error).splitlines() or ["no answer"])[0]) from error
