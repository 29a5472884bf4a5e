"""Metrics of all live servers on the store. A server that does not answer in time is left out: they are for people, and
nothing is decided from them."""

import asyncio
from typing import Protocol

from mendflow.core.model.stats import StatsView
from mendflow.services.api.metrics.snapshot import StatsCollector
from mendflow.services.base.cluster import PeerUnavailable, ServerDocument
from mendflow.services.cluster.overview import PATIENCE_S
from mendflow.services.runtime.server import Server


class PeerStats(Protocol):
    """Asks other servers for their metrics."""

    async def stats(self, server: ServerDocument, running: int) -> StatsView:
        """Raises PeerUnavailable."""
        ...


async def collect_all_stats(server: Server, elsewhere: PeerStats | None, *, running: int) -> list[StatsView]:
    """The metrics of all servers, this one first."""
    own = await StatsCollector(server).look(running=running)
    if elsewhere is None:
        return [own]
    others = await asyncio.gather(*(_of(elsewhere, each, running) for each in server.membership.live_servers()))
    return [own, *(each for each in others if each is not None)]


async def _of(elsewhere: PeerStats, server: ServerDocument, running: int) -> StatsView | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await elsewhere.stats(server, running)
    except (PeerUnavailable, TimeoutError):
        return None
