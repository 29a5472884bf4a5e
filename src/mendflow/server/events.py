"""Events of cases as server-sent events.

Frames are collected while the connection is busy and written together, so a case with many thousand items is sent in
few pieces; a slow reader delays its own stream and never grows our memory. The stream sends `end` when the case is
over; a stream that stops without it was cut, and the reader continues after its last id."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.core.model.views import ChangeEvent
from mendflow.server.open_requests import OpenRequests
from mendflow.server.request_quotas import paid_alike

log = logging.getLogger("mendflow.server")

SILENCE_S = 15.0
"""After this long without an event a keep-alive is sent, so that both ends notice a dead connection."""

FRAMES_MAX = 1000

FRAME_PAUSE_S = 0.03
"""The shortest interval between two writes: people do not notice it, and watching a case of many short jobs does not
slow it down."""

_encoder = msgspec.json.Encoder()


def event_frame(event: ChangeEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.serial,
        event.kind.encode(),
        _encoder.encode(event),
    )


class EventFrames:
    """The stream of one reader. A background task fills `_frames`; the response empties it."""

    def __init__(self, source: AsyncIterator[ChangeEvent], case_is_over: Callable[[], Awaitable[bool]]) -> None:
        """`case_is_over`: whether the subject of the stream has ended, asked when the source ends."""
        self._source = source
        self._check_case_over = case_is_over
        self._frames: list[bytes] = []
        self._has_frames = asyncio.Event()
        self._has_room = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_over = False

    def end(self) -> None:
        self._is_over = True
        self._ended.set()
        self._has_frames.set()

    async def _pump(self) -> None:
        try:
            async for event in self._source:
                self._frames.append(event_frame(event))
                self._has_frames.set()
                if len(self._frames) >= FRAMES_MAX:
                    self._has_room.clear()
                    await self._has_room.wait()
            if await self._check_case_over():
                self._frames.append(b"event: end\ndata: {}\n\n")
        except RequestError as error:
            log.info("an event stream was cut: %s", error.message)
        except Exception:  # the top of a background task: nobody else would ever see the exception
            log.exception("an event stream failed")
        self.end()

    async def stream(self, open_requests: OpenRequests) -> AsyncGenerator[bytes, None]:
        pump = asyncio.create_task(paid_alike(self._pump()))
        try:
            with open_requests.hold(self.end):
                yield b": mendflow\n\n"
                while not (self._is_over and not self._frames):
                    yield await self._next()
                    await self._pause_between_frames()
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _pause_between_frames(self) -> None:
        """Wait a moment so that several events go out together; the end is sent at once."""
        if not self._is_over:
            try:
                await asyncio.wait_for(self._ended.wait(), FRAME_PAUSE_S)
            except TimeoutError:
                pass

    async def _next(self) -> bytes:
        try:
            await asyncio.wait_for(self._has_frames.wait(), SILENCE_S)
        except TimeoutError:
            return b": quiet\n\n"
        self._has_frames.clear()
        frames, self._frames = self._frames, []
        self._has_room.set()
        if self._is_over:
            self._has_frames.set()
        return b"".join(frames) or b": \n\n"
