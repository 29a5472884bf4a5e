"""Carries calls to partners over HTTP.

Only http and https, no redirects, no proxies of the environment, no cookies, no compression, and never more of an
answer than is allowed: a partner can say no, but it cannot lead us elsewhere or fill our memory."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from mendflow.core.model.faults import Category, Fault
from mendflow.core.soap import CONTENT_TYPE
from mendflow.core.soap.envelope import MESSAGE_BYTES_MAX
from mendflow.services.partners.contract import Called, CallFailed

CONNECT_S: Final = 10.0
ANSWER_S: Final = 3600.0
"""A partner may take its time; a flow that wants less sets an alarm beside the call."""
CONNECTIONS_MAX: Final = 1_000
_LOST: Final = (aiohttp.ClientError, OSError, ValueError)


class HttpCaller:
    def __init__(self, *, answer_s: float = ANSWER_S, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._answer_s = answer_s
        self._bytes_max = bytes_max
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, address: str, body: bytes, *, action: str) -> Called:
        _demand_http(address)
        headers = {"Content-Type": CONTENT_TYPE, "SOAPAction": f'"{action}"', "Accept": "text/xml"}
        try:
            async with self._opened().post(address, data=body, headers=headers, allow_redirects=False) as response:
                return Called(response.status, await self._content(address, response))
        except TimeoutError as error:
            sentence = f"{address} has not answered within {self._answer_s:g} s"
            raise _failed("partnerTimedOut", Category.NETWORK, sentence) from error
        except _LOST as error:
            raise _failed("partnerUnreachable", Category.NETWORK, f"{address}: {_why(error)}") from error

    async def _content(self, address: str, response: aiohttp.ClientResponse) -> bytes:
        content = b""
        async for piece in response.content.iter_chunked(1 << 16):
            content += piece
            if len(content) > self._bytes_max:
                sentence = f"{address} answers with more than the {self._bytes_max} bytes that are taken"
                raise _failed("partnerRefused", Category.REFUSED, sentence)
        return content

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, force_close=True),
                timeout=aiohttp.ClientTimeout(total=self._answer_s, sock_connect=CONNECT_S),
                headers={"User-Agent": "mendflow"},
                skip_auto_headers=("Accept-Encoding",),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def _demand_http(address: str) -> None:
    try:
        parts = urlsplit(address)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fit = False
    if not fit:
        sentence = f"{address[:200]!r} is no address that can be called; partners are called by http and https"
        raise _failed("partnerUnreachable", Category.REFUSED, sentence)


def _failed(name: str, category: Category, message: str) -> CallFailed:
    return CallFailed(Fault(name=name, category=category, message=message))


def _why(error: Exception) -> str:
    inner = error.__cause__ or error
    if isinstance(inner, asyncio.TimeoutError):
        return "no connection in time"
    if isinstance(inner, OSError) and inner.strerror:
        return f"no connection: {inner.strerror}"
    return f"no answer that could be read ({type(error).__name__})"
