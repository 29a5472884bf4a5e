"""A relay between two servers that cuts each connection after so many bytes, and counts what has passed."""

import asyncio
import contextlib
import threading
from typing import Final, Self

from tests.patience import PATIENCE_S

CHUNK: Final = 64 * 1024


class CuttingLine:
    """`passed` counts the bytes to the server, `returned` those that come back, and `cuts` the connections that were
    cut. A connection is cut after `cut_bytes` in one of the directions."""

    def __init__(self, target_port: int, cut_bytes: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.cut = False
        self.passed = self.returned = self.cuts = 0
        self._cut_bytes = cut_bytes
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
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
        self.cut = True

    def get_good(self) -> None:
        self.cut = False

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        ways = [
            asyncio.ensure_future(self._pass(reader, back, to=True)),
            asyncio.ensure_future(self._pass(there, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in (writer, back):
            with contextlib.suppress(OSError):
                each.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to: bool = False) -> None:
        """Pass on what comes, until it ends, or there is too much of it."""
        left = self._cut_bytes
        with contextlib.suppress(OSError):
            while chunk := await reader.read(min(CHUNK, left)):
                writer.write(chunk)
                await writer.drain()
                left -= len(chunk)
                if to:
                    self.passed += len(chunk)
                else:
                    self.returned += len(chunk)
                if not left:
                    self.cuts += 1
                    return
