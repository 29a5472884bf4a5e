"""What a server does when another one asks: the other end of `Neighbours`."""

from collections.abc import AsyncIterator

from mendflow.core.model.data import CacheCard
from mendflow.core.model.ids import CaseId, PilotId
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.services.api.archive.desk import ArchiveDesk
from mendflow.services.api.metrics.snapshot import Census
from mendflow.services.runtime.server import House


class Counterpart:
    def __init__(self, house: House) -> None:
        self._house = house

    async def sync(self, request: SyncRequest, who: str) -> SyncAnswer:
        assert request.front, "an exchange that is passed on says who does so"
        return await self._house.services.exchange.sync(request, who)

    def nudged(self, pilots: list[PilotId], *, work: bool, by: str) -> None:
        self._house.services.exchange.nudged(pilots, work=work, by=by)

    def pilots(self) -> list[PilotView]:
        """Those that speak to this server, or have something of it."""
        return self._house.services.meta.pilot_views()

    def cards(self) -> list[CacheCard]:
        """How the caches of those that speak to this server are shared."""
        meta = self._house.services.meta
        return meta.caches.cards(meta.pilots_here())

    async def stats(self, running: int) -> StatsView:
        return await Census(self._house).look(running=running)

    def archive(self, root: CaseId) -> AsyncIterator[bytes]:
        """A tree that lives here, for whoever puts archives together."""
        return ArchiveDesk(self._house).give(root)
