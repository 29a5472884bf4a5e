"""Which addresses webhooks may have.

A user who can choose an address could make the server send requests to hosts that only the server can reach: so only
http and https are allowed, and no private addresses unless the server's owner allows them. A name is resolved when
something is sent, and the resolved address is checked in the same way."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from mendflow.core.model.errors import InvalidRequest

URL_CHARS_MAX: Final = 2_000
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""IPv4 addresses as they are written inside IPv6 ones for a translator (NAT64)."""


def check_url(url: str, *, private: bool) -> None:
    """Raise if nothing may be sent there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    fit = parts.scheme in ("http", "https") and host and port != 0 and url.isprintable() and " " not in url
    if not fit or len(url) > URL_CHARS_MAX:
        raise InvalidRequest(
            f"{url[:100]!r} is not an address for a webhook; give one like https://example.org/hook", field="url"
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest(
            "the address of a webhook has no user and password; sign with a secret instead", field="url"
        )
    assert host is not None
    if not private and is_private_host(host):
        raise InvalidRequest(private_sentence(host), field="url")


def private_sentence(host: str) -> str:
    return f"{host} is a private address; a server started with --webhooks-to-private would send there"


def is_private_host(host: str) -> bool:
    """Whether the host name alone says that it is private."""
    return host == "localhost" or host.endswith(".localhost") or is_private_text(host)


def is_private_text(host: str) -> bool:
    """Whether it is an IP address, and a private one."""
    try:
        return is_private(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def is_private(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether it is not a public address. An IPv4 address inside an IPv6 address counts as the IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        if inside is None and address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inside is not None:
            return is_private(inside)
    return not address.is_global or address.is_multicast
