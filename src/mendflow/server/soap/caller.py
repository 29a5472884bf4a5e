"""Sends calls to partners over HTTP.

Only http and https, no redirects, no proxies from the environment, no cookies, no compression, and a bounded answer: a
partner can refuse a call, but it cannot redirect us or fill our memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mendflow.address_guard import AddressGuard
from mendflow.core.model.faults import Category, Fault
from mendflow.core.soap import CONTENT_TYPE
from mendflow.core.soap.envelope import MESSAGE_BYTES_MAX
from mendflow.lazy import LazyModule
from mendflow.server.outgoing import OutgoingCalls, failure_sentence, is_refused
from mendflow.services.messaging.contracts import CallFailed, PartnerResponse

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LazyModule("aiohttp")

ANSWER_S: Final = 3600.0
"""A partner may be slow; a flow that wants a shorter time sets an alarm beside the call."""
CONNECTIONS_MAX: Final = 1_000


class HttpCaller:
    """The addresses of partners come from messages and from the WSDL of a process: both are whoever's choice who may
    deploy or send, and the guard says which of them may be called."""

    def __init__(self, guard: AddressGuard, *, answer_s: float = ANSWER_S, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._answer_s = answer_s
        self._bytes_max = bytes_max
        self._calls = OutgoingCalls(guard, total_s=answer_s, connections_max=CONNECTIONS_MAX)

    async def close(self) -> None:
        await self._calls.close()

    async def call(self, address: str, body: bytes, *, action: str, assigned: bool = False) -> PartnerResponse:
        _require_http(address)
        headers = {"Content-Type": CONTENT_TYPE, "SOAPAction": f'"{action}"', "Accept": "text/xml"}
        try:
            async with self._calls.request("POST", address, data=body, headers=headers) as response:
                return PartnerResponse(response.status, await self._content(address, response))
        except TimeoutError as error:
            sentence = f"{address} has not answered within {self._answer_s:g} s"
            raise _failed("partnerTimedOut", Category.NETWORK, sentence) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if is_refused(error):
                raise _failed("partnerRefused", Category.REFUSED, failure_sentence(error)) from error
            raise _failed("partnerUnreachable", Category.NETWORK, f"{address}: {_why(error)}") from error

    async def _content(self, address: str, response: aiohttp.ClientResponse) -> bytes:
        content = b""
        async for piece in response.content.iter_chunked(1 << 16):
            content += piece
            if len(content) > self._bytes_max:
                sentence = f"{address} answers with more than the allowed {self._bytes_max} bytes"
                raise _failed("partnerRefused", Category.REFUSED, sentence)
        return content


def _require_http(address: str) -> None:
    try:
        parts = urlsplit(address)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fit = False
    if not fit:
        sentence = f"{address[:200]!r} is not an address that can be called; partners are called by http and https"
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
