"""The events of all cases, for any number of viewers of one server.

Each event is written as a frame once, whoever reads it, and the frames are kept in one place. A viewer has only its
place among them: a slow one delays itself and costs no memory, and one that comes back goes on after the last event
that it saw. If its place is gone by then, it is told so by `reset`, and reads everything anew. The more viewers there
are, the longer each waits for the next frames: a thousand cost no more than a few."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple

from mendflow.core.model.errors import RequestError
from mendflow.core.model.principals import Sight
from mendflow.server import events
from mendflow.server.open_requests import OpenRequests
from mendflow.services.api.domain import Domain
from mendflow.services.base.events import RECENT_MAX, SERIALS_PER_MS, EventStream

log = logging.getLogger("mendflow.server")

BATCH: Final = 1_000
"""So many frames are sent at once, at most."""
PAUSE_PER_VIEWER_S: Final = 0.0005
OVERLAP_MS: Final = 3_000
"""Events of several servers do not come in the order of their serials: whoever continues gets those of the last seconds
again."""
CHECK_S: Final = 1.0
"""After this long it is looked again whether a viewer may see what it gets."""


class SharedFrame(NamedTuple):
    """An event as it is sent, and who may see it."""

    serial: int
    kind: str
    project: str
    frame: bytes


class EventFeed:
    """One for each server. A viewer is whoever iterates over `follow`."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._stream: EventStream | None = None
        self._frames: list[SharedFrame | None] = [None] * RECENT_MAX  # a ring, as the stream has it
        self._first = self._made = 0  # frames from the one place to before the other were made
        self._making = asyncio.Lock()
        self.viewers = 0

    async def follow(
        self, after: int, *, kind: str, sight: Sight, open_requests: OpenRequests
    ) -> AsyncGenerator[bytes, None]:
        """Frames from now on, or after a serial. Ends when the server stops, or its services are built anew."""
        end = asyncio.Event()
        self.viewers += 1
        try:
            with open_requests.hold(end.set):
                async for piece in self._follow(after, kind, sight, end):
                    yield piece
        except RequestError as error:
            log.info("an event stream was cut: %s", error.message)
        finally:
            self.viewers -= 1

    async def _follow(self, after: int, kind: str, sight: Sight, end: asyncio.Event) -> AsyncGenerator[bytes, None]:
        stream = self._domain.event_stream()
        place = stream.place_after(after) if after else stream.told
        if after and place is not None and self._domain.is_shared:
            place = stream.place_after(max(after - OVERLAP_MS * SERIALS_PER_MS, stream.dropped))
        yield b": mendflow\n\n" if after else b": mendflow\nid: %d\n\n" % self._present_id(stream)
        while not (end.is_set() or stream.is_stopped):
            frames = await self._frames_from(stream, place) if place is not None else None
            if place is None or frames is None:
                place = stream.told
                yield b"id: %d\nevent: reset\ndata: {}\n\n" % self._present_id(stream)
                continue
            place += len(frames)
            if seen := [each.frame for each in frames if sight.sees(each.project) and kind in ("", each.kind)]:
                yield b"".join(seen)
            elif frames:
                yield b"id: %d\n\n" % frames[-1].serial  # nothing to see, and still a place to go on from
            if len(frames) < BATCH:
                await _wait(end.wait(), max(events.FRAME_PAUSE_S, self.viewers * PAUSE_PER_VIEWER_S))
            if place == stream.told and not await _wait(
                _first(stream.wait_beyond(place), end.wait()), events.SILENCE_S
            ):
                yield b": quiet\n\n"

    def _present_id(self, stream: EventStream) -> int:
        """Whoever continues after it misses nothing. Another server may have begun since the newest event of this one,
        so where there are others it is the present time: those who continue get the last seconds again."""
        return max(stream.serial, self._domain.now() * SERIALS_PER_MS) if self._domain.is_shared else stream.serial

    async def _frames_from(self, stream: EventStream, place: int) -> list[SharedFrame] | None:
        """The frames from a place on; None if they are not kept any more."""
        async with self._making:
            await self._make(stream, place)
        if place < max(self._first, self._made - RECENT_MAX):
            return None
        kept = (self._frames[each % RECENT_MAX] for each in range(place, min(self._made, place + BATCH)))
        return [each for each in kept if each is not None]

    async def _make(self, stream: EventStream, place: int) -> None:
        """Write the frames of what has happened since. Whoever follows alone needs none before its place."""
        if stream is not self._stream or (self.viewers == 1 and place > self._made):
            self._stream, self._first, self._made = stream, place, place
        while self._made < stream.told:
            changes = stream.recent(self._made, BATCH)
            if changes is None:  # nobody was here for long
                self._first = self._made = stream.told - RECENT_MAX
                continue
            for change in changes:
                project = await self._domain.project_lookup.of_event(change)
                frame = SharedFrame(change.serial, change.kind, project, events.event_frame(change))
                self._frames[self._made % RECENT_MAX] = frame
                self._made += 1


async def _first(*waits: Awaitable[object]) -> None:
    """Until one of them is over."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()


async def _wait(what: Awaitable[object], patience_s: float) -> bool:
    """Whether it came in time."""
    try:
        await asyncio.wait_for(what, patience_s)
    except TimeoutError:
        return False
    return True


async def while_admitted(
    pieces: AsyncGenerator[bytes, None], is_admitted: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes, None]:
    """The pieces of a stream, as long as its reader may see them: it ends with the token that it was opened by."""
    clock = asyncio.get_running_loop().time
    checked = clock()
    try:
        async for piece in pieces:
            if clock() - checked >= CHECK_S:
                if not await is_admitted():
                    return
                checked = clock()
            yield piece
    finally:
        await pieces.aclose()
