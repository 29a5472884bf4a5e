"""The relay: the server that a pilot is connected to, its front, forwards the pilot's exchange to the servers that its
attempts belong to, and merges their answers.

Every server that is asked gets *all* attempts that the pilot holds, under the pilot's own serial. So each can tell by
itself what the pilot has lost and what it gave up, and a front that is wrong about where a case lives does no harm: it
asks the wrong server, learns that the attempt is unknown there, and looks again. For an attempt that no server knows
there is no promise, and then the pilot's lease is not renewed at all: all its attempts have the same lease.

Nothing here is stored on disk. What a front remembers of a pilot only makes things faster: it asks again those servers
that may have granted the pilot a job in an answer that was lost, so that they need not wait for the end of a lease."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from mendflow.core.model.data import CacheUpdate
from mendflow.core.model.errors import Unreachable
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId
from mendflow.core.model.jobs import Measurements
from mendflow.core.model.sync import AttemptRef, AttemptReport, AttemptStatus, SyncAnswer, SyncRequest, servers_mark
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.cluster import Homes, Membership, Peers, PeerUnavailable, ServerDocument
from mendflow.services.base.contracts import Clock
from mendflow.services.cluster.remote_pilots import RemotePilots
from mendflow.services.cluster.work_signals import WorkSignal, WorkSignals
from mendflow.services.scheduling.answer import AnswerBuilder
from mendflow.services.scheduling.cache_records import CacheRegistry
from mendflow.services.scheduling.pilot_records import PilotRecord

PATIENCE_MS_MIN, PATIENCE_MS_MAX = 250, 2_000
"""How long another server may take to answer: a tenth of the lease, within these bounds."""

SERVERS_EVERY_MS = 500
_NOTHING = Measurements()


def case_of(job: JobId) -> CaseId:
    return CaseId(job.rpartition("/")[0])


class PilotPeerState:
    """What a front remembers of a pilot and other servers. `owed`: servers that may have granted it a job in the answer
    of this serial, and do not know yet whether the pilot has read that answer. `unanswered`: attempts and reports that
    no server has answered for, and since when. `declined`: servers that had no more work for it, as of which signal of
    work."""

    __slots__ = ("declined", "owed", "unanswered")

    def __init__(self) -> None:
        self.owed: dict[str, int] = {}
        self.unanswered: dict[AttemptRef, Instant] = {}
        self.declined: dict[str, WorkSignal] = {}

    @property
    def empty(self) -> bool:
        return not (self.owed or self.unanswered or self.declined)


class Relay:
    """Used by the exchange of a server that shares its store."""

    def __init__(
        self,
        *,
        membership: Membership,
        homes: Homes,
        peers: Peers,
        clock: Clock,
        lease_ms: int,
        holds: Callable[[], bool] | None = None,
        caches: CacheRegistry | None = None,
        remote_pilots: RemotePilots | None = None,
    ) -> None:
        """`holds` says whether promises of these very services still count: a server may lose its cases, and register
        again under the same name, while an exchange is held. `caches` is what this server knows of its pilots' caches,
        `remote_pilots` records the pilots of the other servers."""
        self._holds = holds or membership.may_promise
        self.membership = membership
        self.homes = homes
        self.peers = peers
        self.clock = clock
        self.lease_ms = lease_ms
        self.signals = WorkSignals(membership)
        self._peer_state: dict[PilotId, PilotPeerState] = {}
        self._caches_seen: dict[PilotId, dict[str, int]] = {}  # by server, the version of the pilot's cache that it has
        self._caches = caches
        self._remote_pilots = remote_pilots
        self._away_until: dict[str, Instant] = {}
        self._servers: list[str] = []
        self._mark = 0
        self._servers_at: Instant = 0
        self._background_asks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        if self._remote_pilots is not None:
            self._remote_pilots.start()

    async def stop(self) -> None:
        if self._remote_pilots is not None:
            await self._remote_pilots.stop()
        await cancel_tasks(*self._background_asks)

    # Called by the exchange

    def check_promise(self) -> None:
        """Raise if others may be taking over this server's cases by now: then it may not make promises to any pilot."""
        if not self._holds():
            raise Unreachable("this server has not been heard by the others for too long; ask another, or again later")

    async def announce_promises(self) -> None:
        await self.membership.publish()

    def mine(self, job: JobId) -> bool:
        return self.homes.mine(case_of(job))

    def pilot_arrived(self, pilot: PilotId, serial: int) -> None:
        """A pilot that was connected to another server until now, or to none. Servers that had something for it learn
        where it is, and what it has read."""
        living = self.membership.live_servers()
        if living:
            self._peer_state.setdefault(pilot, PilotPeerState()).owed |= {server.id: serial for server in living}

    def nudged(self, server: str) -> None:
        """Another server reports that it has more jobs than slots."""
        self.signals.on_nudge(server)

    def round(self, pilot: PilotRecord, request: SyncRequest, who: str, draft: AnswerBuilder) -> "RelayedRequest":
        return RelayedRequest(self, pilot, request, who, draft)

    def forget(self, pilot: PilotId) -> None:
        self._peer_state.pop(pilot, None)
        self._caches_seen.pop(pilot, None)

    def cache_for(self, pilot: PilotRecord, request: SyncRequest, server: str) -> CacheUpdate | None:
        """The part of the pilot's cache that a server which is asked for jobs does not know yet."""
        if self._caches is None:
            return None
        return self._caches.changes_for_peer(pilot, request, self._caches_seen.get(pilot.id, {}).get(server, 0))

    def cache_seen(self, pilot: PilotId, server: str, version: int) -> None:
        if version or pilot in self._caches_seen:
            self._caches_seen.setdefault(pilot, {})[server] = version

    def concerns_peers(self, pilot: PilotId, request: SyncRequest, draft: AnswerBuilder) -> bool:
        """Whether other servers have a part in this request; mostly they have none."""
        if draft.unclaimed or draft.foreign or request.leaving:
            return True
        peer_state = self._peer_state.get(pilot)
        return peer_state is not None and any(request.heard >= serial for serial in peer_state.owed.values())

    def servers_for(self, request: SyncRequest) -> list[str]:
        """The addresses of all servers, if the pilot knows different ones."""
        now = self.clock.now()
        if now - self._servers_at >= SERVERS_EVERY_MS:
            living, me = self.membership.live_servers(), self.membership.find(self.membership.id)
            self._servers = sorted({server.url for server in (*living, *([me] if me else [])) if server.url})
            self._mark, self._servers_at = servers_mark(self._servers), now
        alone = len(self._servers) < 2 and not request.knows
        return [] if alone or request.knows == self._mark else self._servers

    # Used by one relayed request

    def of(self, pilot: PilotId) -> PilotPeerState:
        return self._peer_state.setdefault(pilot, PilotPeerState())

    def tidy(self, pilot: PilotId, peer_state: PilotPeerState) -> None:
        peer_state.owed = {id: serial for id, serial in peer_state.owed.items() if self.membership.find(id) is not None}
        if peer_state.empty:
            self._peer_state.pop(pilot, None)

    async def ask(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer | None:
        """The answer of the server; None if it gave none that counts."""
        now = self.clock.now()
        if self._away_until.get(server.id, 0) > now:
            return None
        patience_ms = min(max(self.lease_ms // 10, PATIENCE_MS_MIN), PATIENCE_MS_MAX)
        try:
            async with asyncio.timeout(patience_ms / 1000):
                answer = await self.peers.sync(server, request, who)
        except (PeerUnavailable, TimeoutError):
            # Not every pilot's exchange should wait for the same silent server.
            self._away_until[server.id] = self.clock.now() + patience_ms // 2
            return None
        return answer if answer.lease_ms else None  # it has received a newer request of this pilot

    def ask_in_background(
        self, server: ServerDocument, request: SyncRequest, who: str, peer_state: PilotPeerState
    ) -> None:
        """Tell a server what the pilot has read. Its answer holds nothing that the pilot waits for."""

        async def tell() -> None:
            if await self.ask(server, request, who) is not None:
                settle(peer_state, server.id, request)

        task = asyncio.get_running_loop().create_task(tell())
        self._background_asks.add(task)
        task.add_done_callback(self._background_asks.discard)


def settle(peer_state: PilotPeerState, server: str, request: SyncRequest) -> None:
    """The server has received this request: it knows now what the pilot had read."""
    if request.heard >= peer_state.owed.get(server, 0):
        peer_state.owed.pop(server, None)


class RelayedRequest:
    """One request of a pilot while it is relayed. Each server is asked at most once under its serial."""

    def __init__(self, relay: Relay, pilot: PilotRecord, request: SyncRequest, who: str, draft: AnswerBuilder) -> None:
        self._relay = relay
        self._pilot = pilot
        self._request = request
        self._who = who
        self._draft = draft
        self._peer_state = relay.of(pilot.id)
        self._asked: set[str] = set()
        self.unowned_reports: list[AttemptReport] = []  # reports about jobs of cases that are over

    async def go(self) -> None:
        """Ask all servers that have a part in the request."""
        draft, request = self._draft, self._request
        draft.has_remote |= bool(draft.unclaimed)
        peer_state = self._peer_state
        for afresh in (False, True):
            homes = await self._homes(afresh)
            self._settle_unowned(homes)
            await self._ask_all(homes)
            if not (draft.unclaimed or draft.foreign):
                break
        self._acknowledge_owed()
        self._count_unanswered_servers()
        if request.leaving:
            self._relay.forget(self._pilot.id)
        else:
            self._relay.tidy(self._pilot.id, peer_state)

    async def fetch(self, want: int) -> bool:
        """Ask a server for jobs that has too many of them. True: it has one, but can only be asked under the pilot's
        next serial, so the pilot is to be answered now."""
        server = self._relay.signals.best_donor(self._peer_state.declined)
        if server is None:
            return False
        if server.id in self._asked:
            return True
        await self._ask(server, [], want)
        return False

    # Whom to ask

    async def _homes(self, afresh: bool) -> dict[JobId, str]:
        """Where all attempts live that are not ours. The homes of those that nobody answered for the last time are
        looked up again."""
        relay, before = self._relay, self._peer_state.unanswered
        refs = [*self._draft.unclaimed, *map(_ref, self._draft.foreign)]
        known: dict[CaseId, str] = {}
        for ref in refs:
            case = case_of(ref.job)
            if case not in known:
                known[case] = await relay.homes.home_of(case, afresh=afresh or ref in before)
        return {ref.job: known[case_of(ref.job)] for ref in refs}

    def _settle_unowned(self, homes: dict[JobId, str]) -> None:
        """A case without a home is over: its attempts are lost, and the job's document says whether a report was
        accepted."""
        draft = self._draft
        draft.lost += [ref for ref in draft.unclaimed if not homes[ref.job]]
        draft.unclaimed = [ref for ref in draft.unclaimed if homes[ref.job]]
        self.unowned_reports += [report for report in draft.foreign if not homes[report.job]]
        draft.foreign = [report for report in draft.foreign if homes[report.job]]

    def _donor(self) -> ServerDocument | None:
        return self._relay.signals.best_donor(self._peer_state.declined) if self._pilot.wants_jobs else None

    async def _ask_all(self, homes: dict[JobId, str]) -> None:
        membership = self._relay.membership
        wanted = {home for home in homes.values() if home and home != membership.id}
        if self._request.leaving:
            wanted |= {server.id for server in membership.live_servers()}
        servers = [found for id in sorted(wanted - self._asked) if (found := membership.find(id)) is not None]
        want = max(0, self._request.want - len(self._draft.jobs))
        best_donor = self._donor()
        await asyncio.gather(
            *(
                self._ask(
                    server,
                    [report for report in self._draft.foreign if homes[report.job] == server.id],
                    want if best_donor is not None and best_donor.id == server.id else 0,
                    {job for job, home in homes.items() if home == server.id},
                )
                for server in servers
            )
        )

    def _acknowledge_owed(self) -> None:
        """Tell other servers what the pilot has read; except the one that may be asked for jobs in a moment."""
        request, best_donor = self._request, self._donor()
        for id, serial in list(self._peer_state.owed.items()):
            server = self._relay.membership.find(id)
            if server is not None and server is not best_donor and id not in self._asked and request.heard >= serial:
                self._asked.add(id)
                self._relay.ask_in_background(
                    server, self._request_for(request, [], 0, ()), self._who, self._peer_state
                )

    # Asking

    async def _ask(
        self, server: ServerDocument, reports: list[AttemptReport], want: int, its: Iterable[JobId] = ()
    ) -> None:
        self._asked.add(server.id)
        peer_state, sign = self._peer_state, self._relay.signals.of(server)
        request = self._request_for(self._request, reports, want, its)
        if want:
            cache = self._relay.cache_for(self._pilot, self._request, server.id)
            request = msgspec.structs.replace(request, cache=cache)
        before = peer_state.owed.get(server.id, 0)
        if want:
            peer_state.owed[server.id] = request.serial
        answer = await self._relay.ask(server, request, self._who)
        if answer is not None:
            self._draft.add(answer)
            self._draft.has_remote = True
            self._relay.cache_seen(self._pilot.id, server.id, answer.cache_seen)
            if not answer.jobs:
                peer_state.owed[server.id] = before
            settle(peer_state, server.id, request)
        if want and (answer is None or len(answer.jobs) < want):
            peer_state.declined[server.id] = sign

    def _request_for(
        self, request: SyncRequest, reports: list[AttemptReport], want: int, its: Iterable[JobId]
    ) -> SyncRequest:
        """The request as another server gets it. It names every attempt: an attempt that is not named counts as given
        up. A report for another server is named as a running attempt."""
        its, reported = set(its), {(report.job, report.fence) for report in reports}
        running = [
            beat if beat.job in its else AttemptStatus(beat.job, beat.fence, beat.state, _NOTHING)
            for beat in request.running
        ]
        running += [
            AttemptStatus(report.job, report.fence, "running", _NOTHING)
            for report in request.reports
            if (report.job, report.fence) not in reported
        ]
        return msgspec.structs.replace(
            request,
            front=self._relay.membership.id,
            wait_ms=0,
            want=want,
            reports=reports,
            running=running,
            cache=None,
            logs=[part for part in request.logs if part.job in its],
        )

    def _count_unanswered_servers(self) -> None:
        """A home that does not answer for long costs the pilot that home's attempts, before it costs it all others."""
        now, draft, before = self._relay.clock.now(), self._draft, self._peer_state.unanswered
        late = now - self._relay.lease_ms * 3 // 5
        since = {ref: before.get(ref, now) for ref in draft.unclaimed}
        draft.lost += [ref for ref, at in since.items() if at <= late]
        draft.unclaimed = [ref for ref, at in since.items() if at > late]
        since |= {ref: before.get(ref, now) for ref in map(_ref, draft.foreign)}
        self._peer_state.unanswered = since


def _ref(report: AttemptReport) -> AttemptRef:
    return AttemptRef(report.job, report.fence)
