"""Sends notifications to webhooks, in a way that nobody can use to reach addresses that only the server can reach.

Names are resolved here, and the connection goes to the very address that was checked, so a name that changes from a
public to a private address a moment later changes nothing. Redirects are not followed, proxies from the environment are
not used, and of the answer only the status counts."""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from mendflow.core.model.errors import InvalidRequest
from mendflow.services.base.addresses import check_url, is_private, private_sentence

TOTAL_S, CONNECT_S = 10.0, 5.0
_FAILED = (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError)


class PrivateAddress(OSError):
    """The name resolves to a private address."""


class PublicResolver(AbstractResolver):
    """Resolves names, and returns only addresses that may be reached."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if any(is_private(ipaddress.ip_address(each["host"].partition("%")[0])) for each in found):
            raise PrivateAddress(private_sentence(host))
        return found

    async def close(self) -> None:
        await self._inner.close()


class HttpPoster:
    """`private`: private addresses are allowed, as they are where the server itself listens on this machine only."""

    def __init__(self, *, private: bool) -> None:
        self.private = private
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        try:
            check_url(url, private=self.private)
            async with self._open_http().post(url, data=body, headers=headers, allow_redirects=False) as response:
                status, to = response.status, urlsplit(url).hostname
        except InvalidRequest as mistake:
            return mistake.message
        except TimeoutError:
            return f"no answer within {TOTAL_S:g} s"
        except _FAILED as error:
            return _why(error)
        if 200 <= status < 300:
            return ""
        moved = "; redirects are not followed, give the address itself" if 300 <= status < 400 else ""
        return f"{to} answered with status {status}{moved}"

    def _open_http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=None if self.private else PublicResolver(), force_close=True, use_dns_cache=False
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S),
                headers={"User-Agent": "mendflow"},
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def _why(error: Exception) -> str:
    """The reason of a failure, without the address, which may hold a secret."""
    inner = error.__cause__ or error
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, PrivateAddress):
        return str(error.os_error)
    if isinstance(inner, OSError) and inner.strerror:
        return f"no connection: {inner.strerror}"
    return f"no answer that could be read ({type(error).__name__})"
