"""Files for simulated flows: they have a size and a digest, but no content.

The size is the scene's for a path, a file name or a logical name; otherwise that of the file on this machine, whose
content is never read."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from mendflow.core.model.data import LOGICAL_PREFIX, LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import NotFound
from mendflow.core.model.values import FileRef
from mendflow.services.api.data_operations import DataOperations
from mendflow.sim.contentless_file_store import ContentlessFileStore

ELEMENT = StorageElement(name="grid", url="file:///grid")


class VirtualFileStore(ContentlessFileStore):
    """Knows the sizes of files."""

    reason = "files of a grid have no content"

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes

    async def keep_path(self, path: str) -> FileRef:
        name = Path(path).name
        size = self._sizes.get(path, self._sizes.get(name))
        return FileRef(sha256=_digest(path), bytes=_bytes_here(path) if size is None else size, name=name)

    async def size(self, sha256: str) -> int | None:
        return 0

    async def stored_flaw(self, sha256: str, bytes: int | None = None) -> str:
        return ""


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
