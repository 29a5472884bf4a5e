"""A file store for simulations without the content of files."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from mendflow.core.model.errors import NOT_STORED
from mendflow.core.model.retention import SweptFiles
from mendflow.core.model.values import FileRef


class ContentlessFileStore:
    """The product's `FileStore`."""

    reason = "there are no files in this world"

    async def keep(self, name: str, chunks: Any, *, sha256: str = "") -> FileRef:
        raise AssertionError(self.reason)

    async def keep_part(self, name: str, chunks: Any, *, sha256: str, offset: int, source: str) -> FileRef:
        raise AssertionError(self.reason)

    async def part_bytes(self, sha256: str, source: str) -> int:
        return 0

    async def keep_many(self, contents: Any) -> None:
        raise AssertionError(self.reason)

    async def keep_path(self, path: str) -> FileRef:
        raise AssertionError(self.reason)

    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        raise AssertionError(self.reason)

    async def path_flaw(self, path: str) -> str:
        return ""

    def read(self, sha256: str, offset: int = 0) -> Any:
        raise AssertionError(self.reason)

    async def clone(self, sha256: str, target: Path) -> bool:
        return False

    async def size(self, sha256: str) -> int | None:
        return None

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        return NOT_STORED

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        return {}

    async def sweep(self, digests: Collection[str], unused_since: int) -> SweptFiles:
        return SweptFiles()

    async def drop_removed(self) -> None:
        pass
