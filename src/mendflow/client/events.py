"""The server's event stream as an async iterator that a broken line does not end.

Each event carries its serial; after a break the stream is asked for what came after the last one seen, so a case's
events arrive once each and in order. The patience is for a server that is away: whatever it says, a comment too, renews
it. Only the server's own `end` event ends the iteration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec

from mendflow.client.transport import Transport
from mendflow.core.model.errors import StoreUnavailable, Unreachable
from mendflow.core.model.views import ChangeEvent

if TYPE_CHECKING:
    import aiohttp

SILENCE_S_MAX = 45.0
"""The server says something at least every fifteen seconds, so a longer silence is a dead line."""

_decoder = msgspec.json.Decoder(ChangeEvent)


async def follow(transport: Transport, path: str, after: int, patience_s: float) -> AsyncGenerator[ChangeEvent, None]:
    """Events after the serial `after`, across broken lines."""
    last, give_up_at = after, time.monotonic() + patience_s

    def heard() -> None:
        nonlocal give_up_at
        give_up_at = time.monotonic() + patience_s

    while True:
        try:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
            async with transport.open("GET", path, headers=headers, read_s=SILENCE_S_MAX) as response:
                heard()
                async for kind, data in _events(response.content, heard):
                    if kind == "end":
                        return
                    if kind == "reset":
                        continue  # what happened meanwhile is not told any more; it goes on from now
                    event = _decoder.decode(data)
                    last = event.serial
                    yield event
        except (Unreachable, StoreUnavailable):
            if time.monotonic() >= give_up_at:
                raise
        await asyncio.sleep(0.2)


async def _events(lines: aiohttp.StreamReader, heard: Callable[[], None]) -> AsyncIterator[tuple[str, bytes]]:
    """(kind, data) of each event. Of comments, which only keep the line alive, it is only told that they came."""
    kind, data = "", b""
    async for raw in lines:
        heard()
        text = raw.rstrip(b"\r\n")
        if not text:
            if kind or data:
                yield kind, data
            kind, data = "", b""
        elif text.startswith(b"event:"):
            kind = text[6:].strip().decode()
        elif text.startswith(b"data:"):
            data += text[5:].strip()
