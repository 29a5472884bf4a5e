"""Sends notifications to webhooks, in a way that nobody can use to reach addresses that only the server can reach.

Names are resolved here, and the connection goes to the very address that was checked, so a name that changes from a
public to a private address a moment later changes nothing. Redirects are not followed, proxies from the environment are
not used, and of the answer only the status counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import LazyModule
from mendflow.services.base.addresses import check_url

if TYPE_CHECKING:
    import aiohttp

    from mendflow.server import public_resolver
else:
    aiohttp = LazyModule("aiohttp")
    public_resolver = LazyModule("mendflow.server.public_resolver")

TOTAL_S, CONNECT_S = 10.0, 5.0


class PrivateAddress(OSError):
    """The name resolves to a private address."""


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
        except InvalidRequest as error:
            return error.message
        except TimeoutError:
            return f"no answer within {TOTAL_S:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _why(error)
        if 200 <= status < 300:
            return ""
        moved = "; redirects are not followed, give the address itself" if 300 <= status < 400 else ""
        return f"{to} answered with status {status}{moved}"

    def _open_http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=None if self.private else public_resolver.PublicResolver(),
                force_close=True,
                use_dns_cache=False,
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
