"""Web requests to addresses that somebody else has chosen: only what a guard allows is reached.

The guard is that of a server's own outgoing calls. A name is resolved for each connection, and the connection goes to
the very address that was checked; so does that of each redirect. A proxy that the environment names resolves names
itself: then what is known of the target here is checked, and the proxy decides about the rest."""

import http.client
import ipaddress
import socket
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final
from weakref import WeakSet

from mendflow.address_guard import AddressGuard, literal
from mendflow.transfer.errors import BadFileUrl, TransferFailed

PORTS: Final = {"http": 80, "https": 443, "ftp": 21, "scp": 22, "sftp": 22, "ssh": 22, "smb": 445, "root": 1094}

UNSET_S: Final = 60.0
"""The bound on an answer where the request has none."""

Connect = Callable[[str, int, float], socket.socket]


def refusal_of(url: str, guard: AddressGuard) -> str:
    """Why the host that a URL names may not be reached, as far as its text says; empty if it may."""
    host, port = _host_of(url)
    return "" if guard.allows(host, port, literal(host)) else _private(host)


def demand_reachable(url: str, guard: AddressGuard, *, unknown: bool = False) -> None:
    """Raise BadFileUrl if the host that a URL names, or an address that it has now, may not be reached; and
    TransferFailed if it is not known here what the name means, unless `unknown` lets such a name pass."""
    host, port = _host_of(url)
    try:
        checked_addresses(host, port, guard)
    except (OSError, UnicodeError) as error:  # a name that is none is no Unicode for the resolver
        if not guard.allows(host, port, literal(host)):
            raise BadFileUrl(_private(host)) from None
        if not unknown:
            raise TransferFailed(f"nothing is known of {host} here: {error}", passing=True) from None


def checked_addresses(host: str, port: int, guard: AddressGuard) -> Sequence[tuple[Any, ...]]:
    """The addresses of a host, as `getaddrinfo` gives them. Raises BadFileUrl if one of them may not be reached."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    if not all(guard.allows(host, port, address) for address in addresses):
        raise BadFileUrl(_private(host))
    return found


def _private(host: str) -> str:
    return (
        f"{host or 'this machine'} is a private address, and this pilot, which keeps jobs apart from itself, reaches no"
        " such address for them: use a storage element, or ask whoever runs the pilot to allow it"
        f" (--allow-address {host or 'HOST'})"
    )


def _host_of(url: str) -> tuple[str, int]:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        raise BadFileUrl(_UNREADABLE) from None
    if "%" in host and ":" not in host:  # coded, it means one host to some programs and another to others; a zone may
        raise BadFileUrl(_UNREADABLE)
    return host, port


_UNREADABLE: Final = "its host cannot be read; write one like https://example.org/file"


def _connector(guard: AddressGuard) -> Connect:
    def connected(host: str, port: int, timeout_s: float) -> socket.socket:
        error: OSError = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in checked_addresses(host, port, guard):
            opened = socket.socket(family, kind, protocol)
            opened.settimeout(timeout_s)
            try:
                opened.connect(address)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return opened
            except OSError as problem:
                opened.close()
                error = problem
        raise error

    return connected


class _PinnedConnection(http.client.HTTPConnection):
    """Connects to an address that was checked."""

    def __init__(self, host: str, connected: Connect, *, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self._connected, self._timeout_s = connected, timeout

    def connect(self) -> None:
        self.sock = self._connected(self.host, self.port, self._timeout_s)


class _PinnedTlsConnection(http.client.HTTPSConnection):
    """The same, with TLS: the certificate is that of the name."""

    def __init__(self, host: str, connected: Connect, *, timeout: float, context: ssl.SSLContext) -> None:
        super().__init__(host, timeout=timeout, context=context)
        self._connected, self._timeout_s, self._tls = connected, timeout, context

    def connect(self) -> None:
        self.sock = self._tls.wrap_socket(
            self._connected(self.host, self.port, self._timeout_s), server_hostname=self.host
        )


class _GuardedProxies(urllib.request.ProxyHandler):
    """The proxies of the environment. What they are asked for is checked, and noted in `asked`: whatever is not in
    there is connected to from here."""

    def __init__(self, guard: AddressGuard, asked: WeakSet[urllib.request.Request]) -> None:
        named = urllib.request.getproxies()
        super().__init__({kind: proxy for kind, proxy in named.items() if kind in ("http", "https")})
        self._guard, self._asked = guard, asked

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:
        if req.host and urllib.request.proxy_bypass(req.host):
            return None
        demand_reachable(req.full_url, self._guard, unknown=True)
        self._asked.add(req)
        return super().proxy_open(req, proxy, type)


class _GuardedHttp(urllib.request.HTTPHandler):
    def __init__(self, guard: AddressGuard, proxied: WeakSet[urllib.request.Request]) -> None:
        super().__init__()
        self._proxied, self._connected = proxied, _connector(guard)

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if req in self._proxied:
            return super().http_open(req)

        def connection(host: str, /, *, timeout: float = UNSET_S, **_: Any) -> http.client.HTTPConnection:
            return _PinnedConnection(host, self._connected, timeout=timeout)

        return self.do_open(connection, req)


class _GuardedHttps(urllib.request.HTTPSHandler):
    def __init__(self, guard: AddressGuard, proxied: WeakSet[urllib.request.Request], context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._proxied, self._connected, self._tls = proxied, _connector(guard), context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if req in self._proxied:
            return super().https_open(req)

        def connection(host: str, /, *, timeout: float = UNSET_S, **_: Any) -> http.client.HTTPConnection:
            return _PinnedTlsConnection(host, self._connected, timeout=timeout, context=self._tls)

        return self.do_open(connection, req)


class _NoFtp(urllib.request.FTPHandler):
    """A redirect leads to the web alone."""

    def ftp_open(self, req: urllib.request.Request) -> Any:
        raise BadFileUrl("it leads to an address of ftp, which is not followed from one of the web")


@cache
def guarded_opener(guard: AddressGuard) -> urllib.request.OpenerDirector:
    proxied: WeakSet[urllib.request.Request] = WeakSet()
    return urllib.request.build_opener(
        _GuardedProxies(guard, proxied),
        _GuardedHttp(guard, proxied),
        _GuardedHttps(guard, proxied, ssl.create_default_context()),
        _NoFtp(),
    )
