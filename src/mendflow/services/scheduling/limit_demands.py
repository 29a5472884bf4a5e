"""What the waiting jobs of a server ask of named limits, told to the other servers and to people."""

from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.core.model.named_limits import LimitDemand
from mendflow.core.scheduling.queue import JobQueue
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.scheduling.limit_store import LimitStore

REPEATED_EVERY_MS: Final = 5_000
"""How often a server repeats what it has said of its waiting jobs."""


class LimitDemands:
    """`said` is what this server has said last, by limit."""

    def __init__(self, store: LimitStore, queue: JobQueue, homes: HomeRegistry, clock: Clock) -> None:
        self._store = store
        self._queue = queue
        self._homes = homes
        self._clock = clock
        self.said: dict[str, LimitDemand] = {}

    def now(self) -> dict[str, LimitDemand]:
        """How many jobs of this server wait for each limit, and since when."""
        found: dict[str, LimitDemand] = {}
        now = self._clock.now()
        for group in self._queue.limited():
            for name, _ in group.needs.named_limits:
                before = found.get(name)
                jobs, since = group.jobs, group.since
                if before is not None:
                    jobs, since = jobs + before.jobs, min(since, before.since)
                found[name] = LimitDemand(jobs=jobs, since=since, at=now)
        return found

    async def say(self, demands: dict[str, LimitDemand]) -> None:
        """Tell the other servers, and people, what waits here, if that has changed or is long ago."""
        now = self._clock.now()
        news: dict[str, LimitDemand | None] = {name: None for name in self.said if name not in demands}
        for name, demand in demands.items():
            said = self.said.get(name)
            if said is None or (said.jobs, said.since) != (demand.jobs, demand.since) or _is_old(said, now):
                news[name] = demand
        await self._store.say_demand(self._homes.server, news, now)
        for name, each in news.items():
            if each is None:
                del self.said[name]
            else:
                self.said[name] = each


def _is_old(said: LimitDemand, now: Instant) -> bool:
    return now - said.at >= REPEATED_EVERY_MS
