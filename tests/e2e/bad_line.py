"""A relay between two servers that drops, delays and doubles requests, loses answers, and can be cut.

It speaks as much HTTP as it must: each request has a connection of its own to the server, so that an answer ends where
the connection ends."""

import asyncio
import contextlib
import threading
from random import Random
from typing import Final

from tests.patience import PATIENCE_S

LINE_MAX: Final = 64 * 1024
CHUNK: Final = 64 * 1024


class BadLine:
    """`drop`, `lose`, `late` and `double` are shares of all requests: those that never arrive, those whose answers do
    not, those that take up to `late_s` longer, and those that arrive twice."""

    def __init__(self, target_port: int, seed: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.drop = self.lose = self.late = self.double = 0.0
        self.late_s = 1.0
        self.cut = False
        self.counts: dict[str, int] = {}
        self._chance = Random(seed)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "BadLine":
        self._thread.start()
        assert self._ready.wait(20), "the relay does not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get_bad(self) -> None:
        self.drop, self.lose, self.late, self.double = 0.05, 0.05, 0.1, 0.1

    def get_good(self) -> None:
        self.drop = self.lose = self.late = self.double = 0.0
        self.cut = False

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LINE_MAX))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()

    def _is(self, what: str, share: float) -> bool:
        happens = self._chance.random() < share
        if happens:
            self.counts[what] = self.counts.get(what, 0) + 1
        return happens

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while (request := await _request(reader)) is not None:
                if not await self._pass_on(request, writer):
                    break
        writer.close()

    async def _pass_on(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection stays open."""
        if self.cut or self._is("dropped", self.drop):
            return False
        if self._is("late", self.late):
            await asyncio.sleep(self._chance.uniform(0, self.late_s))
        if self._is("doubled", self.double):
            self._loop.create_task(self._nobody_hears(request))
        deaf = self._is("answers lost", self.lose)
        there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
        try:
            back.write(request)
            while chunk := await there.read(CHUNK):
                if self.cut or deaf:
                    return False
                writer.write(chunk)
                await writer.drain()
        finally:
            back.close()
        return False

    async def _nobody_hears(self, request: bytes) -> None:
        with contextlib.suppress(OSError):
            await asyncio.sleep(self._chance.uniform(0, self.late_s))
            there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
            back.write(request)
            while await there.read(CHUNK):
                pass
            back.close()


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """A whole request, which asks for the connection to be closed after it; None: there is no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head[:-4].split(b"\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
    kept = [line for line in lines[1:] if line.partition(b":")[0].strip().lower() != b"connection"]
    head = b"\r\n".join([lines[0], *kept, b"Connection: close"]) + b"\r\n\r\n"
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        return head + await _chunks(reader)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    whole = b""
    while True:
        size = await reader.readuntil(b"\r\n")
        whole += size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)
        if int(size.split(b";")[0], 16) == 0:
            return whole
