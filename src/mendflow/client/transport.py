"""One conversation over HTTP with a server, or with any of several on the same store: requests out, answers or errors
back.

What can be repeated without harm is repeated for a short while when the server is away, so that a restart goes
unnoticed; everything else is asked once, and `Unreachable` then says that nobody knows whether it was done. A server
that takes no connection has been told nothing, and one that says `TemporarilyUnavailable` has done nothing: after that
anything may be asked again, of the next server."""

from __future__ import annotations

import asyncio
import getpass
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

import msgspec

from mendflow.core.model.errors import (
    BadFlow,
    Conflict,
    Forbidden,
    InternalError,
    InvalidRequest,
    NotConnected,
    NotFound,
    Problem,
    RequestError,
    StoreUnavailable,
    TemporarilyUnavailable,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from mendflow.lazy import LazyModule
from mendflow.operations.table import API

if TYPE_CHECKING:
    import aiohttp

    from mendflow import tls
    from mendflow.tls import ClientTls
else:
    aiohttp = LazyModule("aiohttp")
    tls = LazyModule("mendflow.tls")

log = logging.getLogger("mendflow.client")

T = TypeVar("T")

NEXT_HEADER = "Mendflow-Next"
REPEAT_WAITS_S = (0.1, 0.3, 0.8, 1.5)
NOT_NOW_WAIT_S = 0.3
SILENCE_S_MAX = 20
"""One of several servers that says nothing for so long is taken for dead; the next one is asked."""
UNHEARD_HEADER = "Mendflow-Unheard"
"""The header that names servers which did not say in time what an answer should have of them."""
STREAM_READ_S = 60.0
"""For answers and bodies without a known length: each piece must come in time, the whole may take long."""

_BY_STATUS: dict[int, type[RequestError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    500: InternalError,
    502: Unreachable,
    504: Unreachable,
}


class _ErrorBody(msgspec.Struct):
    """An error as the server words it."""

    code: str
    message: str
    fields: dict[str, Any] = {}


def error_of(status: int, body: bytes) -> RequestError:
    """The exception that the server raised, or the nearest one when its code is not known here."""
    try:
        told = msgspec.json.decode(body, type=_ErrorBody)
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace").strip()
        told = _ErrorBody(code="", message=f"the server answered with HTTP status {status}: {text or 'nothing more'}")
    known = {kind.code: kind for kind in reversed(_subclasses(RequestError))}
    kind = known.get(told.code) or _BY_STATUS.get(status, RequestError)
    fields = {name: value for name, value in told.fields.items() if name not in ("self", "message")}
    if issubclass(kind, BadFlow):
        fields["problems"] = msgspec.convert(fields.get("problems", []), list[Problem | str])
    return kind(told.message, **fields)


def _subclasses(kind: type[RequestError]) -> list[type[RequestError]]:
    """It and all below it. Each stands after what it is a kind of, whose code may be its own too."""
    return [kind, *(below for child in kind.__subclasses__() for below in _subclasses(child))]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _address(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestError(f"{url!r} is no address of a server; give one like http://127.0.0.1:8642", url=url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(API)}"


class Transport:
    """A pool of connections, opened at the first request. `url` may name several servers on one store, with commas in
    between: one is asked for as long as it answers, then the next."""

    def __init__(
        self, url: str, token: str = "", *, user: str = "", timeout_s: float = 60.0, tls: ClientTls | None = None
    ) -> None:
        self.urls = [_address(each.strip()) for each in url.split(",") if each.strip()] or [_address(url)]
        self._current = 0
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif name := user or _user():
            self._headers["X-Mendflow-User"] = name
        self._timeout_s = timeout_s
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """The server that is asked now."""
        return self.urls[self._current]

    def timeout_for(self, held_s: float = 0.0) -> aiohttp.ClientTimeout:
        """How long an answer may take that the server holds back for a known time."""
        if len(self.urls) > 1:
            return aiohttp.ClientTimeout(
                total=self._timeout_s + held_s, sock_connect=3, sock_read=SILENCE_S_MAX + held_s
            )
        return aiohttp.ClientTimeout(total=self._timeout_s + held_s, sock_connect=10)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float | None = None,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; the answer is open while the block lasts. An error is raised, a dead line is `Unreachable`.
        With `read_s` the whole may take long, and each piece must come within that time."""
        if read_s is not None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=read_s)
        given = {
            "params": {name: str(value) for name, value in (query or {}).items() if value not in ("", None)},
            "data": body,
            "headers": headers,
            "timeout": timeout or self.timeout_for(),
        }
        tried: list[str] = []
        try:
            async with await self._connect(method, path, given, tried) as response:
                if response.status >= 300:
                    raise error_of(response.status, await response.read())
                if UNHEARD_HEADER in response.headers:
                    log.warning(
                        "server %s did not answer; what only it knows is missing in this list",
                        response.headers[UNHEARD_HEADER],
                    )
                yield response
        except _connection_errors() as away:
            refused = isinstance(away, aiohttp.ClientConnectorError)
            where, kind = (", ".join(tried), NotConnected) if refused else (tried[-1], Unreachable)
            self._fail_over_from(tried[-1])
            raise kind(f"no answer from {where}: {_cause(away, tried[-1])}", url=tried[-1]) from away

    async def _connect(self, method: str, path: str, given: dict[str, Any], tried: list[str]) -> aiohttp.ClientResponse:
        """The answer of the first server that takes a connection. `tried` gets all that were asked for one."""
        session = self._open_session()
        while True:
            tried.append(self.url)
            try:
                return await session.request(method, tried[-1] + API + path, allow_redirects=False, **given)
            except aiohttp.ClientConnectorError:
                if len(tried) >= len(self.urls):
                    raise
                self._fail_over_from(tried[-1])

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            try:
                secure = any(url.startswith("https:") for url in self.urls)
                settings = tls.or_environment(self._tls or tls.NO_TLS_SETTINGS)
                connector = aiohttp.TCPConnector(ssl=settings.context() if secure else True)
            except tls.BadTlsFile as error:
                raise InvalidRequest(str(error)) from None
            self._session = aiohttp.ClientSession(
                connector=connector, headers=self._headers, auto_decompress=True, trust_env=False
            )
        return self._session

    def _fail_over_from(self, url: str) -> None:
        """Ask the next one, unless somebody has gone on already."""
        if self.url == url:
            self._current = (self._current + 1) % len(self.urls)

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Send something that is no question of ours, and take whatever is answered as it is, whenever it comes."""
        try:
            async with self._open_session().post(
                self.url + path,
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                allow_redirects=False,
            ) as response:
                return response.status, await response.read()
        except _connection_errors() as away:
            raise Unreachable(f"no answer from {self.url}: {_cause(away, self.url)}") from away

    async def ask(
        self,
        method: str,
        path: str,
        type: type[T],
        *,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        repeatable: bool,
        held_s: float = 0.0,
    ) -> T:
        """Ask and decode the answer. What is repeatable is asked again while the server is away. The server may hold
        the answer back for `held_s`."""
        answer, _ = await self._request(method, path, query, body, repeatable, held_s)
        return _decoded(answer, type)

    async def page(self, path: str, type: type[T], *, query: Mapping[str, str | int]) -> tuple[T, str]:
        """A part of a list, and where to go on; empty if there is no more."""
        answer, headers = await self._request("GET", path, query, None, True)
        return _decoded(answer, type), unquote(headers.get(NEXT_HEADER, ""))

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: object,
        repeatable: bool,
        held_s: float = 0.0,
    ) -> tuple[bytes, Mapping[str, str]]:
        sent = None if body is None else msgspec.json.encode(body)
        headers = None if sent is None else {"Content-Type": "application/json"}
        waits = iter(REPEAT_WAITS_S if repeatable else ())
        give_up_at, timeout = time.monotonic() + self._timeout_s, self.timeout_for(held_s)
        while True:
            url = self.url
            try:
                async with self.open(
                    method, path, query=query, body=sent, headers=headers, timeout=timeout
                ) as response:
                    return await response.read(), response.headers
            except TemporarilyUnavailable:
                if time.monotonic() >= give_up_at:
                    raise
                await asyncio.sleep(NOT_NOW_WAIT_S)
            except TooManyRequests as refused:
                told = refused.fields.get("retry_after_s")
                pause_s = told if isinstance(told, int | float) else NOT_NOW_WAIT_S
                if time.monotonic() + pause_s >= give_up_at:
                    raise
                await asyncio.sleep(pause_s)
            except (Unreachable, StoreUnavailable) as away:
                wait_s = next(waits, None)
                if wait_s is None or (isinstance(away, StoreUnavailable) and len(self.urls) == 1):
                    raise
                self._fail_over_from(url)
                await asyncio.sleep(wait_s)


def _connection_errors() -> tuple[type[BaseException], ...]:
    return aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, asyncio.TimeoutError, ConnectionError


def _decoded(body: bytes, type: type[T]) -> T:
    if type is str:
        return cast(T, body.decode(errors="replace"))
    return msgspec.json.decode(body, type=type)


def _cause(error: BaseException, url: str) -> str:
    if url.startswith("https:") and (told := tls.explain(error)):
        return told
    if url.startswith("https:") and isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return tls.CLOSED if not isinstance(error, aiohttp.ClientConnectorError) else _plain_cause(error)
    return _plain_cause(error)


def _plain_cause(error: BaseException) -> str:
    why = str(error) or "the connection was lost"
    if isinstance(error, asyncio.TimeoutError):
        why = "it took too long"
    elif isinstance(error, aiohttp.ClientConnectorError):
        why = error.os_error.strerror or str(error.os_error)
    return f"{why}; is the server running?"
