"""Connections to a PostgreSQL store: opened when needed, reopened when they broke, and given up with an error when
the server stays away.

If the connection survives an error, the error is the server's answer, and the statement had no effect. If the
connection broke, the effect is unknown. A read is then simply repeated; for a write, the writer finds out
(writer.py)."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.fields import BadDocument
from mendflow.stores.postgresql.address import PostgresqlAddress
from mendflow.stores.postgresql.arrays import ARRAY_DUMPERS
from mendflow.stores.retry import RetryTimer

Connection = AsyncConnection
Rows = list[tuple[Any, ...]]

ANSWER_S_MAX = 15.0
"""A connection without an answer for this long counts as broken. Any working query is much faster."""

TEXT_OIDS = ("text", "varchar")

SETTLE = """
SELECT set_config('search_path', %s, false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                                          WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
"""
"""A commit that returned has been synced to disk, whatever the database's own setting."""

_WHAT_TO_DO = (
    # By the server's SQLSTATE; for a failed connect the driver has only the message.
    ("28P01", "password authentication failed", "the user or the password is wrong: check the URL"),
    ("28000", "pg_hba.conf", "the user may not connect from here: check the URL, and the server's pg_hba.conf"),
    ("28000", 'role ".*" does not exist', "the user is not known there: check the URL, or make it with createuser"),
    ("3D000", 'database ".*" does not exist', "there is no such database: check the URL, or make it with createdb"),
    (
        "08P01",
        "does not support SSL",
        "the server speaks no TLS: switch it on there, or choose another sslmode in the URL",
    ),
    ("08004", "certificate", "the server's certificate is not trusted: check sslmode and sslrootcert in the URL"),
    ("42501", "", "the user may not do that: let it own the schema, or grant it CREATE on the database"),
    ("53100", "", "the server's disk is full: free some space; writing then continues by itself"),
    ("53300", "too many clients", "the server has no connection left: raise max_connections, or stop other clients"),
    ("25006", "", "the server takes no writes: give the URL of the primary"),
    ("42P01", "", "mendflow's tables are not there any more: restore a backup, or start the server anew"),
)
_LASTING = ("TLS", "28P01", "28000", "3D000", "08004", "42501", "25006", "42P01")
_AWAY = "the server cannot be reached, or does not answer: check that it runs, and that the URL names it"


class _Bytes(Loader):
    """Returns texts as bytes: bodies are needed as bytes, and decoding is saved."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


async def connect(address: PostgresqlAddress) -> Connection:
    """A new connection, ready for use."""
    link: Connection = await AsyncConnection.connect(address.conninfo, autocommit=True)
    try:
        for name in TEXT_OIDS:
            link.adapters.register_loader(name, _Bytes)
        for wrapper, dumper in ARRAY_DUMPERS:
            link.adapters.register_dumper(wrapper, dumper)
        await link.execute(SETTLE, (f'"{address.schema.replace(chr(34), chr(34) * 2)}"',))
    except BaseException:
        await link.close()
        raise
    return link


@asynccontextmanager
async def answer_timeout(link: Connection) -> AsyncIterator[None]:
    """Close the connection if there is no answer in time. The driver then reports it as broken, as usual."""
    timer = asyncio.get_running_loop().call_later(ANSWER_S_MAX, _break, link)
    try:
        yield
    finally:
        timer.cancel()


def _break(link: Connection) -> None:
    with suppress(Error, OSError):
        twin = socket.socket(fileno=os.dup(link.fileno()))
        try:
            twin.shutdown(socket.SHUT_RDWR)
        finally:
            twin.close()


async def rows_of(link: Connection, statement: bytes, params: Sequence[Any], *, prepare: bool = False) -> Rows:
    """The server's answer. With `prepare`, the statement is parsed and planned once."""
    async with answer_timeout(link):
        return await (await link.execute(statement, params, prepare=prepare or None, binary=True)).fetchall()


def is_transient(error: Error) -> bool:
    """Whether a retry may work: the server is away, is starting, or resolved a deadlock against us."""
    state, _ = _meaning(error)
    if state in _LASTING or not isinstance(error, OperationalError | InterfaceError):
        return False
    return not state or state[:2] in ("08", "40", "53", "55", "57")


def unavailable(address: PostgresqlAddress, error: Error) -> StoreUnavailable:
    """The error as a sentence. The driver's messages contain no password."""
    reason = " ".join(str(error).split()) or type(error).__name__
    _, what = _meaning(error)
    what = what or (_AWAY if is_transient(error) else "the server refused")
    told = f"the store of this server: {what}"
    return StoreUnavailable(f"{address.shown}: {what} ({reason})", told=told, store=address.shown)


def _meaning(error: Error) -> tuple[str, str]:
    reason = str(error)
    for state, phrase, what in _WHAT_TO_DO:
        if error.sqlstate == state or (error.sqlstate is None and phrase and re.search(phrase, reason)):
            return state, what
    return error.sqlstate or "", ""


class ReadPool:
    """A few connections for reads; the last used is used next, so that few stay warm."""

    def __init__(self, address: PostgresqlAddress, links_max: int) -> None:
        self._address = address
        self._free: list[Connection] = []
        self._turns = asyncio.Semaphore(links_max)

    async def rows(self, statement: bytes, params: Sequence[Any] = (), *, prepare: bool = False) -> Rows:
        """Send, and retry while the server is away and patience lasts."""
        patience = RetryTimer(self._address.patience_s)
        while True:
            try:
                async with self._turns:
                    return await self._ask(statement, params, prepare)
            except (DataError, UnicodeError) as error:
                raise BadDocument(f"this cannot be asked for: {' '.join(str(error).split())}") from error
            except Error as error:
                if not is_transient(error) or not await patience.wait():
                    raise unavailable(self._address, error) from error

    async def _ask(self, statement: bytes, params: Sequence[Any], prepare: bool) -> Rows:
        link = self._free.pop() if self._free else await connect(self._address)
        try:
            rows = await rows_of(link, statement, params, prepare=prepare)
        except BaseException:
            if link.broken or link.closed:
                await self.close()  # the others broke with it, or will
            await link.close()
            raise
        self._free.append(link)
        return rows

    async def close(self) -> None:
        free, self._free = self._free, []
        for link in free:
            await link.close()
