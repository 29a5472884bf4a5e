"""Answers that leave in one piece.

The HTTP server writes an answer's head and its body one after the other. Each write is a call of the system that wakes
whoever reads, and on a small exchange that costs more than all the rest. So what is written in one turn of the event
loop is gathered, and leaves when the turn ends."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class CoalescingTransport:
    """A transport that writes once a turn. Everything but writing and closing is the real transport's own."""

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
