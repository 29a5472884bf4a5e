"""Finds the server that decides about a case. It asks the server for its current services each time, because they may
be rebuilt at any time."""

from mendflow.core.model.ids import CaseId
from mendflow.services.base.cluster import ServerDocument, root_of
from mendflow.services.runtime.server import Server


class CaseLocator:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def id(self) -> str:
        """The id of this server."""
        return self._server.membership.id

    def here(self, subject: str) -> bool:
        """Whether this server decides about the subject's case, or is loading it."""
        return self._server.runtime.homes.knows(root_of(subject))

    async def home_of(self, subject: str, *, afresh: bool = False) -> str:
        """The server that decides about it; empty if there is none, because the case is over or never existed."""
        return await self._server.runtime.homes.home_of(CaseId(subject), afresh=afresh)

    async def arrived(self, subject: str) -> None:
        """Wait while this server is loading it."""
        await self._server.runtime.homes.wait_until_loaded(CaseId(subject))

    def find(self, server: str) -> ServerDocument | None:
        return self._server.membership.find(server)

    def live_servers(self) -> list[ServerDocument]:
        """The other live servers."""
        return self._server.membership.live_servers()
