"""What is wanted of storage elements to watch them. Whoever implements it is chosen in wiring.py."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from mendflow.core.model.data import StorageElement


class Seen(msgspec.Struct, frozen=True):
    """A file of an element. `identity` changes when the content does, as far as that can be told without reading."""

    path: str
    bytes: int
    identity: str


class NotSeen(Exception):
    """The element does not answer, or not as it should; the sentence says why, without any secret."""


class Elements(Protocol):
    async def list(self, element: StorageElement, prefix: str) -> Sequence[Seen]:
        """All files below a path. Raises NotSeen."""
        ...

    async def read(self, element: StorageElement, path: str) -> tuple[Seen, str]:
        """A file, read whole, and its SHA-256. Raises NotSeen, also if it changed while it was read."""
        ...


class _NoElements:
    async def list(self, element: StorageElement, prefix: str) -> Sequence[Seen]:
        raise NotSeen(f"this server does not look into storage elements, {element.name} included")

    async def read(self, element: StorageElement, path: str) -> tuple[Seen, str]:
        raise NotSeen(f"this server does not look into storage elements, {element.name} included")


NO_ELEMENTS: Final[Elements] = _NoElements()
