"""Sends each answer in one write.

The HTTP server writes the head and the body of an answer separately. Each write is a system call that wakes the reader,
and for a small exchange that costs more than all the rest. So everything that is written in one iteration of the event
loop is collected and sent when the iteration ends.

Also notes which account of this machine has opened a connection: only now, while it is open, can the kernel say so."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mendflow.address_guard import is_loopback
from mendflow.local_accounts import ACCOUNT_STATE, account_of_transport


class CoalescingTransport:
    """A transport that writes once per iteration of the event loop. Everything except writing and closing is done by
    the real transport."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class CoalescingProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the one above
        super().connection_made(transport)
        gathering: Any = CoalescingTransport(transport)
        self.transport = gathering
        access = getattr(self.app, "access", None)
        # Also where there are tokens: a session of a browser on this machine is for the account that signed in.
        if access is not None and (access.is_local or (self.client and is_loopback(self.client[0]))):
            self.app_state = {**self.app_state, ACCOUNT_STATE: account_of_transport(transport)}
