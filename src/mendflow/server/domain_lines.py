"""Lines to other domains, over HTTP.

Only addresses that an administrator has given are called, or public ones that a connected domain has named for itself.
Redirects are not followed, proxies from the environment are not used, and an answer has a bound. Of several addresses
the one that answered last is called; the next, where it takes no connection. Addresses that the other side has told
since it was connected come last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from mendflow.address_guard import ANYWHERE, AddressGuard, AllowedAddress, is_loopback
from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    RequestError,
    TooLarge,
    Unreachable,
)
from mendflow.lazy import LazyModule
from mendflow.server.outgoing import OutgoingCalls, PrivateAddress
from mendflow.services.domains.domain_lines import Token
from mendflow.tls import NO_TLS_SETTINGS, ClientTls, explain

if TYPE_CHECKING:
    import aiohttp

    from mendflow.server import access, domain_endpoint
else:
    aiohttp = LazyModule("aiohttp")
    access = LazyModule("mendflow.server.access")
    domain_endpoint = LazyModule("mendflow.server.domain_endpoint")

T = TypeVar("T")

CONNECT_S: Final = 5.0
ANSWER_S: Final = 15.0
"""How long an answer may take, beside the time for which it may be held."""
CHUNK_WAIT_S: Final = 60.0
CHUNK_BYTES: Final = 1 << 18
OFFSET_DIGITS_MAX: Final = 19
ERROR_BYTES_MAX: Final = 64 << 10
_BY_CODE: Final[dict[str, type[RequestError]]] = {
    each.code: each for each in (Conflict, InvalidRequest, NotFound, TooLarge)
}


class HttpDomainLines:
    """`loopback` says whether addresses that domains name for themselves may be of this machine, as they may where the
    server itself listens on this machine only, for its one user. Other private addresses may not."""

    def __init__(
        self,
        *,
        loopback: Callable[[], bool],
        tls: ClientTls = NO_TLS_SETTINGS,
        allowed: tuple[AllowedAddress, ...] = (),
    ) -> None:
        self.loopback = loopback
        self._tls, self._allowed = tls, allowed
        self._calls: dict[bool, OutgoingCalls] = {}

    async def close(self) -> None:
        for calls in self._calls.values():
            await calls.close()
        self._calls.clear()

    def line(self, urls: Sequence[str], token: Token, *, public_only: bool, told: Sequence[str] = ()) -> HttpLine:
        hosts = {urlsplit(each).hostname for each in urls} if not public_only else set()
        guarded = {each for each in (*urls, *told) if not self._is_free(urlsplit(each).hostname, hosts)}
        return HttpLine(self, tuple(urls), token, guarded=guarded, told=tuple(told))

    def _is_free(self, host: str | None, given: Collection[str | None]) -> bool:
        """Whether a host is called without a look at its address: an administrator gave it, or it is this machine."""
        return host in given or (is_loopback(host or "") and self.loopback())

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        async def shown() -> str:
            return invitation

        return await HttpLine(self, tuple(urls), shown).ask(domain_endpoint.ACCEPT, acceptance, InvitationAnswer)

    def calls(self, *, guarded: bool) -> OutgoingCalls:
        """The way to addresses that domains name for themselves, which are guarded, or that an administrator gave."""
        if guarded not in self._calls:
            guard = AddressGuard(allowed=self._allowed) if guarded else ANYWHERE
            self._calls[guarded] = OutgoingCalls(guard, total_s=None, tls=self._tls, keeps_connections=True)
        return self._calls[guarded]


class _MissingThere(NotFound):
    """A file is not there, or not all of it: it comes from this byte on."""

    def __init__(self, offset: int) -> None:
        super().__init__("there is no such file of our works there")
        self.offset = offset


class HttpLine:
    """`guarded` addresses must not be private ones. Those that were `told` are called only where the others take no
    connection: one that is taken and lost says nothing against the address."""

    def __init__(
        self,
        lines: HttpDomainLines,
        urls: tuple[str, ...],
        token: Token,
        *,
        guarded: Collection[str] = (),
        told: tuple[str, ...] = (),
    ) -> None:
        self._lines = lines
        self._urls = (*urls, *told)
        self._given = len(urls) or len(told)
        self._token = token
        self._guarded = guarded
        self._current = 0

    async def exchange(self, request: DomainRequest) -> DomainAnswer:
        return await self.ask(domain_endpoint.EXCHANGE, request, DomainAnswer, held_s=request.hold_ms / 1000)

    async def missing_from(self, sha256: str) -> int | None:
        try:
            async with self._open("HEAD", domain_endpoint.FILES + sha256, timeout=_whole(0)):
                return None
        except _MissingThere as missing:
            return missing.offset

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        headers = {domain_endpoint.OFFSET: str(offset)} if offset else {}
        what = domain_endpoint.FILES + sha256
        async with self._open("PUT", what, body=chunks, headers=headers, timeout=_by_chunk()) as response:
            await response.read()

    async def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        async with self._open("GET", domain_endpoint.FILES + sha256, headers=headers, timeout=_by_chunk()) as response:
            left = 0 if response.status == 206 else offset
            async for piece in response.content.iter_chunked(CHUNK_BYTES):
                if len(piece) > left:
                    yield piece[left:]
                left = max(0, left - len(piece))

    async def ask(self, what: str, message: object, type: type[T], *, held_s: float = 0.0) -> T:
        headers = {"Content-Type": "application/json"}
        body = msgspec.json.encode(message)
        async with self._open("POST", what, body=body, headers=headers, timeout=_whole(held_s)) as response:
            content = await _bounded(response, domain_endpoint.EXCHANGE_BYTES_MAX)
        try:
            return msgspec.json.decode(content, type=type)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise Unreachable(f"the answer of {self._urls[self._current]} cannot be read: {error}") from error

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        what: str,
        *,
        timeout: aiohttp.ClientTimeout,
        body: bytes | AsyncIterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; the answer is open while the block lasts. An error is raised."""
        if not self._urls:
            raise Unreachable("this domain has no address here: work can come from it, and none can be sent there")
        given = {
            "data": body,
            "headers": {**(headers or {}), "Authorization": f"Bearer {await self._token()}"},
            "timeout": timeout,
            "allow_redirects": False,
        }
        try:
            async with await self._connect(method, what, given) as response:
                if response.status == NotFound.status and method == "HEAD":
                    said = response.headers.get(domain_endpoint.OFFSET, "")  # such an answer has no body
                    offset = int(said) if said.isdecimal() and len(said) < OFFSET_DIGITS_MAX else 0
                    raise _MissingThere(offset)
                if response.status >= 300:
                    raise _error_of(response.status, await _bounded(response, ERROR_BYTES_MAX))
                yield response
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from error

    async def _connect(self, method: str, what: str, given: dict[str, Any]) -> aiohttp.ClientResponse:
        """The answer of the first server that takes a connection."""
        for tries_left in reversed(range(len(self._urls))):
            url = self._urls[self._current]
            guarded = url in self._guarded
            try:
                return await self._lines.calls(guarded=guarded).begin(method, f"{url}{access.DOMAIN}{what}", **given)
            except aiohttp.ClientConnectorError:
                if not tries_left:
                    raise
                self._go_on_from(url)
        raise AssertionError("there is at least one address")

    def _lost(self, error: BaseException) -> Unreachable:
        url = self._urls[self._current]
        if (
            isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, PrivateAddress))
            or self._current >= self._given
        ):
            self._go_on_from(url)
        else:
            self._current = (self._current + 1) % self._given
        inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        if isinstance(inner, PrivateAddress):
            return Unreachable(_private(url))
        if isinstance(error, asyncio.TimeoutError):
            return Unreachable(f"no answer from {url} in time")
        if told := explain(error):
            return Unreachable(f"no answer from {url}: {told}")
        why = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner) or type(inner).__name__
        return Unreachable(f"no answer from {url}: {why}")

    def _go_on_from(self, url: str) -> None:
        """Call the next address from now on, unless somebody has gone on already."""
        if self._urls[self._current] == url:
            self._current = (self._current + 1) % len(self._urls)


def _private(url: str) -> str:
    return (
        f"{url} is a private address, which the other domain has named itself; invite it with --url, and it is called"
        " there"
    )


def _whole(held_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=ANSWER_S + held_s, sock_connect=CONNECT_S)


def _by_chunk() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=CHUNK_WAIT_S)


async def _bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > most:
            raise Unreachable(f"the other domain answers with more than the allowed {most} bytes")
    return bytes(content)


def _error_of(status: int, body: bytes) -> RequestError:
    """The other side's refusal. What it could not decide is no refusal: it may have been done."""
    try:
        told = msgspec.json.decode(body, type=dict[str, Any])
        code, message = str(told.get("code", "")), str(told.get("message", ""))[:2_000]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        code, message = "", f"it answered with status {status}, and not as a server of mendflow does"
    if status in (401, 403):
        return Forbidden(message)
    if status >= 500 or code not in _BY_CODE:
        return Unreachable(message or f"it answered with status {status}")
    return _BY_CODE[code](message)
