"""Which servers have more jobs than slots, and how they say so.

A server whose queue does not get empty nudges the others; each beat says the same, for whom a nudge did not reach. A
sign is only a reason to ask: whoever asks in vain does not ask again before there is a new one."""

import asyncio
from typing import NamedTuple

from mendflow.core.model.ids import PilotId
from mendflow.core.scheduling.queue import Queue
from mendflow.services.cluster.contract import Membership, Neighbours, ServerDocument
from mendflow.services.pilot_book import PilotRecord

WORK_EVERY_S = 0.1
WORK_AFTER_S = 0.01
"""Own pilots have so long to take what comes."""


class Sign(NamedTuple):
    beat: int
    nudges: int


class WorkSigns:
    """What others have said of their work."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._nudges: dict[str, Sign] = {}

    def nudged(self, server: str) -> None:
        found = self._membership.find(server)
        before = self._nudges.get(server, Sign(0, 0))
        self._nudges[server] = Sign(found.beat if found else 0, before.nudges + 1)

    def of(self, server: ServerDocument) -> Sign:
        """The newest sign of this server's work."""
        return Sign(server.beat, self._nudges.get(server.id, Sign(0, 0)).nudges)

    def donor(self, declined: dict[str, Sign]) -> ServerDocument | None:
        """The server to ask for jobs: of those with a sign that was not followed in vain, the one with most of them."""
        able = [
            server
            for server in self._membership.living()
            if self._has_work(server) and declined.get(server.id) != self.of(server)
        ]
        return max(able, key=lambda server: (server.waiting, server.id), default=None)

    def _has_work(self, server: ServerDocument) -> bool:
        nudged = self._nudges.get(server.id)
        return server.waiting > 0 or (nudged is not None and nudged.beat >= server.beat)


class Nudges:
    """What this server says to others: of its own work, and that it has something to say to their pilots."""

    def __init__(self, membership: Membership, neighbours: Neighbours, queue: Queue) -> None:
        self._membership = membership
        self._neighbours = neighbours
        self._queue = queue
        self._summoned: dict[str, set[PilotId]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._told_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def summon(self, pilot: PilotRecord) -> None:
        """There is an order for a pilot whose held request lies at another server."""
        if not self._summoned:
            asyncio.get_running_loop().call_soon(self._summon_all)
        self._summoned.setdefault(pilot.front, set()).add(pilot.id)

    def work_waits(self) -> None:
        """Something was put into the queue."""
        if self._timer is None and self._membership.living():
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(WORK_AFTER_S, self._told_at + WORK_EVERY_S - loop.time()), self._tell)

    def _tell(self) -> None:
        self._timer = None
        if len(self._queue):
            self._told_at = asyncio.get_running_loop().time()
            for server in self._membership.living():
                self._send(server, [], work=True)

    def _summon_all(self) -> None:
        summoned, self._summoned = self._summoned, {}
        for front, pilots in summoned.items():
            if (server := self._membership.find(front)) is not None:
                self._send(server, sorted(pilots), work=False)

    def _send(self, server: ServerDocument, pilots: list[PilotId], *, work: bool) -> None:
        nudge = self._neighbours.nudge(server, pilots=pilots, work=work, by=self._membership.id)
        task = asyncio.ensure_future(nudge)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
