"""The part of the domain that writes archives and takes them in.

An uploaded archive is stored completely before any of it is read: an interrupted upload imports nothing."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.import_reports import ImportReport
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.views import CaseQuery
from mendflow.lazy import LazyModule
from mendflow.services.api.seen_cornerstones import SeenCornerstones
from mendflow.services.api.view_operations import ViewOperations

if TYPE_CHECKING:
    from mendflow.services.api.archive import service as archive
else:
    archive = LazyModule("mendflow.services.api.archive.service")

EXPORTED_PAGE = 1000


class ArchiveOperations(ViewOperations):
    async def export(
        self,
        cases: Sequence[str],
        *,
        everything: bool = False,
        where: str = "",
        files: bool = True,
        leave_out: bool = False,
        who: str,
        sight: Sight = EVERYTHING,
    ) -> AsyncIterator[bytes]:
        """An archive of these cases, of those that match a condition, or of everything. Each case comes with the cases
        that it called and that mended it, as of one moment. Raises Unreachable if a case lives on a server that cannot
        be asked, unless such cases are to be left out; then the archive names them."""
        archives, chosen = archive.ArchiveService(self._server), [await self._id(case, sight=sight) for case in cases]
        for case in chosen:
            await self.demand_seen(case, sight)
        query = CaseQuery(where=where, order="started", limit=EXPORTED_PAGE) if everything or where else None
        while query is not None:
            page = await self.find_cases(query, sight=sight)
            chosen += [view.id for view in page.rows if not view.engine]
            query = msgspec.structs.replace(query, after=page.next) if page.next else None
        for case in chosen:
            await self._document(case)
        whole = everything and sight.projects is None  # what all cases share is for who may see all of them
        seen = SeenCornerstones(self.project_lookup, sight)
        shown = seen.shown if sight.projects is not None else None
        return await _begun(
            archives.export(chosen, files=files, everything=whole, leave_out=leave_out, by=who, shown=shown)
        )

    async def import_archive(
        self,
        chunks: AsyncIterator[bytes],
        *,
        as_new: bool = False,
        skip_existing: bool = False,
        resume: bool = False,
        who: str,
    ) -> ImportReport:
        """Import the cases of an archive, all of them or none. Those that are not over are suspended, unless `resume`
        is set."""
        with tempfile.TemporaryFile() as spool:
            async for chunk in chunks:
                await asyncio.to_thread(spool.write, chunk)
            archives = archive.ArchiveService(self._server)
            return await archives.take(spool, as_new=as_new, skip_existing=skip_existing, resume=resume, by=who)


async def _begun(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same stream, once its first part is there: so errors are raised before the response begins."""
    first = await anext(content)

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for chunk in content:
            yield chunk

    return whole()
