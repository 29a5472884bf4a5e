"""The lines to other domains: how the origin of work speaks with its host, and how a line is got. The connections say
where, and with which token; over which protocol, wiring.py decides.

A call that raises `Unreachable` may or may not have arrived. One that raises `Forbidden`, or another `RequestError`,
was refused, and nothing was done."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import Unreachable

Token = Callable[[], Awaitable[str]]


class DomainLine(Protocol):
    async def exchange(self, request: DomainRequest) -> DomainAnswer: ...

    async def missing_from(self, sha256: str) -> int | None:
        """From which byte on the host lacks a file of our works; None if it has all of it."""
        ...

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        """Give the host a file that it has said it misses, from this byte on. It keeps it only if it has this
        digest."""
        ...

    def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        """A file that an outcome of our works refers to, from this byte on."""
        ...


PeerLines = Callable[[], Mapping[str, DomainLine]]
"""The lines to the domains that are connected now, by name."""


def no_lines() -> Mapping[str, DomainLine]:
    """This server is connected with no other domain."""
    return {}


class DomainLines(Protocol):
    def line(self, urls: Sequence[str], token: Token, *, public_only: bool, told: Sequence[str] = ()) -> DomainLine:
        """The line to a domain whose servers are at these addresses: if one does not answer, the next is asked.
        `public_only`: the domain has named them itself, so they must not be private ones. `told` are addresses that its
        servers have told since; they are called where those before take no connection, and are on the same hosts, or
        public."""
        ...

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        """Accept the invitation of the domain at these addresses. Raises `Unreachable`, or what it was refused for."""
        ...


class TellingLine:
    """A line over which each request tells where this server is reached."""

    def __init__(self, line: DomainLine, own_urls: Callable[[], tuple[str, ...]]) -> None:
        self._line = line
        self._own_urls = own_urls

    async def exchange(self, request: DomainRequest) -> DomainAnswer:
        return await self._line.exchange(replace(request, urls=self._own_urls()))

    async def missing_from(self, sha256: str) -> int | None:
        return await self._line.missing_from(sha256)

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        await self._line.put_file(sha256, chunks, offset)

    def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        return self._line.get_file(sha256, offset)


class NoLines:
    """A server that reaches no other domain."""

    def line(self, urls: Sequence[str], token: Token, *, public_only: bool, told: Sequence[str] = ()) -> DomainLine:
        raise Unreachable("this server reaches no other domains")

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        raise Unreachable("this server reaches no other domains")


NO_LINES: Final = NoLines()
