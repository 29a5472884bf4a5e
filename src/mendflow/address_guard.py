"""Which addresses a server may call that somebody else has chosen: webhooks, callbacks, partners, sources.

A user who can choose an address could make the server send requests to hosts that only the server can reach: so only
http and https are allowed, and no private addresses unless the server's owner allows them. A name is resolved when
something is sent, and the resolved address is checked in the same way."""

import ipaddress
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import lazy_pattern

URL_CHARS_MAX: Final = 2_000
PLAIN_HOST: Final = lazy_pattern(r"[A-Za-z0-9._:-]+")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""IPv4 addresses as they are written inside IPv6 ones for a translator (NAT64)."""


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NEVER_BY_DEFAULT: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(each)
    for each in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "192.0.0.192/32")
)
"""Link-local addresses, and those where clouds tell a machine its secrets."""


class AllowedAddress(NamedTuple):
    """An entry of the allow-list: a network or the name of a host, and the port if only that is meant."""

    network: Network | None
    name: str
    port: int = 0

    def holds(self, host: str, port: int, address: Address | None) -> bool:
        if self.port and self.port != port:
            return False
        if self.network is None:
            return host.lower().rstrip(".") == self.name
        return address is not None and address in self.network


def allowed_address(text: str) -> AllowedAddress:
    """`10.1.0.0/16`, `10.1.2.3:8080`, `[fd00::1]:80`, `partner.example.org`, `localhost:9000`."""
    host, port = text.strip(), ""
    if host.startswith("["):
        host, closed, port = host[1:].partition("]")
        host, port = host if closed else "", port.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    fits = (
        host and host.isprintable() and " " not in host and (not port or (port.isdecimal() and 0 < int(port) < 65536))
    )
    if not fits:
        raise InvalidRequest(
            f"--allow-address {text!r} is no address: write a network such as 10.1.0.0/16, or HOST or HOST:PORT"
        )
    try:
        return AllowedAddress(ipaddress.ip_network(host, strict=False), "", int(port or 0))
    except ValueError:
        if "/" in host:
            raise InvalidRequest(f"--allow-address {text!r} is no network: write one such as 10.1.0.0/16") from None
        return AllowedAddress(None, host.lower().rstrip("."), int(port or 0))


class AddressGuard(NamedTuple):
    """What may be called. Public addresses may; private ones if `private` says so, or the allow-list, or while `alone`
    says that whoever runs the server has it for himself; and those of the local link and of a cloud's metadata only if
    the allow-list says so."""

    private: bool = False
    allowed: tuple[AllowedAddress, ...] = ()
    anywhere: bool = False  # whoever gave the address runs the server
    alone: Callable[[], bool] | None = None

    def allows(self, host: str, port: int, address: Address | None = None) -> bool:
        """Whether this host may be called, at this address; None: its name is not resolved yet."""
        if self.anywhere or any(each.holds(host, port, address) for each in self.allowed):
            return True
        if address is None:
            return not is_private_name(host) or self._allows_private()
        if not is_private(address):
            return True
        return self._allows_private() and not any(_plain(address) in each for each in NEVER_BY_DEFAULT)

    def _allows_private(self) -> bool:
        return self.private or (self.alone is not None and self.alone())

    def demand(self, host: str, port: int) -> None:
        """Raise InvalidRequest if the host alone says that it may not be called."""
        if not self.allows(host, port, literal(host)):
            raise InvalidRequest(private_sentence(host))


PUBLIC_ONLY: Final = AddressGuard()
OWN_MACHINE: Final = AddressGuard(private=True)
ANYWHERE: Final = AddressGuard(anywhere=True)


def literal(host: str) -> Address | None:
    """The address that is written there, if it is one."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ipaddress.IPv4Address("127.0.0.1") if is_private_name(host) else None


def is_plain_host(host: str) -> bool:
    """Whether everybody reads the same host there. Other digits and points of Unicode, and percent codes, are made
    plain by some libraries, after a guard has taken them for a name."""
    zone = host.partition("%")
    return bool(PLAIN_HOST.fullmatch(zone[0])) and (not zone[1] or (":" in zone[0] and zone[2].isalnum()))


def is_private_name(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _plain(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, if there is one."""
    if isinstance(address, ipaddress.IPv6Address):
        if (inside := address.ipv4_mapped or address.sixtofour) is not None:
            return inside
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def check_url(url: str, *, guard: AddressGuard, what: str = "webhook", field: str = "url") -> None:
    """Raise if nothing may be sent there. `what` is who has the address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    fit = parts.scheme in ("http", "https") and host and port != 0 and url.isprintable() and " " not in url
    if host and not is_plain_host(host):
        raise InvalidRequest(
            f"the host of {url[:100]!r} is not written plainly; use letters, digits, points and hyphens, and of a name"
            " in another script the form that begins with xn--",
            field=field,
        )
    if not fit or len(url) > URL_CHARS_MAX:
        raise InvalidRequest(
            f"{url[:100]!r} is not an address for a {what}; give one like https://example.org/hook", field=field
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest(f"the address of a {what} has no user and password; give a secret instead", field=field)
    assert host is not None
    if not guard.allows(host, port or (443 if parts.scheme == "https" else 80), literal(host)):
        raise InvalidRequest(private_sentence(host), field=field)


def private_sentence(host: str) -> str:
    return f"{host} is a private address; a server started with --allow-address {host} would call it"


def is_private_host(host: str) -> bool:
    """Whether the host name alone says that it is private."""
    return is_private_name(host) or is_private_text(host)


def is_loopback(host: str) -> bool:
    """Whether a host, by its name or its address alone, is this machine: what is sent there is on no wire."""
    name = host.strip("[]").lower()
    if is_private_name(name):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    inside = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inside or address).is_loopback


def is_private_text(host: str) -> bool:
    """Whether it is an IP address, and a private one."""
    try:
        return is_private(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def is_private(address: Address) -> bool:
    """Whether it is not a public address. An IPv4 address inside an IPv6 address counts as the IPv4 address."""
    plain = _plain(address)
    return not plain.is_global or plain.is_multicast
