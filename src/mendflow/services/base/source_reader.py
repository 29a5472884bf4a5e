"""Reads a source of conditions. Services know neither HTTP nor databases; wiring.py gives them an implementation."""

from typing import Final, Protocol

import msgspec

from mendflow.core.model.sources import SourceKind
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

PLACEHOLDER: Final = lazy_pattern(r"\{([A-Za-z_]\w*(?:\.\w+)*)\}")
"""A path of the context in an address or a query."""


class SourceAway(Exception):
    """The source gives no value now; the message says why, without its secret."""


class SourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a source. `parameters` are the values of the paths in braces, by path."""

    kind: SourceKind
    address: str
    query: str
    secret: str
    timeout_ms: int
    parameters: dict[str, Value]

    def __repr__(self) -> str:
        return f"SourceRequest({self.kind!r})"  # keeps the secret out of logs


class SourceReader(Protocol):
    def check(self, kind: SourceKind, address: str, query: str) -> None:
        """Raises InvalidRequest if this server may not, or could not, read such a source."""
        ...

    async def read(self, request: SourceRequest) -> Value:
        """The value, decoded if it is JSON. Raises SourceAway."""
        ...


class NoSourceReader:
    def check(self, kind: SourceKind, address: str, query: str) -> None:
        pass

    async def read(self, request: SourceRequest) -> Value:
        raise SourceAway("this server has no way out")


NO_SOURCE_READER = NoSourceReader()
