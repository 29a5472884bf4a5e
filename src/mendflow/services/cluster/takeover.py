"""Takes over the cases of servers that have ended: home by home, each by one compare-and-set.

Several servers do so at once. Each goes through the homes in an order of its own, so that they seldom compete; where
they do, one wins, and the other goes on. A tree that was won is loaded completely, or this server rebuilds its
services: a tree that is ours on disk and not in memory would run nowhere. From time to time all homes are checked, to
find those that a paused server left when it woke up and made one last write."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import HOME_KIND, HomeDocument, root_of
from mendflow.services.base.homes import CaseTree, HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.cluster.membership import PeerState, ServerMembership
from mendflow.stores.contract import Store, StoredDocument

log = logging.getLogger("mendflow.servers")

PARALLEL_MAX: Final = 8
FULL_SCAN_TERMS: Final = 6
"""All homes are checked every this many take-over times."""

TakeUp = Callable[[Sequence[CaseTree]], Awaitable[None]]
_decode = msgspec.json.Decoder(HomeDocument).decode


class Takeover:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        membership: ServerMembership,
        homes: HomeRegistry,
        meter: Meter,
        read_shared: Callable[[], Awaitable[None]],
        take_up: TakeUp,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._membership = membership
        self._homes = homes
        self._meter = meter
        self._read_shared = read_shared
        self._take_up = take_up
        self._slots = asyncio.Semaphore(PARALLEL_MAX)
        self._full_scan_at = meter()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="take-over")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    async def _run(self) -> None:
        news = self._membership.news
        while not self._ledger.broken:
            await news.wait()
            news.clear()
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("could not check the cases of other servers: %s; trying again", error.message)
            except Exception:  # without this loop nobody takes the cases of dead servers: the next look may succeed
                log.exception("could not check the cases of other servers; trying again")

    async def look(self) -> None:
        """Take over what is left of servers that have ended."""
        ended = {id: peer for id, peer in self._membership.peer_states.items() if peer.document.ended}
        due = self._meter() - self._full_scan_at >= FULL_SCAN_TERMS * self._membership.terms.takeover_ms
        if not self._membership.may_promise() or not (due or any(not peer.homeless for peer in ended.values())):
            return
        if due:
            self._full_scan_at = self._meter()
        found = [document async for document in self._store.scan(HOME_KIND)]
        homes = {document.id: _decode(document.body) for document in found}
        left = [document for document in found if self._is_abandoned(homes[document.id], ended, due=due)]
        if left:
            await self._read_shared()  # read the shared documents that they may have changed without announcing it
        left.sort(key=lambda document: hashlib.sha256(f"{self._membership.id} {document.id}".encode()).digest())
        await asyncio.gather(*(self._take(document, ended.get(homes[document.id].server)) for document in left))
        servers = {home.server for home in homes.values()}
        for id, peer in ended.items():
            peer.homeless = id not in servers

    def _is_abandoned(self, home: HomeDocument, ended: dict[str, PeerState], *, due: bool) -> bool:
        """Whether no server continues it. What an earlier incarnation of a restarted server began belongs to that
        server."""
        if self._homes.knows(home.root):
            return False
        if (peer := ended.get(home.server)) is not None:
            return home.incarnation == peer.document.incarnation or due
        if home.server == self._membership.id:
            return due
        return due and self._membership.find(home.server) is None

    async def _take(self, document: StoredDocument, peer: PeerState | None) -> None:
        async with self._slots:
            for tree in await self._homes.take([document]):
                if peer is not None:
                    now = self._meter()
                    jobs = [job for job in peer.document.inherited if root_of(job) == tree.root]
                    ends = {job: peer.inherited_end(job) for job in jobs}
                    inherited = {job: max(0, end - now) for job, end in ends.items() if end is not None}
                    left_ms = max(0, peer.promises_end() - now)
                    tree = tree._replace(promised_ms=left_ms, inherited_ms=inherited)
                await self._load_tree(tree)

    async def _load_tree(self, tree: CaseTree) -> None:
        try:
            await self._take_up([tree])
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever it is: what is ours on disk is in memory, or everything is loaded again
            if not isinstance(error, StoreUnavailable):
                log.exception(
                    "the cases of %s could not be taken over; trying again", tree.root, extra={"case": tree.root}
                )
            self._ledger.give_up(f"the cases of {tree.root} could not be taken over: {error}")
