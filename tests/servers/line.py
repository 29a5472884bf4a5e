"""A line between a client and a server on this machine, which can be cut at the worst moment.

Bytes go through as they come, until the line is told to lose those of one direction or to break. So a request can
reach a server whose answer nobody hears, and a client can hear nothing of a request that never arrived."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16


class Line:
    """`port` is where clients connect. While `mute` is set, what the server says is thrown away; while `deaf` is set,
    what clients say. `lost` is set when bytes were thrown away."""

    def __init__(self, to_port: int) -> None:
        self.port = 0
        self.to_port = to_port
        self.mute = False
        self.deaf = False
        self.closed = False
        self.lost = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    def lose_answers(self) -> None:
        """From now on the server hears all and is heard by nobody."""
        self.mute = True
        self.lost.clear()

    def lose_requests(self) -> None:
        """From now on nothing reaches the server."""
        self.deaf = True
        self.lost.clear()

    def cut(self) -> None:
        """Break every connection; those who connect again from now on have a good line."""
        self.mute = self.deaf = False
        for writer in list(self._open):
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody has called."""
        await self._pass_on(reader, writer)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        said: bytes = b"",
        lost: Callable[[], bool] = lambda: False,
    ) -> None:
        """Carry bytes both ways. `said` has been read already; while `lost()`, everything is thrown away."""
        if self.closed:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.to_port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        far_writer.write(said)
        try:
            await asyncio.gather(
                self._carry(reader, far_writer, lambda: self.deaf or lost()),
                self._carry(far_reader, writer, lambda: self.mute or lost()),
            )
        finally:
            self._open -= {writer, far_writer}
            for each in (writer, far_writer):
                each.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost: Callable[[], bool]) -> None:
        try:
            while data := await source.read(_CHUNK_BYTES):
                if lost():
                    self.lost.set()
                    continue
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        sink.transport.abort()


class Switchboard(Line):
    """A line that tells its callers apart by a word in the first that they say, such as a token. It can be cut for
    one of them while the others speak on: then nothing comes through, either way, and nobody is told."""

    def __init__(self, to_port: int, callers: Mapping[str, str]) -> None:
        """`callers`: their names, by the word."""
        super().__init__(to_port)
        self._callers = {word.encode(): name for word, name in callers.items()}
        self._apart: set[str] = set()
        self._lines: dict[asyncio.StreamWriter, str] = {}

    def part(self, caller: str) -> None:
        self._apart.add(caller)

    def join(self, caller: str) -> None:
        """From now on whoever connects has a good line; on the old ones bytes are missing, so they break."""
        self._apart.discard(caller)
        for writer in [writer for writer, name in self._lines.items() if name == caller]:
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = await reader.read(_CHUNK_BYTES)
        caller = next((name for word, name in self._callers.items() if word in said), "")
        self._lines[writer] = caller
        try:
            while caller in self._apart and await reader.read(_CHUNK_BYTES):
                said = b""
            if said:
                await self._pass_on(reader, writer, said=said, lost=lambda: caller in self._apart)
        except OSError:
            pass
        finally:
            del self._lines[writer]
            writer.transport.abort()


L = TypeVar("L", bound=Line)


@asynccontextmanager
async def line_to(port: int) -> AsyncIterator[Line]:
    """A line to a server on this machine, for as long as the block lasts."""
    async with opened(Line(port)) as line:
        yield line


@asynccontextmanager
async def opened(line: L) -> AsyncIterator[L]:
    """Let a line be there for as long as the block lasts."""
    listener = await asyncio.start_server(line.connected, HOST, 0)
    line.port = listener.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        line.closed = True
        listener.close()
        line.cut()
