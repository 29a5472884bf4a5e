"""All servers on a store, and all pilots, for people. A server that does not answer in time is left out: nothing is
decided from this."""

import asyncio

import msgspec

from mendflow.core.model.views import Health, PilotView, ServerView
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import Peers, PeerUnavailable, ServerDocument
from mendflow.services.base.membership import OwnMembership
from mendflow.services.cluster.membership import ServerMembership

PATIENCE_S = 2.0


class ClusterOverview:
    def __init__(self, membership: OwnMembership, peers: Peers, meter: Meter) -> None:
        self._membership = membership
        self._peers = peers
        self._meter = meter

    def servers(self, health: Health) -> list[ServerView]:
        """This server first, with its current load instead of that of its last heartbeat."""
        membership = self._membership
        own = membership.find(membership.id)
        assert own is not None, "a server knows itself"
        current = msgspec.structs.replace(
            own,
            version=health.version,
            cases=health.cases_live,
            waiting=health.jobs_waiting,
            running=health.jobs_running,
            pilots=health.pilots,
        )
        views = [_view(current, 0, silent_ms=1, own=True)]
        if isinstance(membership, ServerMembership):
            now, silent_ms = self._meter(), membership.terms.promise_ms
            views += [
                _view(peer.document, now - peer.moved_at, silent_ms=silent_ms)
                for _, peer in sorted(membership.peer_states.items())
            ]
        return views

    async def pilots(self, own: list[PilotView]) -> list[PilotView]:
        """Each pilot once, as the server that it is connected to sees it, with what it runs for all servers."""
        me, living = self._membership.id, self._membership.live_servers()
        found = {me: own}
        if living:
            answers = await asyncio.gather(*map(self._pilots_of, living))
            found |= {server.id: views for server, views in zip(living, answers, strict=True)}
        known: dict[str, list[PilotView]] = {}
        for server, views in found.items():
            for view in views:
                at = msgspec.structs.replace(view, front=view.front or (server if living else ""))
                known.setdefault(view.id, []).append(at)
        return [_merged(known[id]) for id in sorted(known)]

    async def _pilots_of(self, server: ServerDocument) -> list[PilotView]:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._peers.pilots(server)
        except (PeerUnavailable, TimeoutError):
            return []


def _view(server: ServerDocument, beat_ms_ago: int, *, silent_ms: int, own: bool = False) -> ServerView:
    if server.ended:  # another server has its cases by now
        server = msgspec.structs.replace(server, cases=0, waiting=0, running=0, pilots=0)
    return ServerView(
        id=server.id,
        url=server.url,
        host=server.host,
        version=server.version,
        state="ended" if server.ended else "silent" if beat_ms_ago >= silent_ms else "alive",
        beat_ms_ago=beat_ms_ago,
        started_at=server.started_at,
        cases=server.cases,
        waiting=server.waiting,
        running=server.running,
        pilots=server.pilots,
        own=own,
    )


def _merged(views: list[PilotView]) -> PilotView:
    """The server that heard from it last knows best; what it runs, each home knows for its own jobs."""
    best = min(views, key=lambda view: view.seen_ms_ago if view.seen_ms_ago >= 0 else 1 << 60)
    running = sorted({job for view in views for job in view.running})
    return msgspec.structs.replace(
        best,
        running=running,
        free_slots=max(0, best.capacity.slots - len(running)),
        busy_slots=sum(view.busy_slots for view in views),
    )
