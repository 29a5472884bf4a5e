"""How other domains are reached. The connections say where and with which token; over which protocol, wiring.py
decides."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from mendflow.core.model.domains import DomainAnswer, DomainRequest, InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import Unreachable
from mendflow.services.domains.line import DomainLine

Token = Callable[[], Awaitable[str]]


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

    async def has_file(self, sha256: str) -> bool:
        return await self._line.has_file(sha256)

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes]) -> None:
        await self._line.put_file(sha256, chunks)

    def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        return self._line.get_file(sha256, offset)


class NoLines:
    """A server that reaches no other domain."""

    def line(self, urls: Sequence[str], token: Token, *, public_only: bool, told: Sequence[str] = ()) -> DomainLine:
        raise Unreachable("this server reaches no other domains")

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        raise Unreachable("this server reaches no other domains")


NO_LINES: Final = NoLines()
