"""Where a case is decided about, for whoever is asked about it: the services below may be built anew at any time."""

from mendflow.core.model.ids import CaseId
from mendflow.services.base.cluster import ServerDocument, root_of
from mendflow.services.runtime.server import Server


class CaseLocator:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def id(self) -> str:
        """This very server."""
        return self._server.membership.id

    def here(self, subject: str) -> bool:
        """Whether this server decides about what the subject is named after, or is just taking it up."""
        return self._server.runtime.homes.knows(root_of(subject))

    async def home_of(self, subject: str, *, afresh: bool = False) -> str:
        """The server that decides about it; empty if nobody does, because it is over or never was."""
        return await self._server.runtime.homes.home_of(CaseId(subject), afresh=afresh)

    async def arrived(self, subject: str) -> None:
        """Wait while it is being taken up here."""
        await self._server.runtime.homes.wait_until_loaded(CaseId(subject))

    def find(self, server: str) -> ServerDocument | None:
        return self._server.membership.find(server)

    def living(self) -> list[ServerDocument]:
        """The other servers."""
        return self._server.membership.living()
