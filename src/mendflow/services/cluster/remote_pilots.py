"""What a server knows of pilots that are connected to other servers: enough to say whether any pilot could take a job.

Every few seconds each server asks the others for their pilots. So a job waits, and does not fail, when the only pilot
that is large enough is connected to another server; rules see the same capacity, whichever server asks them; and pilots
find the caches of their neighbours, whichever servers those are connected to."""

import asyncio
import logging

from mendflow.core.model.views import PilotView
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import Membership, Peers, PeerUnavailable, ServerDocument
from mendflow.services.base.contracts import Clock
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler

log = logging.getLogger("mendflow.servers")

REFRESH_MS_MAX = 3_000


class RemotePilots:
    def __init__(self, membership: Membership, peers: Peers, clock: Clock, meta: PilotScheduler) -> None:
        self._membership = membership
        self._peers = peers
        self._clock = clock
        self._meta = meta
        self._refresh_ms = min(meta.leases.lease_ms // 4, REFRESH_MS_MAX)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="acquaintance")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.gather(*map(self.ask, self._membership.live_servers()))
            except Exception:  # whatever one server answers, the next round may succeed
                log.exception("pilots of other servers could not be read; trying again")
            await self._clock.sleep(self._refresh_ms)

    async def ask(self, server: ServerDocument) -> None:
        """Learn the pilots that are connected to this server."""
        try:
            async with asyncio.timeout(self._refresh_ms / 1000):
                views = await self._peers.pilots(server)
                cards = await self._peers.cards(server)
        except (PeerUnavailable, TimeoutError):
            return
        for view in views:
            if not view.front and view.state == "active":
                self._note_pilot(view, server.id)
        for card in cards:
            known = self._meta.pilots.get(card.neighbour.pilot)
            if known is not None and known.front == server.id:
                self._meta.caches.neighbourhood.meet(card)

    def _note_pilot(self, view: PilotView, server: str) -> None:
        """Record the pilot, unless we have heard from it more recently ourselves."""
        meta, seen_at = self._meta, self._clock.now() - view.seen_ms_ago
        known = meta.pilots.get(view.id)
        if known is None or known.seen_at < seen_at:
            meta.pilot(view.id).meet(view, server, seen_at)
            meta.leases.touch(view.id, now=meta.steady_ms_now())
            self._count_idle(view)

    def _count_idle(self, view: PilotView) -> None:
        """An idle pilot of another server may have the data of jobs that live here."""
        meta, now = self._meta, self._clock.now()
        if not view.free_slots:
            meta.queue.mark_busy(view.id)
        elif meta.caches.holds(view.id):
            offer = meta.pilot(view.id).offer((), rounds=1, now=now, idle_ms=2 * self._refresh_ms)
            meta.queue.expect(offer, view.free_slots, now)
