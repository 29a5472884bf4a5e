"""Answers to pages of the web app, compressed.

A page of a large list is some hundred kilobytes of JSON, of which a twentieth is left. Only requests of the app itself
are answered so, which say that they are: programs ask often, and for little. Small answers and streams of events are
sent as they are. Nothing that is kept secret from a page stands in the same answer as what others chose, so its length
tells nobody anything."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Final

from mendflow.server.sign_in import header
from mendflow.services.base.reading_cost import paid_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litestar.types import HTTPResponseStartEvent, HTTPScope, Message, Send

BYTES_MIN: Final = 2048
LEVEL: Final = 1
"""Three quarters of what the best level gains, at a tenth of its cost."""
BYTES_AT_ONCE: Final = 1 << 17
"""What is longer is compressed beside the event loop."""


def compressed(scope: HTTPScope, send: Send) -> Send:
    """Sends what is worth it compressed, if the request is of a page whose browser takes that."""
    headers = scope["headers"]
    if header(headers, b"mendflow-request") != b"web" or b"gzip" not in header(headers, b"accept-encoding"):
        return send
    return _Compression(send)


def gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=31)
    return packer.compress(body) + packer.flush()


class _Compression:
    """Holds the beginning of an answer back until its body is there: only one that comes whole is compressed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: HTTPResponseStartEvent | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message["headers"]):
            self._start = message
            return
        start, self._start = self._start, None
        if start is None or message["type"] != "http.response.body":
            await self._send(message)
            return
        body = message.get("body", b"")
        if not message.get("more_body") and len(body) >= BYTES_MIN:
            body = await paid_thread(partial(gzipped, body)) if len(body) > BYTES_AT_ONCE else gzipped(body)
            kept = [each for each in start["headers"] if each[0].lower() != b"content-length"]
            packed = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            start["headers"] = [*kept, *packed, (b"content-length", b"%d" % len(body))]
            message["body"] = body
        await self._send(start)
        await self._send(message)


def _is_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    found = {name.lower(): value for name, value in headers}
    return b"content-encoding" not in found and found.get(b"content-type", b"").startswith(b"application/json")
