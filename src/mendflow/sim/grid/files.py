"""Files for simulated flows: they have a size and a digest, but no content.

The size is the scene's for a path, a file name or a logical name; otherwise that of the file on this machine, whose
content is never read."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mendflow.core.model.data import LOGICAL_PREFIX, LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import NotFound
from mendflow.core.model.retention import SweptFiles
from mendflow.core.model.values import FileRef
from mendflow.services.api.data_operations import DataOperations

ELEMENT = StorageElement(name="grid", url="file:///grid")


class VirtualFileStore:
    """The product's `FileStore`."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes

    async def keep(self, name: str, chunks: Any, *, sha256: str = "") -> FileRef:
        raise AssertionError("files of a grid have no content")

    async def keep_part(self, name: str, chunks: Any, *, sha256: str, offset: int, source: str) -> FileRef:
        raise AssertionError("files of a grid have no content")

    async def part_bytes(self, sha256: str, source: str) -> int:
        return 0

    async def keep_many(self, contents: Any) -> None:
        raise AssertionError("files of a grid have no content")

    async def keep_path(self, path: str) -> FileRef:
        name = Path(path).name
        size = self._sizes.get(path, self._sizes.get(name))
        return FileRef(sha256=_digest(path), bytes=_bytes_here(path) if size is None else size, name=name)

    async def keep_linked(self, name: str, link: str, sha256: str) -> FileRef:
        raise AssertionError("files of a grid have no content")

    async def path_flaw(self, path: str) -> str:
        return ""

    def read(self, sha256: str, offset: int = 0) -> Any:
        raise AssertionError("files of a grid have no content")

    async def clone(self, sha256: str, target: Path) -> bool:
        return False

    async def size(self, sha256: str) -> int | None:
        return 0

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        return ""

    async def stored_bytes(self, digests: Collection[str]) -> dict[str, int]:
        return {}

    async def sweep(self, digests: Collection[str], unused_since: int) -> SweptFiles:
        return SweptFiles()

    async def drop_removed(self) -> None:
        pass


async def register_files(data: DataOperations, sizes: Mapping[str, int]) -> None:
    """Add the logical files of a scene to the product's catalogue."""
    names = [name for name in sizes if name.startswith(LOGICAL_PREFIX)]
    if names:
        await data.put_element(ELEMENT, who="grid")
    for name in names:
        place = (Replica(element=ELEMENT.name),)
        file = LogicalFile(
            name=name.removeprefix(LOGICAL_PREFIX), sha256=_digest(name), bytes=sizes[name], replicas=place
        )
        await data.add_data(file, who="grid")


def _bytes_here(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise NotFound(f"{path} cannot be found ({error.strerror}); give its size") from None


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
