"""The one way out of a server to addresses that somebody else has chosen: webhooks, callbacks, partners, sources, and
other domains that name their own address.

Only http and https, and only what the guard allows. Names are resolved for each connection, and the connection goes to
the very address that was checked, so a name that changes from a public to a private address a moment later changes
nothing. Redirects are not followed, proxies from the environment are not used, there are no cookies, and connecting and
answering have bounds. tests/shape/test_outgoing.py holds that nobody else opens connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mendflow.address_guard import AddressGuard, is_plain_host, literal, private_sentence
from mendflow.lazy import LazyModule
from mendflow.tls import NO_TLS_SETTINGS, ClientTls, NewestContext

if TYPE_CHECKING:
    import aiohttp

    from mendflow.server import guarded_resolver
else:
    aiohttp = LazyModule("aiohttp")
    guarded_resolver = LazyModule("mendflow.server.guarded_resolver")

CONNECT_S: Final = 10.0


class PrivateAddress(OSError):
    """The name resolves to an address that may not be called, or is one."""


class OutgoingCalls:
    """A pool of connections under one guard, opened at the first request. `total_s` is how long a whole answer may
    take; None where each request says that itself."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        total_s: float | None,
        connect_s: float = CONNECT_S,
        tls: ClientTls = NO_TLS_SETTINGS,
        keeps_connections: bool = False,
        connections_max: int = 100,
    ) -> None:
        self.guard = guard
        self._total_s, self._connect_s = total_s, connect_s
        self._context = NewestContext(tls)
        self._keeps_connections, self._connections_max = keeps_connections, connections_max
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> OutgoingCalls:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def demand(self, url: str) -> None:
        """Raise PrivateAddress if the address alone says that it may not be called."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https"):
            raise PrivateAddress(f"{url[:100]!r} is called neither by http nor by https")
        if not is_plain_host(host):
            raise PrivateAddress(f"the host of {url[:100]!r} is not written plainly")
        # A host that is written as an address is not resolved.
        if not self.guard.allows(host, parts.port or (443 if parts.scheme == "https" else 80), literal(host)):
            raise PrivateAddress(private_sentence(host))

    @asynccontextmanager
    async def request(self, method: str, url: str, **given: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; its answer is open while the block lasts."""
        async with await self.begin(method, url, **given) as response:
            yield response

    async def begin(self, method: str, url: str, **given: Any) -> aiohttp.ClientResponse:
        """The answer, which whoever asked closes."""
        self.demand(url)
        given |= {"allow_redirects": False, "ssl": self._context.get()}
        return await self._opened().request(method, url, **given)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=guarded_resolver.GuardedResolver(self.guard),
                use_dns_cache=False,
                force_close=not self._keeps_connections,
                limit=self._connections_max,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._total_s, sock_connect=self._connect_s),
                headers={"User-Agent": "mendflow"},
                skip_auto_headers=("Accept-Encoding",),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def failure_sentence(error: BaseException) -> str:
    """The reason of a failure, without the address, which may hold a secret."""
    if isinstance(error, PrivateAddress):
        return str(error)
    inner = error.__cause__ or error
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, PrivateAddress):
        return str(error.os_error)
    if isinstance(inner, OSError) and inner.strerror:
        return f"no connection: {inner.strerror}"
    return f"no answer that could be read ({type(error).__name__})"


def is_refused(error: BaseException) -> bool:
    """Whether the guard did not let it out."""
    return isinstance(error, PrivateAddress) or isinstance(getattr(error, "os_error", None), PrivateAddress)
