"""Archives, as the services of one server see them: whose the cases are, and who goes on with them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.problems import Conflict
from mendflow.core.model.views import ImportReport
from mendflow.services.archive.checking import checked
from mendflow.services.archive.exporting import Export
from mendflow.services.archive.importing import Import
from mendflow.services.case_book import LiveCase
from mendflow.services.cluster.contract import HOME_KIND, root_of
from mendflow.services.cluster.homes import Tree
from mendflow.services.house import House

IMPORTING = "import"


class ArchiveDesk:
    def __init__(self, house: House) -> None:
        self._house = house
        self.store = house.store
        self.keeper = house.keeper
        self.ledger = house.services.ledger

    def living(self) -> dict[CaseId, LiveCase]:
        return self._house.services.manager.live

    async def elsewhere(self, root: CaseId) -> str:
        homes, membership = self._house.services.homes, self._house.membership
        if not membership.shared or homes.knows(root):
            return ""
        server = await homes.home_of(root, afresh=True)
        return server if server != homes.server and server and membership.find(server) is not None else ""

    async def export(self, cases: Sequence[CaseId], *, files: bool, everything: bool, by: str) -> AsyncIterator[bytes]:
        """An archive of these cases, each with the whole tree that it belongs to."""
        roots = list(dict.fromkeys(map(root_of, cases)))
        export = Export(
            self,
            roots,
            files=files,
            everything=everything,
            now=self._now(),
            by=f"mendflow {self._house.health().version}, {by}",
        )
        async for chunk in export.packed():
            yield chunk

    async def take(self, source: BinaryIO, *, as_new: bool, skip_existing: bool, resume: bool, by: str) -> ImportReport:
        """Everything in an archive, or nothing and why."""
        inventory = await asyncio.to_thread(checked, source)
        work = Import(self.store, self.keeper, source, inventory)
        plans = await work.plan(as_new=as_new, skip_existing=skip_existing)
        await work.take_files()
        await work.take_shared()
        await self._house.services.read_shared()
        await work.take_trees(plans, self, resume=resume, now=self._now(), by=by)
        await self.ledger.settled()
        return work.report

    # For imports

    async def expect(self, root: CaseId) -> None:
        if not self._house.services.homes.knows(root) and await self.store.get(HOME_KIND, root) is not None:
            raise Conflict(f"case {root} is on another server already; look at it there")

    async def go_on(self, root: CaseId) -> None:
        """Without a home nobody would: so it has none before all of it is here."""
        if not any(root_of(id) == root for id in self.living()):
            self._house.services.homes.hold(root, IMPORTING)
            await self.ledger.settled()
            await self._house.services.take_up([Tree(root)])

    def _now(self) -> Instant:
        return self._house.clock.now()
