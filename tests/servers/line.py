"""A line between a client and a server on this machine, which can be cut at the worst moment.

Bytes go through as they come, until the line is told to lose those of one direction or to break. So a request can
reach a server whose answer nobody hears, and a client can hear nothing of a request that never arrived."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.to_port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(self._carry(reader, far_writer, "deaf"), self._carry(far_reader, writer, "mute"))
        finally:
            self._open -= {writer, far_writer}
            for each in (writer, far_writer):
                each.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, lost_if: str) -> None:
        try:
            while data := await source.read(_CHUNK_BYTES):
                if getattr(self, lost_if):
                    self.lost.set()
                    continue
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        sink.transport.abort()


@asynccontextmanager
async def line_to(port: int) -> AsyncIterator[Line]:
    """A line to a server on this machine, for as long as the block lasts."""
    line = Line(port)
    listener = await asyncio.start_server(line._connected, HOST, 0)
    line.port = listener.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        line.closed = True
        listener.close()
        line.cut()
