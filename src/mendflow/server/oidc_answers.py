"""What a server asks an OpenID Connect issuer for: its description of itself, its keys, and who has signed in.

The issuer says itself where each of these is, so such an address is called only over TLS or within this machine, and
only if the guard allows it; and no answer is read beyond its bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from mendflow.address_guard import AddressGuard, AllowedAddress, is_loopback
from mendflow.lazy import LazyModule
from mendflow.server.outgoing import OutgoingCalls

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LazyModule("aiohttp")

DISCOVERY: Final = "/.well-known/openid-configuration"
BY_HEADER: Final = "client_secret_basic"
"""How a client shows its secret where an issuer says nothing else."""
FETCH_S: Final = 10.0
BYTES_MAX: Final = 512 << 10


class IssuerAway(Exception):
    """The issuer could not be asked, or said what nobody can read."""


@contextmanager
def reading_issuer() -> Iterator[None]:
    """Whatever goes wrong meanwhile is the issuer's, and one kind of failure."""
    try:
        yield
    except (TimeoutError, OSError, ValueError, msgspec.MsgspecError, aiohttp.ClientError) as error:
        raise IssuerAway(repr(error)) from error


class IssuerDescription(msgspec.Struct, frozen=True):
    """`end_session_endpoint` is where a browser is signed out of the issuer itself; empty if it has no such place."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = (BY_HEADER,)


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


class IssuerAnswer(NamedTuple):
    status: int
    content: bytes


def is_protected(url: str) -> bool:
    """Whether nobody on the way to this address can listen."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def require_protected(url: str, what: str) -> str:
    if not is_protected(url):
        raise ValueError(f"its {what} is {url!r:.200}, which is not an https address")
    return url


def host_of(issuer: str) -> AllowedAddress:
    parts = urlsplit(issuer)
    return AllowedAddress(
        None, (parts.hostname or "").lower().rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)
    )


async def fetch_issuer(issuer: str, guard: AddressGuard) -> tuple[IssuerDescription, list[dict[str, Any]]]:
    """An issuer's description of itself, and the keys that it publishes."""
    with reading_issuer():
        return await _fetch(issuer, guard)


async def _fetch(issuer: str, guard: AddressGuard) -> tuple[IssuerDescription, list[dict[str, Any]]]:
    async with OutgoingCalls(guard, total_s=FETCH_S) as calls:
        described = msgspec.json.decode(await _get(calls, issuer.rstrip("/") + DISCOVERY), type=IssuerDescription)
        if described.issuer != issuer:
            raise ValueError(f"it says that it is {described.issuer!r:.200}; give that as --oidc-issuer")
        content = await _get(calls, require_protected(described.jwks_uri, "place of keys"))
        return described, msgspec.json.decode(content, type=_KeySet).keys


async def _get(calls: OutgoingCalls, url: str) -> bytes:
    answer = await ask_issuer(calls, "GET", url, {})
    if answer.status != 200:
        raise ValueError(f"{url} answered {answer.status}")
    return answer.content


async def ask_issuer(
    calls: OutgoingCalls, method: str, url: str, headers: dict[str, str], form: dict[str, str] | None = None
) -> IssuerAnswer:
    """One request, and its answer as far as the bound."""
    given = {"Accept": "application/json", **headers}
    async with calls.request(method, url, headers=given, data=form) as response:
        content = await response.content.read(BYTES_MAX + 1)
        while len(content) <= BYTES_MAX and (more := await response.content.read(BYTES_MAX)):
            content += more
        if len(content) > BYTES_MAX:
            raise ValueError(f"{url} answered more than {BYTES_MAX} bytes")
        return IssuerAnswer(response.status, content)
