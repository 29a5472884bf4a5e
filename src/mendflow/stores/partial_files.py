"""Files that come over a bad line, piece by piece: what has come stays when the line breaks, and the next try goes on
there.

A partial file belongs to who sends it, so nobody can spoil what another sends. It has one writer at a time, the newest:
an older one may hang on a line that is dead. While it is checked, and when it has become a stored file, it has none."""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from mendflow.core.model.errors import RequestError, TemporarilyUnavailable, TooLarge

KEPT_S: Final = 3_600
"""How long what has come is kept after its last byte."""


class ReceivedFile(NamedTuple):
    """A file that has come whole, and has the digest that was announced."""

    path: Path
    bytes: int


class PartialFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[Path, object] = {}
        self._checked: set[Path] = set()

    def tidy(self) -> None:
        """Remove what nobody has gone on with for long."""
        if not self._folder.is_dir():
            return
        before = time.time() - KEPT_S
        for path in self._folder.iterdir():
            if path not in self._writers and path not in self._checked and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def bytes_of(self, sha256: str, source: str) -> int:
        """How many bytes of a file have come from this source."""
        try:
            return self._path(sha256, source).stat().st_size
        except FileNotFoundError:
            return 0

    @asynccontextmanager
    async def receive(
        self, sha256: str, source: str, chunks: AsyncIterator[bytes], offset: int
    ) -> AsyncIterator[ReceivedFile]:
        """Take what comes from this byte on; in the block the whole file is there, and may be moved away. What has come
        is kept if the chunks break off, and removed if it is wrong or cannot be written."""
        path, writer = self._path(sha256, source), object()
        if path in self._checked:
            raise TemporarilyUnavailable("the file has come, and is being checked; ask for it again")
        self._folder.mkdir(parents=True, exist_ok=True)
        self.tidy()
        self._writers[path] = writer
        try:
            digest = await self._write(path, chunks, offset, writer)
            yield await asyncio.to_thread(_checked, path, sha256, digest, resumed=offset > 0)
        except (OSError, TooLarge):
            if self._writers.get(path) is writer:
                path.unlink(missing_ok=True)  # a full disk has better use for it
            raise
        finally:
            if self._writers.get(path) is writer:
                del self._writers[path]
                self._checked.discard(path)

    async def _write(self, path: Path, chunks: AsyncIterator[bytes], offset: int, writer: object) -> str:
        """Write what comes, and make it durable; its digest, if all of it has come just now."""
        digest = hashlib.sha256()
        with _opened(path) as out:
            if offset > (here := out.seek(0, os.SEEK_END)):
                raise TemporarilyUnavailable(f"only {here} bytes of the file are here; go on there")
            out.seek(offset)
            async for chunk in chunks:
                self._demand_newest(path, writer)
                out.write(chunk)
                digest.update(chunk)
            self._demand_newest(path, writer)
            self._checked.add(path)  # from here on nobody else writes
            out.truncate()
            out.flush()
            await asyncio.to_thread(os.fsync, out.fileno())
        return digest.hexdigest() if offset == 0 else ""

    def _demand_newest(self, path: Path, writer: object) -> None:
        if self._writers.get(path) is not writer:
            raise TemporarilyUnavailable("the file comes over another connection by now")

    def _path(self, sha256: str, source: str) -> Path:
        return self._folder / f"{sha256}-{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def _checked(path: Path, sha256: str, found: str, *, resumed: bool) -> ReceivedFile:
    found = found or _digest_of(path)
    if found == sha256:
        return ReceivedFile(path, path.stat().st_size)
    path.unlink(missing_ok=True)
    wrong = f"the content has the digest {found}, not {sha256} as announced; send it again"
    if resumed:  # a machine that went down may have lost what it had: all of it is asked for again
        raise TemporarilyUnavailable(wrong)
    raise RequestError(wrong)


def _digest_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _opened(path: Path) -> BinaryIO:
    """What has come, or nothing, to be written to at any place."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
