"""How other domains are reached. The connections say where and with which token; over which protocol, wiring.py
decides."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from mendflow.core.model.domains import InvitationAcceptance, InvitationAnswer
from mendflow.core.model.errors import Unreachable
from mendflow.services.domains.line import DomainLine

Token = Callable[[], Awaitable[str]]


class DomainLines(Protocol):
    def line(self, urls: Sequence[str], token: Token, *, public_only: bool) -> DomainLine:
        """The line to a domain whose servers are at these addresses: if one does not answer, the next is asked.
        `public_only`: the domain has named them itself, so they must not be private ones."""
        ...

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        """Accept the invitation of the domain at these addresses. Raises `Unreachable`, or what it was refused for."""
        ...


class NoLines:
    """A server that reaches no other domain."""

    def line(self, urls: Sequence[str], token: Token, *, public_only: bool) -> DomainLine:
        raise Unreachable("this server reaches no other domains")

    async def accept(self, urls: Sequence[str], invitation: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        raise Unreachable("this server reaches no other domains")


NO_LINES: Final = NoLines()
