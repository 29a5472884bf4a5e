"""A file store that remembers why it cannot store files now.

A pilot whose files are refused because the disk is full tries again and again, and its job does not end meanwhile. So
the reason is kept here, for whoever asks why nothing goes on."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.core.model.retention import SweptFiles
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Clock, FileStore

FORGOTTEN_MS: Final = 60_000
"""A problem that nobody met for so long is taken to be over: whoever met it asks again every second. That another file
was stored proves nothing: on a disk that is nearly full a small file finds room, and a large one does not."""


class WatchedFileStore:
    """`on_problem` is called when files are refused that could be stored before."""

    def __init__(self, files: FileStore, clock: Clock, on_problem: Callable[[], None]) -> None:
        self._files = files
        self._clock = clock
        self._on_problem = on_problem
        self._problem = ""
        self.problem_since: Instant = 0
        self._met_at: Instant = 0

    @property
    def problem(self) -> str:
        """Why no file can be stored now; empty if nothing is known against it."""
        return self._problem if self._clock.now() - self._met_at < FORGOTTEN_MS else ""

    @contextmanager
    def _watching(self) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable as error:
            is_new = not self.problem
            self._problem, self._met_at = error.message, self._clock.now()
            if is_new:
                self.problem_since = self._met_at
                self._on_problem()
            raise

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        with self._watching():
            return await self._files.keep(name, chunks, sha256=sha256)

    async def keep_part(
        self, name: str, chunks: AsyncIterator[bytes], *, sha256: str, offset: int, source: str
    ) -> FileRef:
        with self._watching():
            return await self._files.keep_part(name, chunks, sha256=sha256, offset=offset, source=source)

    async def part_bytes(self, sha256: str, source: str) -> int:
        return await self._files.part_bytes(sha256, source)

    async def keep_many(self, contents: Mapping[str, bytes]) -> None:
        with self._watching():
            await self._files.keep_many(contents)

    async def keep_path(self, path: str) -> FileRef:
        with self._watching():
            return await self._files.keep_path(path)

    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        with self._watching():
            return await self._files.keep_linked(name, link, sha256)

    async def path_flaw(self, path: str) -> str:
        return await self._files.path_flaw(path)

    def read(self, sha256: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        return self._files.read(sha256, offset)

    async def clone(self, sha256: str, target: Path) -> bool:
        return await self._files.clone(sha256, target)

    async def size(self, sha256: str) -> int | None:
        return await self._files.size(sha256)

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        return await self._files.stored_flaw(sha256, bytes)

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        return await self._files.stored_bytes(digests)

    async def sweep(self, digests: Collection[str], unused_since: Instant) -> SweptFiles:
        return await self._files.sweep(digests, unused_since)

    async def drop_removed(self) -> None:
        await self._files.drop_removed()
