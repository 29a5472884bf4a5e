"""What servers on one store ask each other over HTTP: both ends of it.

Only servers may use it: the caller must know the secret that the servers share, whatever tokens the server has. Nothing
is retried here, and an answer that cannot be decoded counts as no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError
from mendflow.core.model.ids import CaseId, PilotId
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.lazy import LazyModule
from mendflow.server.access import PEERS
from mendflow.server.error_bodies import ClientDisconnected, log_unforeseen, send_error
from mendflow.server.request_body import read_body
from mendflow.services.base.cluster import PeerUnavailable, ServerDocument
from mendflow.tls import NO_TLS_SETTINGS, ClientTls, NewestContext

if TYPE_CHECKING:
    import aiohttp
    from litestar.types import Receive, Scope, Send
else:
    aiohttp = LazyModule("aiohttp")

T = TypeVar("T")

FORWARDED_BYTES_MAX = 64 << 20
ANSWER_S, CONNECT_S, NUDGE_S = 10, 2, 2
SILENCE_S_MAX = 30
"""How long another server may be silent while it reads a tree of cases."""
ARCHIVE = "archive"


class ForwardedExchange(msgspec.Struct, frozen=True, array_like=True):
    """A forwarded exchange of a pilot, and the name of the token that the pilot uses."""

    request: SyncRequest
    who: str


class Nudge(msgspec.Struct, frozen=True, array_like=True):
    pilots: list[PilotId]
    work: bool
    by: str


_encode = msgspec.msgpack.Encoder().encode


class Peer(Protocol):
    """This server as other servers see it."""

    async def sync(self, request: SyncRequest, who: str) -> SyncAnswer: ...
    def nudged(self, pilots: list[PilotId], *, work: bool, by: str) -> None: ...
    def pilots(self) -> list[PilotView]: ...
    def cards(self) -> list[CacheAdvert]: ...
    async def stats(self, running: int) -> StatsView: ...
    def archive(self, root: CaseId) -> AsyncIterator[bytes]: ...


class PeerEndpoint:
    """Answers requests of other servers."""

    def __init__(self, peer: Peer | None) -> None:
        self._peer = peer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        what = scope["path"].removeprefix(PEERS)
        try:
            body = await read_body(receive, FORWARDED_BYTES_MAX)
            if what == ARCHIVE and self._peer is not None:
                await _stream(self._peer.archive(_decoded(body, CaseId)), send)
                return
            answer = await self._answer(what, body)
        except ClientDisconnected:
            return
        except RequestError as error:
            await send_error(send, error)
        except Exception as error:  # noqa: BLE001 - outermost handler: answer the caller, log the traceback
            await send_error(send, log_unforeseen(error, "POST", scope["path"]))
        else:
            headers = [(b"content-type", b"application/vnd.msgpack"), (b"content-length", b"%d" % len(answer))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": answer, "more_body": False})

    async def _answer(self, what: str, body: bytes) -> bytes:
        if self._peer is None:
            raise NotFound("this server is alone on its store")
        if what == "sync":
            passed = _decoded(body, ForwardedExchange)
            if not passed.request.front:
                raise InvalidRequest("a forwarded exchange must name the forwarding server", field="front")
            return _encode(await self._peer.sync(passed.request, passed.who))
        if what == "nudge":
            nudge = _decoded(body, Nudge)
            self._peer.nudged(nudge.pilots, work=nudge.work, by=nudge.by)
            return _encode(None)
        if what == "pilots":
            return _encode(self._peer.pilots())
        if what == "cards":
            return _encode(self._peer.cards())
        if what == "stats":
            return _encode(await self._peer.stats(_decoded(body, int)))
        raise NotFound("there is no such request between servers")


class HttpPeers:
    """Sends requests to other servers. All servers share one pool of connections, opened at the first request."""

    def __init__(self, tls: ClientTls = NO_TLS_SETTINGS) -> None:
        self._context = NewestContext(tls)
        self._headers = {"Content-Type": "application/vnd.msgpack"}
        self._session: aiohttp.ClientSession | None = None

    def introduce(self, token: str) -> None:
        """Use this token from now on to identify as a server. It is in the store, so it is known only after the store
        was opened."""
        self._headers["Authorization"] = f"Bearer {token}"

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        return await self._ask(server, "sync", ForwardedExchange(request, who), SyncAnswer, ANSWER_S)

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        await _ignore_unreachable(self._ask(server, "nudge", Nudge(pilots, work, by), object, NUDGE_S))

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        return await self._ask(server, "pilots", None, list[PilotView], ANSWER_S)

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        return await self._ask(server, "cards", None, list[CacheAdvert], ANSWER_S)

    async def stats(self, server: ServerDocument, running: int) -> StatsView:
        return await self._ask(server, "stats", running, StatsView, ANSWER_S)

    async def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S_MAX)
        try:
            async with self._post(server, ARCHIVE, root, timeout) as response:
                if response.status != 200:
                    raise PeerUnavailable(f"server {server.id} answered {response.status}")
                async for chunk in response.content.iter_any():
                    yield chunk
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise PeerUnavailable(f"no answer from server {server.id}: {error!r}") from error

    def _post(
        self, server: ServerDocument, what: str, message: object, timeout: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        return self._session.post(
            f"{server.url.rstrip('/')}{PEERS}{what}",
            data=_encode(message),
            headers=self._headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=self._context.get(),
        )

    async def _ask(self, server: ServerDocument, what: str, message: object, type: type[T], patience_s: float) -> T:
        timeout = aiohttp.ClientTimeout(total=patience_s, sock_connect=CONNECT_S)
        try:
            async with self._post(server, what, message, timeout) as response:
                body = await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise PeerUnavailable(f"no answer from server {server.id}: {error!r}") from error
        if response.status != 200:
            raise PeerUnavailable(f"server {server.id} answered {response.status}")
        try:
            return msgspec.msgpack.decode(body, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise PeerUnavailable(f"the answer of server {server.id} cannot be decoded: {error}") from error


async def _stream(content: AsyncIterator[bytes], send: Send) -> None:
    """An archive, streamed as it is read. Errors are answered before the first byte; after that the stream is cut, and
    the digest shows the receiver that it is incomplete."""
    first = await anext(content)
    headers = [(b"content-type", b"application/gzip")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for chunk in content:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except RequestError as error:
        raise ClientDisconnected(error.message) from error
    except Exception as error:  # outermost handler: cut the stream, so half an archive is never taken for a whole one
        raise ClientDisconnected(log_unforeseen(error, "POST", f"{PEERS}{ARCHIVE}").message) from error
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _ignore_unreachable(call: Awaitable[object]) -> None:
    try:
        await call
    except PeerUnavailable:
        pass


def _decoded(body: bytes, type: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(body, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"this is not a request between servers: {error}") from error
