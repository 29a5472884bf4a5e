"""What is wanted of storage elements to watch them. Whoever implements it is chosen in wiring.py."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from mendflow.core.model.data import StorageElement


class ListedFile(msgspec.Struct, frozen=True):
    """A file of an element. `identity` changes when the content does, as far as that can be told without reading."""

    path: str
    bytes: int
    identity: str


class StorageUnavailable(Exception):
    """The element does not answer, or not as it should; the sentence says why, without any secret."""


class StorageReader(Protocol):
    async def list(self, element: StorageElement, prefix: str) -> Sequence[ListedFile]:
        """All files below a path. Raises NotSeen."""
        ...

    async def read(self, element: StorageElement, path: str) -> tuple[ListedFile, str]:
        """A file, read whole, and its SHA-256. Raises NotSeen, also if it changed while it was read."""
        ...


class _NoStorage:
    async def list(self, element: StorageElement, prefix: str) -> Sequence[ListedFile]:
        raise StorageUnavailable(f"this server does not look into storage elements, {element.name} included")

    async def read(self, element: StorageElement, path: str) -> tuple[ListedFile, str]:
        raise StorageUnavailable(f"this server does not look into storage elements, {element.name} included")


NO_STORAGE: Final[StorageReader] = _NoStorage()
