"""Very many viewers of one server: each holds a stream of events open, as the app in a browser does.

They are connections of one process of their own (`python -m bench.web.viewers URL COUNT`), which tells once a line has
come on its standard input how late the ends of cases came to each of them, and how often one had to read all anew."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

AT_ONCE = 50
PATIENCE_S = 300
_AT = re.compile(rb'"at":(\d+),"kind":"case"[^\n]*"state":"(?:completed|failed)"')


class Told(msgspec.Struct):
    """`late_ms`: of each end of a case, at each viewer. `resets`: how often a viewer's place was gone."""

    viewers: int = 0
    late_ms: list[float] = []
    resets: int = 0
    bytes: int = 0
    cut: int = 0


class Crowd:
    def __init__(self, url: str, count: int) -> None:
        self._place = urlsplit(url)
        self._count = count
        self.told = Told()

    async def gather(self) -> list["asyncio.Task[None]"]:
        """All of them connected."""
        tasks = []
        for begin in range(0, self._count, AT_ONCE):
            opened = [self._open() for _ in range(min(AT_ONCE, self._count - begin))]
            for reader, writer in await asyncio.gather(*opened):
                tasks.append(asyncio.create_task(self._read(reader, writer)))
        self.told.viewers = len(tasks)
        return tasks

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._place.hostname or "", self._place.port or 80
        reader, writer = await asyncio.open_connection(host, port)
        asked = f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n"
        writer.write(asked.encode())
        first = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        assert b" 200 " in first.splitlines()[0], first
        return reader, writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 18):
            now, told = time.time() * 1000, self.told
            told.bytes += len(piece)
            told.resets += piece.count(b"event: reset")
            told.late_ms += [now - int(found[1]) for found in _AT.finditer(piece)]
        self.told.cut += 1
        writer.close()


async def _main(url: str, count: int) -> None:
    crowd = Crowd(url, count)
    tasks = await crowd.gather()
    print("connected", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(msgspec.json.encode(crowd.told).decode(), flush=True)
        crowd.told = Told(viewers=len(tasks))


class CrowdProcess(NamedTuple):
    """The process of the viewers."""

    process: "subprocess.Popen[str]"

    def told(self) -> Told:
        """What they have seen since the last time."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("tell\n")
        self.process.stdin.flush()
        return msgspec.json.decode(self.process.stdout.readline(), type=Told)


@contextmanager
def watching(url: str, count: int) -> Iterator[CrowdProcess]:
    words = [sys.executable, "-m", "bench.web.viewers", url, str(count)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().strip() == "connected"
            yield CrowdProcess(process)
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
