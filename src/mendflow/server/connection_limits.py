"""What one connection may cost before anybody knows whose it is: bytes of headers, time, and a place.

A connection is *admitted* once a request on it was. Those that are not admitted share a bounded number of places: once
a second, what is beyond it gives up its place, the oldest first, of the addresses that have most of them. Whoever has
just come has a second at least, so whoever sends a request at once gets in, however many half-sent ones there are. Half
of all places are kept for admitted connections.

One clock for all connections looks once a second at those that are still sending: headers have to be complete within a
time, and a body has to come at a speed. It looks at those that do not read their answers too: these have to be read at
the same speed, and what is left unread takes a bounded part of the memory.

One principal has a bounded number of admitted connections, unless it is an administrator or a pilot: there is a place
for everybody else."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Any, ClassVar, Final

import httptools
import msgspec

from mendflow.core.model.errors import InvalidRequest, RequestError, TemporarilyUnavailable, TooLarge, TooManyRequests
from mendflow.core.model.principals import ADMIN, PILOT, Principal
from mendflow.server.error_bodies import body_of
from mendflow.server.write_coalescing import CoalescingProtocol

log = logging.getLogger("mendflow.server")

ADMITTED: Final = "mendflow.admitted"
"""In the scope of a request: the function to call once its caller is known."""

LOOK_S: Final = 1.0
CROWDED_S: Final = 5
UNKNOWN_BODY_BYTES_MAX: Final = 64 << 10
EVICTED_S: Final = 5.0
EVICTED_MAX: Final = 1024
"""So long, and so many at once, connections that gave up their places are kept waiting for the answer."""

REASONS: Final = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`body_bytes_per_s` is what a body has to come at, and an answer be read at, on average, after `body_grace_s`."""

    connections_max: int = 4096
    connections_of_principal_max: int = 512
    unadmitted_max: int = 512
    unadmitted_of_address_max: int = 256
    header_bytes_max: int = 64 << 10
    header_count_max: int = 100
    header_s: float = 10
    body_bytes_per_s: int = 1024
    body_grace_s: float = 20
    unread_bytes_max: int = 128 << 20
    idle_s: int = 75


class TooSlow(RequestError):
    code: ClassVar[str] = "too-slow"
    status: ClassVar[int] = 408


class HeadersTooLarge(RequestError):
    code: ClassVar[str] = "headers-too-large"
    status: ClassVar[int] = 431


class ConnectionTable:
    """The connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.unadmitted: dict[BoundedProtocol, str] = {}
        """Those that are not admitted, oldest first, with their addresses."""
        self.sending: set[BoundedProtocol] = set()
        self.unread: set[BoundedProtocol] = set()
        """Those that do not read their answers as fast as these are written."""
        self._principals: dict[BoundedProtocol, str] = {}
        self._of_principal = Counter[str]()
        self.refused = 0
        self._by_address = Counter[str]()
        self._evicted: set[BoundedProtocol] = set()
        self._all = 0
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: BoundedProtocol, address: str) -> None:
        """Give a new connection a place, if need be that of another."""
        self._all += 1
        self.unadmitted[connection] = address
        self._by_address[address] += 1
        self.watch(connection)
        if self._all > self.limits.connections_max:
            connection.refuse(TemporarilyUnavailable("this server has as many connections as it takes; try again"))
        elif len(self.unadmitted) > self.limits.connections_max // 2:
            self._evict(next(iter(self.unadmitted)))

    def _thin_out(self, now: float) -> None:
        """Take places back from those that have had a second to send a request, down to the bounds: the oldest first,
        of the addresses that have most."""
        limits, excess = self.limits, len(self.unadmitted) - self.limits.unadmitted_max
        of_address = {address: count - limits.unadmitted_of_address_max for address, count in self._by_address.items()}
        if excess <= 0 and max(of_address.values(), default=0) <= 0:
            return
        fair = max(1, limits.unadmitted_max // max(1, len(of_address)))
        for connection, address in list(self.unadmitted.items()):
            crowds = of_address[address] > 0 or (excess > 0 and self._by_address[address] > fair)
            if crowds and connection in self.sending and connection.waits_s(now) >= LOOK_S:
                excess, of_address[address] = excess - 1, of_address[address] - 1
                self._evict(connection)

    def _evict(self, connection: BoundedProtocol) -> None:
        """Its place is free at once; the answer comes later, while there is room for those who wait for one: who is
        told at once connects again at once, and that is the most that such a connection costs."""
        self._forget(connection)
        if len(self._evicted) >= EVICTED_MAX:
            self._refuse_evicted(connection)
            return
        connection.ignore()
        self._evicted.add(connection)
        asyncio.get_running_loop().call_later(EVICTED_S, self._refuse_evicted, connection)

    def _refuse_evicted(self, connection: BoundedProtocol) -> None:
        self._evicted.discard(connection)
        connection.refuse(
            TemporarilyUnavailable(
                "too many connections of this address have sent no whole request; send it at once, or try again"
            )
        )

    def admit(self, connection: BoundedProtocol, name: str) -> None:
        """It belongs to the principal whose request was the first on it; nobody is counted without a name. Raises if
        that one has too many already."""
        if name and connection not in self._principals:
            most = self.limits.connections_of_principal_max
            if self._of_principal[name] >= most:
                connection.close_after_answer()
                raise TooManyRequests(
                    f"{name} has {most} connections to this server already; close some, or use each for more requests",
                    retry_after_s=CROWDED_S,
                )
            self._principals[connection] = name
            self._of_principal[name] += 1
        self._forget(connection)

    def leave(self, connection: BoundedProtocol) -> None:
        self._all -= 1
        self._forget(connection)
        self._evicted.discard(connection)
        self.sending.discard(connection)
        self.unread.discard(connection)
        name = self._principals.pop(connection, "")
        if name:
            self._of_principal[name] -= 1
            if not self._of_principal[name]:
                del self._of_principal[name]

    def _forget(self, connection: BoundedProtocol) -> None:
        address = self.unadmitted.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def watch(self, connection: BoundedProtocol) -> None:
        """Look at a connection once a second until what it sends is complete."""
        self.sending.add(connection)
        self._look_later()

    def watch_reading(self, connection: BoundedProtocol) -> None:
        """Look at a connection once a second until its answers are read."""
        self.unread.add(connection)
        self._look_later()

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        now = time.monotonic()
        for connection in list(self.sending):
            connection.check_progress(now)
        self._thin_out(now)
        self._cut_unread(now)
        if self.sending or self.unread:
            self._look_later()

    def _cut_unread(self, now: float) -> None:
        """Cut those that read too slowly, and beyond the bound those that have waited longest."""
        left = {each: each.unread_bytes() for each in self.unread if not each.cut_if_unread(now)}
        excess = sum(left.values()) - self.limits.unread_bytes_max
        for connection in sorted(left, key=lambda each: each.unread_since):
            if excess <= 0:
                return
            excess -= left[connection]
            connection.cut()


class _Refused(Exception):
    """Ends the parser's work on a connection that was refused."""


class BoundedProtocol(CoalescingProtocol):
    """HTTP, with bounds on what a caller sends. `table` is set on a subclass for each server."""

    table: ConnectionTable

    _since = 0.0
    _header_bytes = 0
    _headers = 0
    _in_headers = True
    _body_bytes = 0
    _quiet_bytes = 0
    _is_refused = False
    _is_ignored = False
    _unread_then = 0
    _looked_at = 0.0
    unread_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the one above
        super().connection_made(transport)
        self._since = time.monotonic()
        self.table.enter(self, self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused or self._is_ignored:
            return
        self._unset_keepalive_if_required()
        if self not in self.table.sending:
            self._since = time.monotonic()
            self.table.watch(self)
        self._quiet_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(InvalidRequest("this server speaks plain HTTP only; leave out the header Upgrade"))
        except httptools.HttpParserError as error:
            if not self._is_refused:
                self.refuse(InvalidRequest(f"this is no request in HTTP that can be read{_cause(error)}"))
        if not self._is_refused and self._quiet_bytes > self.table.limits.header_bytes_max and not self._is_idle:
            self._refuse_headers()

    @property
    def _is_idle(self) -> bool:
        """Whether the last request has come as a whole, and no other has begun."""
        return self not in self.table.sending

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers, self._header_bytes, self._headers, self._body_bytes = True, 0, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._count_header(len(name) + len(value))
        super().on_header(name, value)

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        limits = self.table.limits
        if self._header_bytes > limits.header_bytes_max or self._headers > limits.header_count_max:
            self._refuse_headers()
            raise _Refused

    def on_headers_complete(self) -> None:
        self._in_headers, self._since, self._quiet_bytes = False, time.monotonic(), 0
        super().on_headers_complete()
        self.scope["state"][ADMITTED] = self._admit

    def _admit(self, name: str) -> None:
        self.table.admit(self, name)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._quiet_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._quiet_bytes = 0
        self.table.sending.discard(self)
        super().on_message_complete()

    def waits_s(self, now: float) -> float:
        """How long it has been sending."""
        return now - self._since

    def check_progress(self, now: float) -> None:
        """Refuse a caller that sends its headers, or its body, too slowly."""
        limits, passed_s = self.table.limits, now - self._since
        if self._in_headers:
            if passed_s > limits.header_s:
                self.refuse(TooSlow(f"the headers of a request have to come within {limits.header_s:g} seconds"))
            return
        if self.flow.read_paused:
            self._since, self._body_bytes = now, 0  # it is we who do not read
            return
        if self.cycle is not None and self.cycle.response_complete:
            self._since = max(self._since, now - limits.body_grace_s)
        if passed_s <= limits.body_grace_s:
            return
        if self._body_bytes < passed_s * limits.body_bytes_per_s:
            self.refuse(TooSlow(f"a body has to come at {limits.body_bytes_per_s} bytes a second or more"))
        self._since, self._body_bytes = now, 0  # what came quickly at first does not count for what comes later

    def _refuse_headers(self) -> None:
        limits = self.table.limits
        self.refuse(
            HeadersTooLarge(
                f"the headers of a request may have {limits.header_bytes_max} bytes in all, and be"
                f" {limits.header_count_max} at most"
            )
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_since = self._looked_at = time.monotonic()
        self._unread_then = self.unread_bytes()
        self.table.watch_reading(self)

    def resume_writing(self) -> None:
        self.table.unread.discard(self)
        super().resume_writing()

    def unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def cut_if_unread(self, now: float) -> bool:
        """Cut a caller that has read its answer too slowly for a while."""
        limits, passed_s, unread = self.table.limits, now - self._looked_at, self.unread_bytes()
        if passed_s <= limits.body_grace_s:
            return False
        if self._unread_then - unread < passed_s * limits.body_bytes_per_s:
            self.cut()
            return True
        self._looked_at, self._unread_then = now, unread
        return False

    def cut(self) -> None:
        self.table.unread.discard(self)
        self.transport.abort()

    def close_after_answer(self) -> None:
        """Take no other request on it."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def ignore(self) -> None:
        """Read nothing more; it is refused later."""
        self._is_ignored = True
        self.table.sending.discard(self)
        self.transport.pause_reading()

    def refuse(self, error: RequestError) -> None:
        """Answer with the reason, if no other answer has begun, and close."""
        if self._is_refused:
            return
        self._is_refused = True
        self.table.refused += 1
        self.table.sending.discard(self)
        cycle: Any = self.cycle
        is_silent = self._in_headers and not self._quiet_bytes and error.status == TooSlow.status
        if not is_silent and (cycle is None or cycle.response_complete or not cycle.response_started):
            body = body_of(error)
            self.transport.write(
                b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
                % (error.status, REASONS[error.status], len(body), body)
            )
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def mark_admitted(scope: Any, caller: Principal | None = None) -> None:
    """Count the connection of this request among the admitted ones, unless its caller is nobody in particular. Raises
    if the caller has too many."""
    admit = scope.get("state", {}).get(ADMITTED)
    if admit is not None and (caller is None or caller.roles):
        admit("" if caller is None or caller.roles & {ADMIN, PILOT} else caller.name)


def demand_small_body(scope: Any, caller: Principal) -> None:
    """Refuse a large body of nobody in particular, before any of it is read: signing in takes little."""
    if caller.roles:
        return
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or int(length) > UNKNOWN_BODY_BYTES_MAX:
        raise TooLarge(
            f"without a token a body has {UNKNOWN_BODY_BYTES_MAX >> 10} KiB at most, and says how many it has; sign in"
        )


def _cause(error: Exception) -> str:
    """What the parser, or a function that it called, has to say."""
    inner = error.__context__
    if isinstance(inner, UnicodeDecodeError):
        return ": its address has bytes that are neither ASCII nor percent-encoded"
    return f": {str(error)[:200]}" if str(error) and inner is None else ""


def bounded_protocol(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The protocol of one server, with a table of its own."""
    return type("BoundedProtocol", (BoundedProtocol,), {"table": ConnectionTable(limits)})
