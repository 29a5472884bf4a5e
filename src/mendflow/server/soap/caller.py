"""Sends calls to partners over HTTP.

Only http and https, no redirects, no proxies from the environment, no cookies, no compression, and a bounded answer: a
partner can refuse a call, but it cannot redirect us or fill our memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mendflow.core.model.faults import Category, Fault
from mendflow.core.soap import CONTENT_TYPE
from mendflow.core.soap.envelope import MESSAGE_BYTES_MAX
from mendflow.lazy import LazyModule
from mendflow.server.webhook_posts import PrivateAddress
from mendflow.services.base.addresses import is_private_host, private_sentence
from mendflow.services.messaging.contracts import CallFailed, PartnerResponse

if TYPE_CHECKING:
    import aiohttp

    from mendflow.server import public_resolver
else:
    aiohttp = LazyModule("aiohttp")
    public_resolver = LazyModule("mendflow.server.public_resolver")

CONNECT_S: Final = 10.0
ANSWER_S: Final = 3600.0
"""A partner may be slow; a flow that wants a shorter time sets an alarm beside the call."""
CONNECTIONS_MAX: Final = 1_000


class HttpCaller:
    """`private`: addresses that came in a message may be private ones, too, as they may where the server itself listens
    on this machine only."""

    def __init__(self, *, answer_s: float = ANSWER_S, bytes_max: int = MESSAGE_BYTES_MAX, private: bool = True) -> None:
        self._answer_s = answer_s
        self._bytes_max = bytes_max
        self._private = private
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        guarded = assigned and not self._private
        _require_http(address, guarded=guarded)
        headers = {"Content-Type": CONTENT_TYPE, "SOAPAction": f'"{action}"', "Accept": "text/xml"}
        try:
            session = self._open_session(guarded=guarded)
            async with session.post(address, data=body, headers=headers, allow_redirects=False) as response:
                return PartnerResponse(response.status, await self._content(address, response))
        except TimeoutError as error:
            sentence = f"{address} has not answered within {self._answer_s:g} s"
            raise _failed("partnerTimedOut", Category.NETWORK, sentence) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, PrivateAddress):
                raise _failed("partnerRefused", Category.REFUSED, str(error.os_error)) from error
            raise _failed("partnerUnreachable", Category.NETWORK, f"{address}: {_why(error)}") from error

    async def _content(self, address: str, response: aiohttp.ClientResponse) -> bytes:
        content = b""
        async for piece in response.content.iter_chunked(1 << 16):
            content += piece
            if len(content) > self._bytes_max:
                sentence = f"{address} answers with more than the allowed {self._bytes_max} bytes"
                raise _failed("partnerRefused", Category.REFUSED, sentence)
        return content

    def _open_session(self, *, guarded: bool) -> aiohttp.ClientSession:
        """Where addresses are guarded, names are resolved for each connection, and the connection goes to the address
        that was checked."""
        if guarded not in self._sessions:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS_MAX,
                force_close=True,
                resolver=public_resolver.PublicResolver() if guarded else None,
                use_dns_cache=not guarded,
            )
            self._sessions[guarded] = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._answer_s, sock_connect=CONNECT_S),
                headers={"User-Agent": "mendflow"},
                skip_auto_headers=("Accept-Encoding",),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._sessions[guarded]


def _require_http(address: str, *, guarded: bool) -> None:
    try:
        parts = urlsplit(address)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fit = False
    if not fit:
        sentence = f"{address[:200]!r} is not an address that can be called; partners are called by http and https"
        raise _failed("partnerUnreachable", Category.REFUSED, sentence)
    if guarded and is_private_host(parts.hostname or ""):
        raise _failed("partnerRefused", Category.REFUSED, private_sentence(parts.hostname or ""))


def _failed(name: str, category: Category, message: str) -> CallFailed:
    return CallFailed(Fault(name=name, category=category, message=message))


def _why(error: Exception) -> str:
    inner = error.__cause__ or error
    if isinstance(inner, asyncio.TimeoutError):
        return "no connection in time"
    if isinstance(inner, OSError) and inner.strerror:
        return f"no connection: {inner.strerror}"
    return f"no answer that could be read ({type(error).__name__})"
