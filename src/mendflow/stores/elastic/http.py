"""HTTP requests to the cluster, with retries.

A request that failed for a passing reason is sent again, to another host and after a growing wait, until patience ends.
If an answer was lost, the request may have been carried out, and the answer to the repeated one is marked `uncertain`.
All writes use compare-and-set, so repeating them is harmless; the sender then checks whose write is in place."""

import base64
import ssl
from collections import deque
from collections.abc import Collection
from typing import Any

import aiohttp
import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.elastic.address import ElasticAddress
from mendflow.stores.retry import RetryTimer

REQUEST_S = 10.0
REQUEST_S_MIN = 2.0
CONNECT_S = 2.0
CONNECTIONS_MAX = 32
BUSY = 429
PASSING = frozenset({408, BUSY, 502, 503, 504})
"""The cluster is busy, elects a master, or refuses connections. Only "busy" guarantees that nothing happened."""

_REFUSED = {
    401: "it rejects our login: check user and password, or the API key",
    403: "our user lacks permissions: grant those that docs/do/elasticsearch.md lists",
    413: "the request is larger than it accepts: raise http.max_content_length there",
}


class ClusterAnswer(msgspec.Struct, frozen=True):
    """`uncertain`: the request was sent before, and may have been carried out then."""

    status: int
    data: Any
    uncertain: bool = False


class ClusterRetries:
    """A retry timer that ends with an error about this cluster. It counts from the start of the operation."""

    def __init__(self, address: ElasticAddress) -> None:
        self._address = address
        self._patience = RetryTimer(address.patience_s)

    @property
    def left_s(self) -> float:
        return self._patience.left_s

    async def rest(self, trouble: str) -> None:
        """Wait a little, or raise if it has taken too long already."""
        if not await self._patience.wait():
            raise unavailable(
                self._address,
                f"{trouble}; tried for {self._address.patience_s:g} s. Check that the cluster is up and can be reached",
            )


class ClusterClient:
    def __init__(self, address: ElasticAddress) -> None:
        self.address = address
        self._hosts = deque(address.hosts)
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=_trust(self.address)),
            headers=_headers(self.address),
        )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def patience(self) -> ClusterRetries:
        return ClusterRetries(self.address)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        patience: ClusterRetries | None = None,
        may: Collection[int] = (),
    ) -> ClusterAnswer:
        """Send until there is an answer. `may`: statuses that count as answers besides success."""
        patience = patience or self.patience()
        uncertain = False
        while True:
            try:
                status, raw = await self._send(method, path, body, patience)
            except (aiohttp.ClientError, OSError) as error:
                uncertain |= not isinstance(error, aiohttp.ClientConnectorError)
                trouble = f"{self._hosts[0]} does not answer ({_why(error)})"
            else:
                if status < 300 or status in may:
                    return ClusterAnswer(status, msgspec.json.decode(raw) if raw else None, uncertain)
                if status not in PASSING:
                    raise unavailable(self.address, _REFUSED.get(status, f"it refused with {status}: {reason_in(raw)}"))
                uncertain |= status != BUSY
                trouble = f"{self._hosts[0]} is not ready ({status}: {reason_in(raw)})"
            self._hosts.rotate(-1)
            await patience.rest(trouble)

    async def _send(self, method: str, path: str, body: bytes | None, patience: ClusterRetries) -> tuple[int, bytes]:
        if self._session is None:
            raise unavailable(self.address, "it is not open: open the store before use")
        limit = aiohttp.ClientTimeout(
            total=max(REQUEST_S_MIN, min(REQUEST_S, patience.left_s)), sock_connect=min(CONNECT_S, REQUEST_S_MIN)
        )
        async with self._session.request(method, self._hosts[0] + path, data=body, timeout=limit) as answer:
            return answer.status, await answer.read()


def unavailable(address: ElasticAddress, what: str) -> StoreUnavailable:
    return StoreUnavailable(f"the store at {address}: {what}", store=str(address))


def reason_in(raw: bytes) -> str:
    """The cluster's reason, shortened."""
    try:
        error = msgspec.json.decode(raw)["error"]
        return str(error if isinstance(error, str) else f"{error['type']}: {error['reason']}")[:300]
    except (msgspec.DecodeError, KeyError, TypeError, IndexError):
        return raw[:100].decode(errors="replace")


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _trust(address: ElasticAddress) -> ssl.SSLContext | bool:
    if not address.ca:
        return True
    try:
        return ssl.create_default_context(cafile=address.ca)
    except OSError as error:
        raise unavailable(
            address, f"the certificates in {address.ca} cannot be read ({_why(error)}): check `ca`"
        ) from None


def _headers(address: ElasticAddress) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if address.api_key:
        headers["Authorization"] = f"ApiKey {address.api_key}"
    elif address.user:
        login = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
        headers["Authorization"] = f"Basic {login}"
    return headers
