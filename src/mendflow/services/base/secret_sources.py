"""What the services need to know of where secrets come from: the key that those in the store are encrypted with, and
secrets that the machine of the server has itself."""

import secrets
from typing import Protocol

from mendflow.core.model.secrets import FoundSecret


class SecretSources(Protocol):
    @property
    def key_place(self) -> str:
        """Where the key is, for people."""
        ...

    def key(self, *, create: bool = False) -> str:
        """The key; empty if there is none, unless it is to be made."""
        ...

    def find(self, name: str) -> FoundSecret | None:
        """A secret of the machine itself."""
        ...

    def names(self) -> dict[str, str]:
        """Those that can be listed, each with where it is."""
        ...


class MemorySecretSources:
    """A key that lives as long as the process, and no secrets besides those in the store."""

    key_place = "the memory of the server"

    def __init__(self) -> None:
        self._key = secrets.token_hex(32)

    def key(self, *, create: bool = False) -> str:
        return self._key

    def find(self, name: str) -> FoundSecret | None:
        return None

    def names(self) -> dict[str, str]:
        return {}
