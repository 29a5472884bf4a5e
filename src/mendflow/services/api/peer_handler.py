"""Answers requests of other servers: the other end of `Peers`."""

from collections.abc import AsyncIterator

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.ids import CaseId, PilotId
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.services.api.archive.service import ArchiveService
from mendflow.services.api.metrics.snapshot import StatsCollector
from mendflow.services.runtime.server import Server


class PeerHandler:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def sync(self, request: SyncRequest, who: str) -> SyncAnswer:
        assert request.front, "an exchange that is passed on says who does so"
        return await self._server.runtime.exchange.sync(request, who)

    def nudged(self, pilots: list[PilotId], *, work: bool, by: str) -> None:
        self._server.runtime.exchange.on_nudge(pilots, work=work, by=by)

    def pilots(self) -> list[PilotView]:
        """The pilots that are connected to this server, or hold attempts of its jobs."""
        return self._server.runtime.meta.pilot_views()

    def cards(self) -> list[CacheAdvert]:
        """How the pilots that are connected to this server share their caches."""
        meta = self._server.runtime.meta
        return meta.caches.cards(meta.own_pilots())

    async def stats(self, running: int) -> StatsView:
        return await StatsCollector(self._server).look(running=running)

    def archive(self, root: CaseId) -> AsyncIterator[bytes]:
        """A tree that lives here, for a server that makes an archive."""
        return ArchiveService(self._server).give(root)
