"""What watches need of storage elements. The implementation is chosen in wiring.py."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from mendflow.core.model.data import StorageElement


class ListedFile(msgspec.Struct, frozen=True):
    """A file on an element. `identity` changes when the content does, as far as that can be known without reading
    it."""

    path: str
    bytes: int
    identity: str


class StorageUnavailable(Exception):
    """The element does not answer, or not correctly; the message says why, without any secret."""


class StorageReader(Protocol):
    async def list(self, element: StorageElement, prefix: str) -> Sequence[ListedFile]:
        """All files below a path. Raises StorageUnavailable."""
        ...

    async def read(self, element: StorageElement, path: str) -> tuple[ListedFile, str]:
        """Read a whole file; returns its SHA-256. Raises StorageUnavailable, also if the file changed while it was
        read."""
        ...


class _NoStorage:
    async def list(self, element: StorageElement, prefix: str) -> Sequence[ListedFile]:
        raise StorageUnavailable(f"this server does not look into storage elements, {element.name} included")

    async def read(self, element: StorageElement, path: str) -> tuple[ListedFile, str]:
        raise StorageUnavailable(f"this server does not look into storage elements, {element.name} included")


NO_STORAGE: Final[StorageReader] = _NoStorage()
