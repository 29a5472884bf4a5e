"""Membership: which servers are on this store, and whether this one may still make promises to pilots.

A server writes its document again with each heartbeat, and reads those of the others. It reads no time in them: if the
version of a document does not change during the whole take-over time, over reads that the store has answered, its
server is dead, and the document is closed by compare-and-set. So no server is found dead because the store was
unreachable, or because the observer was paused. A server that finds its own document closed has lost its cases: it
discards its services, and registers again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.ids import JobId
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.clock import Meter, steady_ms
from mendflow.services.base.cluster import SERVER_KIND, ServerDocument
from mendflow.services.base.cluster_terms import ClusterTerms, cluster_terms
from mendflow.services.base.contracts import Clock
from mendflow.services.base.membership import Promise
from mendflow.stores.contract import Delete, Put, Store, StoredDocument, WriteDone

log = logging.getLogger("mendflow.servers")

KEPT_TERMS: Final = 60
"""A dead server without homes is forgotten after this many take-over times."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ServerDocument).decode


class PeerState:
    """Another server, as it was last seen. `moved_at` and `ended_at` are by our own meter. `has_beaten`: its document
    has changed since it was first seen."""

    def __init__(self, document: ServerDocument, version: int, now: int, *, has_beaten: bool = False) -> None:
        self.document = document
        self.version = version
        self.has_beaten = has_beaten
        self.moved_at = now
        self.silent_ms = 0
        self.ended_at = now if document.ended else 0
        self.homeless = False  # it has ended, and no home names it any more

    def promises_end(self) -> int:
        """When, by our meter, all promises of a server that has ended are over. The server that closed it recorded for
        how long it had been silent, and we read that after it was written."""
        document = self.document
        beaten_at = self.ended_at
        if document.silent_ms:
            beaten_at += cluster_terms(document.lease_ms).promise_ms - document.silent_ms
        return beaten_at + document.lease_ms

    def inherited_end(self, job: JobId) -> int | None:
        """When, by our meter, the promise to the pilot of a job is over that the server had taken over and not renewed;
        None if it may have renewed it. Its last heartbeat was seen, at the latest, before it was silent."""
        left_ms = self.document.inherited.get(job)
        return None if left_ms is None else self.ended_at - self.document.silent_ms + left_ms


class ServerMembership:
    """`own` identifies this server; `load` fills in how much work it has, at each heartbeat. `closed` is called when
    another server has taken over from this one, `changed` when another has changed what all share, `looked` after each
    read of the others; `news` is set then, too."""

    shared = True

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        own: ServerDocument,
        terms: ClusterTerms | None = None,
        meter: Meter = steady_ms,
        load: Callable[[ServerDocument], None] | None = None,
        closed: Callable[[str], None] | None = None,
        changed: Callable[[], None] | None = None,
        looked: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._meter = meter
        self._own_document = own
        self._load = load
        self.terms = terms or cluster_terms(own.lease_ms)
        self._on_closed = closed or _ignore_reason
        self._on_changed = changed or _ignore
        self._on_looked = looked or _ignore
        self.news = asyncio.Event()
        self.peer_states: dict[str, PeerState] = {}
        self.found_dead_count = 0  # servers that this one was the first to find dead
        self._version = 0
        self._written = 0
        self._promised_until = 0
        self._earlier_promises_until: int | None = None
        self._observed_at = 0
        self._registered = False
        self._tasks: list[asyncio.Task[None]] = []
        self._writing = asyncio.Lock()

    # What others ask

    @property
    def id(self) -> str:
        return self._own_document.id

    @property
    def incarnation(self) -> str:
        return self._own_document.incarnation

    def may_promise(self) -> bool:
        return self._registered and self._meter() < self._promised_until

    def live_servers(self) -> list[ServerDocument]:
        return [peer.document for peer in self.peer_states.values() if not peer.document.ended]

    def find(self, server: str) -> ServerDocument | None:
        if server == self.id:
            return self._own_document
        peer = self.peer_states.get(server)
        return peer.document if peer is not None and not peer.document.ended else None

    def promise(self) -> Promise:
        return _IncarnationPromise(self, self.incarnation)

    def earlier_promises_ms(self) -> int | None:
        until, self._earlier_promises_until = self._earlier_promises_until, None
        return None if until is None else max(0, until - self._meter())

    def announce_change(self) -> None:
        """This server has changed what all servers share, and it is on disk: the others read it again."""
        self._own_document.changes += 1

    async def beats(self, server: str) -> bool:
        until = self._meter() + self.terms.takeover_ms
        while self.find(server) is not None and (peer := self.peer_states.get(server)) is not None:
            if peer.silent_ms >= cluster_terms(peer.document.lease_ms).promise_ms:
                return False
            if peer.has_beaten or self._meter() >= until:
                return peer.has_beaten
            await self._clock.sleep(max(self.terms.beat_ms // 4, 10))
        return False

    async def wait(self) -> bool:
        """Wait until this server may make promises, but no longer than others would wait before they take over its
        cases."""
        until = self._meter() + self.terms.takeover_ms
        while not self.may_promise():
            if self._meter() >= until:
                return False
            await self._clock.sleep(max(self.terms.beat_ms // 4, 10))
        return True

    # Its life

    async def open(self) -> None:
        """Register, and read who else is there."""
        await self._register()
        await self._look()
        # Separate tasks: a slow read of the others must not delay our own heartbeats.
        self._tasks = [
            asyncio.create_task(self._repeat(lambda: self.beat()), name="beats"),
            asyncio.create_task(self._repeat(lambda: self._look()), name="looks"),
        ]

    async def close(self) -> None:
        """Announce that this server has stopped, if possible: others then take over its cases at once."""
        await self.drop()
        if not self._registered:
            return
        self._registered = False
        ended = msgspec.structs.replace(self._own_document, ended=True, silent_ms=0)
        try:
            await self._store.write([Put(SERVER_KIND, self.id, _encode(ended), self._version)])
        except StoreUnavailable:
            log.warning(
                "the store is unreachable: the other servers will notice by timeout that this server has stopped"
            )

    async def drop(self) -> None:
        """Stop without announcing it, as if the process were killed."""
        await cancel_tasks(*self._tasks)
        self._tasks = []

    async def _repeat(self, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(self.terms.beat_ms)
            try:
                await do()
            except StoreUnavailable as error:
                log.warning("the heartbeat of this server could not be written: %s; trying again", error.message)
            except Exception:  # the next heartbeat may succeed; without any the server loses its cases
                log.exception("the heartbeat of this server could not be written; trying again")

    async def _register(self) -> None:
        """Begin a new incarnation. The one before is dead, or knows already that it was closed. Each incarnation gets a
        unique name, from the version that it found and the instant."""
        while not self._registered:
            found = await self._store.get(SERVER_KIND, self.id)
            self._version = found.version if found is not None else 0
            self._earlier_promises_until = self._promises_end(_decode(found.body)) if found is not None else None
            self._own_document.incarnation = f"{self._version}-{self._clock.now()}"
            self._registered = await self._write()

    def _promises_end(self, before: ServerDocument) -> int | None:
        """When, by our meter, all promises of the incarnation before are over. Every promise depended on a heartbeat,
        and the last one is in its document. On another machine, or after a reboot, that says nothing."""
        if not before.meter or before.meter != self._own_document.meter or before.beaten_ms > self._meter():
            return None
        return before.beaten_ms + cluster_terms(before.lease_ms).promise_ms + before.lease_ms

    async def beat(self) -> None:
        async with self._writing:
            if not self._registered:
                await self._register()
            elif not await self._write():
                await self._on_refused()

    async def publish(self) -> None:
        """Write our document with what is known by now, and wait until it is on disk. Raises StoreUnavailable."""
        written = self._written
        while self._registered and self._written == written:
            await self.beat()

    async def _write(self) -> bool:
        """Write our document again; false if somebody else has changed it."""
        self._own_document.beat += 1
        if self._load is not None:
            self._load(self._own_document)
        self._own_document.beaten_ms = sent_at = self._meter()
        [result] = await self._store.write([Put(SERVER_KIND, self.id, _encode(self._own_document), self._version)])
        if not isinstance(result, WriteDone):
            return False
        self._version = result.version
        self._written += 1
        self._promised_until = sent_at + self.terms.promise_ms
        return True

    async def _on_refused(self) -> None:
        """Somebody wrote our document. It may have been this server: a heartbeat that was given up, and succeeded
        later."""
        found = await self._store.get(SERVER_KIND, self.id)
        now = _decode(found.body) if found is not None else None
        if found is not None and now is not None and now.incarnation == self.incarnation and not now.ended:
            self._version = found.version
            return
        self._registered, self._promised_until = False, 0
        reason = "this server was silent for too long, and others have taken its cases"
        if now is not None and not now.ended:
            self._own_document.id = f"{self.id}-{self._version}"
            reason = f"another server runs under the name {now.id}; this one goes on as {self.id}"
        log.error("%s", reason)
        self._on_closed(reason)
        await self._register()

    # The others

    async def _look(self) -> None:
        found = {document.id: document async for document in self._store.scan(SERVER_KIND)}
        now = self._meter()
        # A server that cannot write its own heartbeat declares no other dead: the store may refuse writes of all.
        heard = self._observed_at and self.may_promise()
        watched_ms = min(now - self._observed_at, 2 * self.terms.beat_ms) if heard else 0
        self._observed_at = now
        for gone in self.peer_states.keys() - found.keys():
            del self.peer_states[gone]
        for document in found.values():
            if document.id != self.id:
                await self._observe(document, now, watched_ms)
        self.news.set()
        self._on_looked()

    async def _observe(self, document: StoredDocument, now: int, watched_ms: int) -> None:
        peer = self.peer_states.get(document.id)
        if peer is None or peer.version != document.version:
            latest = _decode(document.body)
            self.peer_states[document.id] = PeerState(latest, document.version, now, has_beaten=peer is not None)
            if peer is not None and (latest.ended, latest.changes) != (peer.document.ended, peer.document.changes):
                self._on_changed()
            return
        peer.silent_ms += watched_ms
        if not peer.document.ended:
            if peer.silent_ms >= self.terms.takeover_ms:
                await self._close(peer, now)
        elif peer.homeless and peer.silent_ms >= KEPT_TERMS * self.terms.takeover_ms:
            await self._store.write([Delete(SERVER_KIND, document.id, peer.version)])

    async def _close(self, peer: PeerState, now: int) -> None:
        """The server was found dead. The first to write this has found it; a heartbeat that comes in between proves the
        contrary."""
        closed = msgspec.structs.replace(peer.document, ended=True, silent_ms=max(1, now - peer.moved_at))
        [result] = await self._store.write([Put(SERVER_KIND, closed.id, _encode(closed), peer.version)])
        if isinstance(result, WriteDone):
            self.found_dead_count += 1
            log.warning("server %s did not report for %d ms; its cases are taken over", closed.id, closed.silent_ms)
            self.peer_states[closed.id] = PeerState(closed, result.version, now)


class _IncarnationPromise:
    def __init__(self, membership: ServerMembership, incarnation: str) -> None:
        self._membership = membership
        self._incarnation = incarnation

    def holds(self) -> bool:
        membership = self._membership
        return membership.incarnation == self._incarnation and membership.may_promise()

    async def renewed(self) -> bool:
        return await self._membership.wait() and self.holds()


def _ignore_reason(reason: str) -> None: ...


def _ignore() -> None: ...
