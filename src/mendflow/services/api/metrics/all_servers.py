"""The numbers of all living servers on the store. Whoever does not answer in time is left out: they are for people, and
nothing is decided from them."""

import asyncio
from typing import Protocol

from mendflow.core.model.stats import StatsView
from mendflow.services.api.metrics.snapshot import Census
from mendflow.services.base.cluster import NeighbourAway, ServerDocument
from mendflow.services.cluster.overview import PATIENCE_S
from mendflow.services.runtime.server import House


class Elsewhere(Protocol):
    """The way to other servers' numbers."""

    async def stats(self, server: ServerDocument, running: int) -> StatsView:
        """Raises NeighbourAway."""
        ...


async def look_everywhere(house: House, elsewhere: Elsewhere | None, *, running: int) -> list[StatsView]:
    """This server first."""
    own = await Census(house).look(running=running)
    if elsewhere is None:
        return [own]
    others = await asyncio.gather(*(_of(elsewhere, server, running) for server in house.membership.living()))
    return [own, *(each for each in others if each is not None)]


async def _of(elsewhere: Elsewhere, server: ServerDocument, running: int) -> StatsView | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await elsewhere.stats(server, running)
    except (NeighbourAway, TimeoutError):
        return None
