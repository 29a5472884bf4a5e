"""Exports and imports archives with the services of one server: it finds the homes of cases, and lets imported cases
continue."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO, Final

import msgspec

from mendflow.core.model.errors import Conflict, TemporarilyUnavailable, WrongServer
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.import_reports import ImportReport
from mendflow.services.api.archive.checking import check_archive
from mendflow.services.api.archive.exporting import Exporter, ShownRules
from mendflow.services.api.archive.importing import Importer
from mendflow.services.base.cluster import CASE_KIND, HOME_KIND, ServerDocument, root_of
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.homes import CaseTree
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.recovery.decisions import OPEN_DECISION_KIND
from mendflow.services.recovery.levels import LEVEL_KIND
from mendflow.services.runtime.server import Server

IMPORTING = "import"
MOVING_MS: Final = 15_000
LOOK_EVERY_MS: Final = 250

_decode_case = msgspec.json.Decoder(CaseDocument).decode


class ArchiveService:
    def __init__(self, server: Server) -> None:
        self._server = server
        self.store = server.store
        self.file_store: FileStore = server.file_store
        self.ledger = server.runtime.ledger
        self.clock = server.clock
        self.peers = server.peers

    def live_cases(self) -> dict[CaseId, LiveCase]:
        return self._server.runtime.manager.live

    async def home(self, root: CaseId) -> ServerDocument | None:
        """The other server to ask for a tree; None if it lives here, or is over and read from the store. If the tree is
        being taken over, wait until it has a home."""
        membership, give_up_at = self._server.membership, self._now() + MOVING_MS
        while membership.shared:
            homes = self._server.runtime.homes
            if homes.mine(root):
                return None
            server = await homes.home_of(root, afresh=True)
            if not server or await self._over(root):
                return None
            found = membership.find(server)
            if found is not None and server != homes.server:
                return found
            if self._now() >= give_up_at:
                raise TemporarilyUnavailable(
                    f"case {root} is being taken over from server {server}; ask again in a moment"
                )
            await self.clock.sleep(LOOK_EVERY_MS)
        return None

    async def _over(self, root: CaseId) -> bool:
        """Whether nothing in the tree can change any more. Its home may still exist while a notification has not been
        delivered."""
        async for found in self.store.scan(CASE_KIND, root):
            if root_of(found.id) == root:
                case = _decode_case(found.body)
                if case.live or case.posted:
                    return False
        for kind in (OPEN_DECISION_KIND, LEVEL_KIND):
            async for found in self.store.scan(kind, root):
                if root_of(found.id) == root:
                    return False
        return True

    def export(
        self,
        cases: Sequence[CaseId],
        *,
        files: bool,
        everything: bool,
        leave_out: bool,
        by: str,
        shown: ShownRules | None = None,
    ) -> AsyncIterator[bytes]:
        """An archive of these cases, each with the whole tree that it belongs to."""
        roots, by = list(dict.fromkeys(map(root_of, cases))), f"mendflow {self._server.health().version}, {by}"
        return Exporter(self, roots, files=files, everything=everything, leave_out=leave_out, by=by, shown=shown).pack()

    async def give(self, root: CaseId) -> AsyncIterator[bytes]:
        """Export a tree that lives here, for another server that asks for it."""
        if (server := await self.home(root)) is not None:
            raise WrongServer(f"case {root} lives on server {server.id}", server=server.id)
        async for chunk in Exporter(self, [root], files=False, everything=False, by="", bare=True).pack():
            yield chunk

    async def take(self, source: BinaryIO, *, as_new: bool, skip_existing: bool, resume: bool, by: str) -> ImportReport:
        """Import everything in an archive, or nothing and raise why."""
        inventory = await asyncio.to_thread(check_archive, source)
        work = Importer(self.store, self.file_store, source, inventory)
        plans = await work.plan(as_new=as_new, skip_existing=skip_existing)
        await work.take_files()
        await work.take_shared(now=self._now())
        await self._server.runtime.read_shared()
        await work.take_trees(plans, self, resume=resume, now=self._now(), by=by)
        await self.ledger.settled()
        if inventory.left_out:
            work.report.notes.append(f"not in the archive, as it says itself: {', '.join(inventory.left_out)}")
        return work.report

    # For imports

    async def expect(self, root: CaseId, title: str) -> None:
        if not self._server.runtime.homes.knows(root) and await self.store.get(HOME_KIND, root) is not None:
            raise Conflict(f"{title} is on another server already; look at it there")

    async def go_on(self, root: CaseId) -> None:
        """Give the tree a home, so that its cases continue. It gets none before all of it is imported."""
        if not any(root_of(id) == root for id in self.live_cases()):
            self._server.runtime.homes.hold(root, IMPORTING)
            await self.ledger.settled()
            await self._server.runtime.take_up([CaseTree(root)])

    def _now(self) -> Instant:
        return self._server.clock.now()
