"""Reads the sources of conditions: by HTTP, from a command, from a database, from a file.

HTTP goes to public addresses only, as webhooks do, unless the server's owner allows private ones: the connection goes
to the very address that was checked, and redirects are not followed. Commands, databases and files are what the server
can reach and its users perhaps not: a server reads them only if it was started so. Values of an exception become parts
of an address, single arguments, or bound parameters, never syntax."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from mendflow.address_guard import AddressGuard, check_url
from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.core.model.sources import GUARDED_KINDS, SourceKind
from mendflow.core.model.values import Value
from mendflow.lazy import LazyModule
from mendflow.server.outgoing import OutgoingCalls, failure_sentence
from mendflow.services.base.source_reader import PLACEHOLDER, SourceAway, SourceRequest

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LazyModule("aiohttp")

ANSWER_BYTES_MAX: Final = 1_000_000
ROWS_MAX: Final = 200
SECRET_VARIABLE: Final = "MENDFLOW_SOURCE_SECRET"
SQLITE: Final = "sqlite:///"
POSTGRESQL: Final = ("postgresql://", "postgres://")
PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG", "TZ")
STEPS_BETWEEN_LOOKS: Final = 10_000


class RowReader(Protocol):
    """Asks a database one question, and changes nothing there."""

    async def read_rows(
        self, address: str, password: str, query: str, parameters: dict[str, Any], *, timeout_ms: int, rows_max: int
    ) -> tuple[list[str], list[Any]]: ...


class ServerSourceReader:
    """`guard` says which addresses are asked; `allowed` are the guarded kinds of sources that this server reads."""

    def __init__(
        self, guard: AddressGuard, *, allowed: frozenset[SourceKind], postgresql: RowReader | None = None
    ) -> None:
        self._postgresql = postgresql
        self._guard = guard
        self._allowed = allowed

    def check(self, kind: SourceKind, address: str, query: str) -> None:
        if kind in GUARDED_KINDS and kind not in self._allowed:
            raise InvalidRequest(
                f"this server reads no {kind} sources; one that is started with --allow-sources {kind} does",
                field="kind",
            )
        if kind == "http":
            parts = address.partition("://")[2].partition("/")
            if PLACEHOLDER.search(parts[0]):
                raise InvalidRequest("the host of an address is fixed: {...} stands in its path", field="address")
            check_url(address, guard=self._guard, what="source", field="address")
        elif kind == "command":
            _split(address)
        elif kind == "sql":
            _check_database(address)
        elif not Path(address).is_absolute():
            raise InvalidRequest(f"{address[:100]!r} is not the whole path of a file, from / on", field="address")

    async def read(self, request: SourceRequest) -> Value:
        self.check(request.kind, request.address, request.query)
        if request.kind == "http":
            return await self._fetch(request)
        if request.kind == "command":
            return await _run(request)
        if request.kind == "file":
            return _decoded(await asyncio.to_thread(_read_file, request.address))
        if request.address.startswith(SQLITE):
            return await asyncio.to_thread(_ask_sqlite, request)
        return await self._ask_postgresql(request)

    async def _ask_postgresql(self, request: SourceRequest) -> Value:
        names = {each: f"p{number}" for number, each in enumerate(request.parameters)}
        escaped = request.query.replace("%", "%%") if names else request.query
        query = PLACEHOLDER.sub(lambda found: f"%({names[found[1]]})s", escaped)
        parameters = {names[each]: value for each, value in request.parameters.items()}
        if self._postgresql is None:
            raise SourceAway("this server was built without PostgreSQL")
        try:
            columns, rows = await self._postgresql.read_rows(
                request.address,
                request.secret,
                query,
                parameters,
                timeout_ms=request.timeout_ms,
                rows_max=ROWS_MAX + 1,
            )
        except ImportError as error:
            missing = "PostgreSQL needs a package that is not installed: pip install 'mendflow[postgresql]'"
            raise SourceAway(missing) from error
        except StoreUnavailable as error:
            raise SourceAway(f"the database says: {error.message}") from error
        return _table(columns, rows)

    async def _fetch(self, request: SourceRequest) -> Value:
        url = PLACEHOLDER.sub(lambda found: quote(_text(request.parameters[found[1]]), safe=""), request.address)
        headers = {"User-Agent": "mendflow", "Accept": "application/json, text/plain;q=0.9"}
        if request.secret:
            headers["Authorization"] = f"Bearer {request.secret}"
        try:
            check_url(url, guard=self._guard, what="source", field="address")
            async with (
                OutgoingCalls(self._guard, total_s=request.timeout_ms / 1000) as calls,
                calls.request("GET", url, headers=headers) as response,
            ):
                if response.status != 200:
                    raise SourceAway(f"{urlsplit(url).hostname} answered with status {response.status}")
                body = bytearray()
                async for part in response.content.iter_chunked(65_536):
                    body += part
                    _demand_size(len(body))
                return _decoded(bytes(body))
        except InvalidRequest as error:
            raise SourceAway(error.message) from error
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceAway(failure_sentence(error)) from error


async def _run(request: SourceRequest) -> Value:
    """The output of a command, which gets its secret by a variable."""
    environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    if request.secret:
        environment[SECRET_VARIABLE] = request.secret
    arguments = [_argument(each, request.parameters) for each in _split(request.address)]
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SourceAway(f"{arguments[0]} cannot be started: {getattr(error, 'strerror', '') or error}") from error
    assert process.stdout is not None
    try:
        output = bytearray()
        while part := await process.stdout.read(65_536):
            output += part
            _demand_size(len(output))
        status = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the whole group: it may have left something behind
    if status:
        raise SourceAway(f"{arguments[0]} ended with status {status}")
    return _decoded(bytes(output))


def _split(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise InvalidRequest(f"the command cannot be read: {error}", field="address") from error
    if not arguments or PLACEHOLDER.search(arguments[0]):
        raise InvalidRequest("a command begins with the name of a program", field="address")
    return arguments


def _argument(template: str, parameters: dict[str, Value]) -> str:
    filled = PLACEHOLDER.sub(lambda found: _text(parameters[found[1]]), template)
    if filled.startswith("-") and not template.startswith("-"):
        raise SourceAway(f"{filled[:40]!r} would be an option of the command, not a value")
    return filled


def _read_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            found = file.read(ANSWER_BYTES_MAX + 1)
    except OSError as error:
        raise SourceAway(f"{path} cannot be read: {error.strerror}") from error
    _demand_size(len(found))
    return found


def _check_database(address: str) -> None:
    if not address.startswith((SQLITE, *POSTGRESQL)):
        raise InvalidRequest(
            "the address of a database is like postgresql://user@host/name or sqlite:////path/of/file.db",
            field="address",
        )
    if PLACEHOLDER.search(address):
        raise InvalidRequest("the address of a database is fixed: {...} stands in its query", field="address")
    if not address.startswith(SQLITE) and urlsplit(address).password is not None:
        raise InvalidRequest("the address of a database has no password; give it as a secret", field="address")


def _ask_sqlite(request: SourceRequest) -> Value:
    path, ends_at = request.address.removeprefix(SQLITE), time.monotonic() + request.timeout_ms / 1000
    names = {each: f"p{number}" for number, each in enumerate(request.parameters)}
    query = PLACEHOLDER.sub(lambda found: f":{names[found[1]]}", request.query)
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            connection.set_progress_handler(lambda: int(time.monotonic() > ends_at), STEPS_BETWEEN_LOOKS)
            cursor = connection.execute(query, {names[each]: value for each, value in request.parameters.items()})
            columns = [each[0] for each in cursor.description or ()]
            return _table(columns, cursor.fetchmany(ROWS_MAX + 1))
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise SourceAway(f"the database says: {error}") from error


def _table(columns: list[str], rows: list[Any]) -> Value:
    """One value, one row as a map, or several rows as a list of maps; nothing is null."""
    if len(rows) > ROWS_MAX:
        raise SourceAway(f"the query gives more than {ROWS_MAX} rows")
    if not rows:
        return None
    if len(rows) == 1 and len(columns) == 1:
        return msgspec.to_builtins(rows[0][0])
    found = [dict(zip(columns, map(msgspec.to_builtins, row), strict=True)) for row in rows]
    return found[0] if len(found) == 1 else found


def _decoded(answer: bytes) -> Value:
    """JSON where it is JSON, else the text."""
    try:
        return msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return answer.decode("utf-8", errors="replace").strip()


def _demand_size(size: int) -> None:
    if size > ANSWER_BYTES_MAX:
        raise SourceAway(f"its answer is larger than {ANSWER_BYTES_MAX} bytes")


def _text(value: Value) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
