"""The base class of the operations: it resolves the word "last", and reads documents.

Every read waits for the ledger first, so what is no longer in memory is found on disk."""

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.model.jobs import Job
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.views import CaseQuery, JobQuery
from mendflow.services.api.file_readers import FileReaders
from mendflow.services.api.project_lookup import ProjectLookup
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases import item_views
from mendflow.services.cases.flows import OF_PROJECT
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import FieldCondition, Store

LAST = "last"
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode


class DomainReader:
    """`server.runtime` holds the services; it is replaced as a whole when they are built anew."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.project_lookup = ProjectLookup(server)
        self.file_readers = FileReaders(server)

    async def is_seen(self, id: str, sight: Sight) -> bool:
        """Whether a case, or what is named after one, is of a project that may be looked into."""
        return sight.projects is None or sight.sees(await self.project_lookup.of_case(id) or "")

    async def demand_seen(self, case: str, sight: Sight) -> None:
        """Refused in the words for a case that is not there, unless it is of a project that may be looked into."""
        if case != LAST and not await self.is_seen(case, sight):
            raise NotFound(f"there is no case {case!r:.80}; `mendflow cases` lists them")

    async def is_of_seen_flow(self, flow: str, sight: Sight) -> bool:
        """Whether what was counted for a flow of this name may be looked at. What no project has any more, as a flow
        that was removed, the default one has."""
        if sight.projects is None:
            return True
        _, is_other, project = flow.partition(OF_PROJECT)
        return sight.sees(project if is_other else await self.project_lookup.of_flow(flow) or DEFAULT_PROJECT)

    async def newest_case(self, sight: Sight) -> CaseId:
        """What `last` means to whoever sees this."""
        return await self._id(LAST, sight=sight)

    async def _id(self, case: str, *, flow: str = "", sight: Sight = EVERYTHING) -> CaseId:
        if case != LAST:
            return CaseId(case)
        where = [FieldCondition("parent", None), FieldCondition("mends", None), FieldCondition("void", None)]
        where += in_sight(sight)
        where += [FieldCondition("flow", flow)] if flow else []
        store = await self._read()
        newest = await store.search(CASE_KIND, where, order_by="started_at", descending=True, limit=1)
        if not newest:
            raise NotFound("there is no case yet, so there is no last one")
        return CaseId(newest[0].id)

    async def _document(self, case: CaseId) -> CaseDocument:
        live = self._server.runtime.manager.live.get(case)
        if live is not None:
            return live.document
        found = await (await self._read()).get(CASE_KIND, case)
        if found is None:
            pruned = await self._server.runtime.retention.pruned(case)
            gone = f"{pruned.sentence()}; " if pruned is not None else ""
            raise NotFound(f"{gone}there is no case {case!r:.80}; `mendflow cases` lists them")
        return _decode_case(found.body)

    async def _job_id(self, job: str) -> JobId:
        case, _, serial = job.rpartition("/")
        return JobId(f"{await self._id(case)}/{serial}") if case else JobId(job)

    async def _job(self, job: str) -> Job:
        id = await self._job_id(job)
        live = self._server.runtime.meta.jobs.get(id)
        if live is not None:
            return live
        found = await (await self._read()).get("job", id)
        if found is None:
            pruned = await self._server.runtime.retention.pruned(CaseId(id))
            gone = f"{pruned.sentence()}; " if pruned is not None else ""
            raise NotFound(f"{gone}there is no job {job!r}; `mendflow jobs` lists them")
        return _decode_job(found.body)

    async def _jobs_of(self, case: CaseId) -> dict[str, list[Job]]:
        """The jobs of a case by the id that the flow uses; each with all its submissions, the oldest first."""
        found: dict[str, list[Job]] = {}
        async for document in (await self._read()).scan("job", f"{case}/"):
            job = self._server.runtime.meta.jobs.get(JobId(document.id)) or _decode_job(document.body)
            found.setdefault(item_views.generation_of(job.id)[0], []).append(job)
        for submissions in found.values():
            submissions.sort(key=lambda job: item_views.generation_of(job.id)[1])
        return found

    async def _read(self) -> Store:
        """The store, after everything that happened here was written: what is no longer in memory is found there."""
        await self._settled()
        return self._server.store

    async def _searchable(self, query: JobQuery | CaseQuery) -> Store:
        """The store, after its search index includes everything that happened before. Lists without a condition do not
        wait for that, nor do pages after the first."""
        store = await self._read()
        if (query.where or query.also) and not query.after:
            await store.refresh()
        return store

    async def _settled(self) -> None:
        await self._server.runtime.ledger.settled()
