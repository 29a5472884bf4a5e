"""Which servers have more jobs than slots, and how they announce it.

A server whose queue does not get empty nudges the others; each heartbeat says the same, in case a nudge was lost. A
signal is only a reason to ask: a server that asked in vain does not ask again before there is a new signal."""

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.scheduling.queue import JobQueue
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import Membership, Peers, ServerDocument
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.pilot_records import PilotRecord

WORK_EVERY_MS = 100
WORK_AFTER_MS = 10
"""How long this server's own pilots have to take new jobs before others are told."""


class WorkSignal(NamedTuple):
    beat: int
    nudges: int


class WorkSignals:
    """What other servers have announced of their work."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._nudges: dict[str, WorkSignal] = {}

    def on_nudge(self, server: str) -> None:
        found = self._membership.find(server)
        before = self._nudges.get(server, WorkSignal(0, 0))
        self._nudges[server] = WorkSignal(found.beat if found else 0, before.nudges + 1)

    def of(self, server: ServerDocument) -> WorkSignal:
        """The newest signal of this server."""
        return WorkSignal(server.beat, self._nudges.get(server.id, WorkSignal(0, 0)).nudges)

    def best_donor(self, declined: dict[str, WorkSignal]) -> ServerDocument | None:
        """The server to ask for jobs: of those with a signal that was not followed in vain, the one with the most
        jobs."""
        able = [
            server
            for server in self._membership.live_servers()
            if self._has_work(server) and declined.get(server.id) != self.of(server)
        ]
        return max(able, key=lambda server: (server.waiting, server.id), default=None)

    def _has_work(self, server: ServerDocument) -> bool:
        nudged = self._nudges.get(server.id)
        return server.waiting > 0 or (nudged is not None and nudged.beat >= server.beat)


class Nudges:
    """What this server announces to others: its own work, and that it has something for their pilots."""

    def __init__(self, membership: Membership, peers: Peers, queue: JobQueue, clock: Clock) -> None:
        self._membership = membership
        self._peers = peers
        self._queue = queue
        self._clock = clock
        self._summoned_pilots: dict[str, set[PilotId]] = {}
        self._announcing = False
        self._announced_at: Instant = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        await cancel_tasks(*self._tasks)

    def summon(self, pilot: PilotRecord) -> None:
        """There is an order for a pilot whose held request is at another server."""
        if not self._summoned_pilots:
            asyncio.get_running_loop().call_soon(self._summon_all)
        self._summoned_pilots.setdefault(pilot.front, set()).add(pilot.id)

    def work_waits(self) -> None:
        """A job was put into the queue."""
        if not self._announcing and self._membership.live_servers():
            self._announcing = True
            self._run_in_background(self._announce_work())

    async def _announce_work(self) -> None:
        await self._clock.sleep(max(WORK_AFTER_MS, self._announced_at + WORK_EVERY_MS - self._clock.now()))
        self._announcing = False
        if len(self._queue):
            self._announced_at = self._clock.now()
            for server in self._membership.live_servers():
                self._send(server, [], work=True)

    def _summon_all(self) -> None:
        summoned, self._summoned_pilots = self._summoned_pilots, {}
        for front, pilots in summoned.items():
            if (server := self._membership.find(front)) is not None:
                self._send(server, sorted(pilots), work=False)

    def _send(self, server: ServerDocument, pilots: list[PilotId], *, work: bool) -> None:
        self._run_in_background(self._peers.nudge(server, pilots=pilots, work=work, by=self._membership.id))

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
