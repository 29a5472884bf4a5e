"""The line to a connected domain: how the origin of work speaks with its host.

A call that raises `Unreachable` may or may not have arrived. One that raises `Forbidden`, or another `RequestError`,
was refused, and nothing was done."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from mendflow.core.model.domains import DomainAnswer, DomainRequest


class DomainLine(Protocol):
    async def exchange(self, request: DomainRequest) -> DomainAnswer: ...

    async def has_file(self, sha256: str) -> bool:
        """Whether the host has a file of our works with this content."""
        ...

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes]) -> None:
        """Give the host a file that it has said it misses. It keeps it only if it has this digest."""
        ...

    def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        """A file that an outcome of our works refers to, from this byte on."""
        ...


PeerLines = Callable[[], Mapping[str, DomainLine]]
"""The lines to the domains that are connected now, by name."""


def no_lines() -> Mapping[str, DomainLine]:
    """This server is connected with no other domain."""
    return {}
