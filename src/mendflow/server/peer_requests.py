"""One request to another server on the same store, its answer streamed back as it comes.

Only addresses from server documents are used: no caller can name one. A forwarded request carries the caller's own
token or cookie, which the other server checks again, and the servers' token, which tells the other server not to
forward it once more. It also says whether this server admitted the caller by its account: the other server sees the
account of this server, and admits nobody by that otherwise. If the other server is found dead, the request is not
waited for any longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mendflow.core.model.errors import TemporarilyUnavailable, Unreachable
from mendflow.lazy import LazyModule
from mendflow.server.access_headers import (
    ADMITTED_HEADER,
    ADMITTED_STATE,
    APPLICATION_HEADER,
    FORWARDED_HEADER,
    OF_SERVERS,
)
from mendflow.services.base.cluster import ServerDocument
from mendflow.tls import NO_TLS_SETTINGS, ClientTls, NewestContext

if TYPE_CHECKING:
    import aiohttp
    import yarl
    from litestar.types import HTTPScope
else:
    aiohttp = LazyModule("aiohttp")
    yarl = LazyModule("yarl")

CONNECT_S: Final = 2
CHUNK_WAIT_S: Final = 75
"""The longest silence: orders for engines of other systems are held for up to a minute, event streams send a keep-alive
every 15 seconds."""
LOOK_EVERY_S: Final = 0.25
_REPEATABLE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HOP_BY_HOP_HEADERS: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer trailers"
    b" transfer-encoding upgrade".split()
)
_OWN_HEADERS: Final = OF_SERVERS.union(b"host content-length expect origin sec-fetch-site".split())
"""Headers that are set anew, or were checked already by the server that was asked first."""
_NEVER_HOP_BY_HOP: Final = frozenset(
    b"authorization cookie mendflow-request x-mendflow-user x-request-id content-type content-encoding".split()
)
"""Whoever names one of these in `Connection` would change who asks, or what."""
_PLAIN: Final = "/%:@!$&'()*+,;=-._~[]|\\^`{}\"<>"
"""What stays as it was sent in an address: one that is written in another way may be another one."""

Headers = list[tuple[bytes, bytes]]
Find = Callable[[str], ServerDocument | None]


class PeerRequests:
    """`find` returns a live server. All servers share one pool of connections, opened at the first request."""

    def __init__(self, find: Find, token: str, tls: ClientTls = NO_TLS_SETTINGS) -> None:
        self._context = NewestContext(tls)
        self._find = find
        self._authorization = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open_request(
        self, server: ServerDocument, scope: HTTPScope, body: bytes, *, application: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The other server's answer, open while the block lasts. `application` is what all servers call that which they
        do together. Raises TemporarilyUnavailable if the other server cannot have done anything."""
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False, auto_decompress=False)
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in end_to_end_headers(scope["headers"], _OWN_HEADERS)
        ]
        headers.append((FORWARDED_HEADER.decode(), self._authorization))
        if admitted := scope["state"].get(ADMITTED_STATE):
            headers.append((ADMITTED_HEADER.decode(), admitted.decode()))
        if application:
            headers.append((APPLICATION_HEADER.decode(), application))
        method = str(scope["method"])
        watcher = asyncio.create_task(self._watch_server(server, asyncio.current_task()))
        try:
            async with self._session.request(
                method,
                _address(server, scope),
                data=body or None,
                headers=headers,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=_silence_s(scope)),
                allow_redirects=False,
                ssl=self._context.get(),
            ) as response:
                yield response
        except (*(aiohttp.ClientError, asyncio.TimeoutError, OSError), asyncio.CancelledError) as error:
            if (lost := _translate_loss(error, server, method, watcher)) is error:
                raise
            raise lost from error
        finally:
            watcher.cancel()

    async def _watch_server(self, server: ServerDocument, asking: asyncio.Task[object] | None) -> bool:
        """Cancel the request when the server dies or restarts; true if that happened."""
        while (now := self._find(server.id)) is not None and now.incarnation == server.incarnation:
            await asyncio.sleep(LOOK_EVERY_S)
        if asking is not None:
            asking.cancel()
        return True


def _silence_s(scope: HTTPScope) -> float | None:
    """A flow may take any time to reply; whether its server is alive is checked separately."""
    return None if scope["path"].startswith("/soap/") else CHUNK_WAIT_S


def _translate_loss(
    error: BaseException, server: ServerDocument, method: str, watcher: asyncio.Task[bool]
) -> BaseException:
    if isinstance(error, asyncio.CancelledError):
        if not watcher.done() or watcher.cancelled():
            return error
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    if isinstance(error, aiohttp.ClientConnectorError) or method in _REPEATABLE_METHODS:
        return unreachable(server.id)
    return Unreachable(f"server {server.id} was lost while it was asked; look whether it was done before you ask again")


def unreachable(server: str) -> TemporarilyUnavailable:
    return TemporarilyUnavailable(
        f"server {server} cannot be reached; another takes its cases if that lasts. Ask again in a moment"
    )


def end_to_end_headers(headers: Iterable[tuple[bytes, bytes]], without: frozenset[bytes] = frozenset()) -> Headers:
    """The end-to-end headers: those that a proxy passes on."""
    given = [(name.lower(), value) for name, value in headers]
    named = {word.strip().lower() for name, value in given if name == b"connection" for word in value.split(b",")}
    left_out = _HOP_BY_HOP_HEADERS | without | (named - _NEVER_HOP_BY_HOP)
    return [(name, value) for name, value in given if name not in left_out]


def _address(server: ServerDocument, scope: HTTPScope) -> yarl.URL:
    """The path and the query as they were sent: dots that were percent-encoded would lead elsewhere, and this server
    has decided about what it was sent."""
    if not server.url.startswith(("http://", "https://")):
        raise unreachable(server.id)  # it has only just started, and has not announced its address yet
    path, query = quote(scope["raw_path"], _PLAIN), quote(scope["query_string"], _PLAIN + "?")
    return yarl.URL(f"{server.url.rstrip('/')}{path}{f'?{query}' if query else ''}", encoded=True)
