"""Reading a request's body, never more of it than is allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from mendflow.core.model.errors import TooLarge
from mendflow.server.error_bodies import ClientDisconnected

if TYPE_CHECKING:
    from litestar.types import HTTPReceiveMessage, Message, Receive, Send, WebSocketReceiveMessage

    ReceiveMessage = HTTPReceiveMessage | WebSocketReceiveMessage

DRAINED_BYTES_MAX = 256 << 20


async def body_chunks(receive: Receive, bytes_max: int) -> AsyncIterator[bytes]:
    """The body, piece by piece. Raises if the body is larger than the limit or was cut off: half a body counts as
    none."""
    total = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnected("the connection was lost before the whole body had come")
        if piece := message.get("body", b""):
            total += len(piece)
            if total > bytes_max:
                raise TooLarge(f"the body is larger than the {bytes_max} bytes that are allowed", bytes_max=bytes_max)
            yield piece
        if not message.get("more_body", False):
            return


async def read_body(receive: Receive, bytes_max: int) -> bytes:
    """The whole body at once; one piece, as most are, is not copied."""
    parts = [piece async for piece in body_chunks(receive, bytes_max)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


class BodyDrain:
    """Reads the rest of a body that is too large before the error is sent: a caller that is still sending would see a
    broken connection instead of the answer. This reading has a limit, too."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._has_more = True
        self.is_answering = False

    async def receive(self) -> ReceiveMessage:
        message = await self._receive()
        self._has_more = message["type"] == "http.request" and message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        self.is_answering = True
        if message["type"] == "http.response.start" and message["status"] == TooLarge.status:
            passed_over = 0
            while self._has_more and passed_over < DRAINED_BYTES_MAX:
                part = await self.receive()
                passed_over += len(part.get("body", b"")) if part["type"] == "http.request" else 0
        await self._send(message)
