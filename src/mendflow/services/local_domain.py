"""The domain of this very process: what `Domain` promises, done with the services below it.

Every answer waits for the ledger, so whatever a caller was told is on disk."""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from mendflow.core.engine.messages import Cancel, Deliver, RemoveItem, Resume, Suspend
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Job
from mendflow.core.model.problems import Conflict, NotFound
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, Explanation
from mendflow.core.model.stats import StatsView
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import (
    CasePage,
    CaseQuery,
    CaseView,
    Counts,
    FlowView,
    Happening,
    Health,
    Hold,
    ImportReport,
    ItemPage,
    ItemView,
    JobPage,
    JobQuery,
    PilotView,
    ServerView,
    TaskView,
)
from mendflow.core.query.names import ITEMS
from mendflow.core.query.search import Search
from mendflow.services import case_search, item_views, job_search, reasons
from mendflow.services.archive.desk import ArchiveDesk
from mendflow.services.beginning import Beginning, again, same
from mendflow.services.case_book import CASE_KIND, CaseDocument, LiveCase
from mendflow.services.cluster.contract import root_of
from mendflow.services.cluster.overview import Overview
from mendflow.services.holds import holds_of
from mendflow.services.house import House
from mendflow.services.item_list import ItemList
from mendflow.services.local_repairs import LocalRepairs
from mendflow.services.local_watch import LocalWatch
from mendflow.services.metering.everywhere import Elsewhere, look_everywhere
from mendflow.services.retelling import listen
from mendflow.services.searching import LOOKED_MAX
from mendflow.stores.contract import Store, Where

_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode
LAST = "last"
REPAIRS_TOLD = 50
EXPORTED_PAGE = 1000


class LocalDomain(LocalRepairs, LocalWatch):
    """`house` holds the services; it is replaced as a whole when they are built anew after the store was away. `chance`
    gives new names: so many random bytes, in hexadecimal."""

    def __init__(
        self, house: House, *, chance: Callable[[int], str] = secrets.token_hex, elsewhere: Elsewhere | None = None
    ) -> None:
        """`elsewhere` is the way to the numbers of other servers, if there may be some."""
        self._elsewhere = elsewhere
        self._house = house
        self._chance = chance

    # Flows

    async def deploy(self, flow: Flow) -> FlowView:
        view = await self._house.services.flows.deploy(flow)
        await self._settled()
        return view

    async def flows(self) -> list[FlowView]:
        if self._house.membership.shared:
            await self._house.services.flows.start()
        return self._house.services.flows.all()

    async def flow(self, name: str) -> FlowView:
        await self._house.services.flows.look_again(name)
        return self._house.services.flows.newest(name).view(whole=True)

    # Cases

    async def start(
        self, name: str, inputs: dict[str, Value], *, who: str, reuse: str = "", key: str = "", notify: str = ""
    ) -> CaseView:
        if notify:
            self._check(notify)
        await self._house.services.flows.look_again(name)
        known = self._house.services.flows.newest(name)
        wanted = CaseDocument(
            id=CaseId(""), flow=name, digest=known.digest, inputs=inputs, owner=who, key=key, notify=notify
        )
        if key:
            found = await (await self._read()).search(CASE_KIND, [Where("key", key)], limit=1)
            earlier = await Beginning(self._house, self._chance).known(CaseId(found[0].id)) if found else None
            if earlier is not None:
                return self._view(same(earlier, wanted))
        wanted.rerun_of = await self._id(reuse, flow=name) if reuse else None
        return await self._begin(wanted, known.flow)

    async def rerun(self, case: str, *, who: str, from_failed: bool = False) -> CaseView:
        document = await self._document(await self._id(case))
        if document.live:
            raise Conflict(f"case {document.id} is still {document.status}; remove it, or wait for its end")
        if from_failed and document.status == "completed":
            raise Conflict(f"nothing failed in case {document.id}; leave --from-failed away to run it again")
        flow = await self.flow_of(document.id)
        return await self._begin(again(document, who), flow)

    async def _begin(self, wanted: CaseDocument, flow: Flow) -> CaseView:
        return self._view(await Beginning(self._house, self._chance).begin(wanted, flow))

    async def cases(self, *, flow: str = "", status: str = "", limit: int = 100, offset: int = 0) -> list[CaseView]:
        return (await self.find_cases(CaseQuery(flow=flow, status=status, limit=limit, offset=offset))).rows

    async def find_cases(self, query: CaseQuery) -> CasePage:
        store = await self._searchable(query)
        found = await case_search.search(store, self._house.services.manager.live, query, self._house.clock.now())
        rows = [self._view(_decode_case(body)) for body in found.bodies]
        await self._settled()
        return CasePage(rows=rows, next=found.next, looked_at=found.looked_at)

    async def count_cases(self, query: CaseQuery, *, by: str = "") -> Counts:
        store = await self._searchable(query)
        counts = await case_search.count(store, self._house.services.manager.live, query, by, self._house.clock.now())
        await self._settled()
        return counts

    async def case(self, case: str) -> CaseView:
        return self._view(await self._document(await self._id(case)))

    async def flow_of(self, case: str) -> Flow:
        document = await self._document(await self._id(case))
        return await self._house.services.manager.flow_of(document.id)

    def _view(self, document: CaseDocument) -> CaseView:
        live = self._house.services.manager.live.get(document.id)
        if live is None or not live.document.live:
            return document.view()
        held = live.case.status == "suspended" or live.case.item_holders or live.document.ending
        view = live.view()
        if self._house.membership.shared:
            view = msgspec.structs.replace(view, server=self._house.membership.id)
        return msgspec.structs.replace(view, holds=self._holds(live)) if held else view

    def _holds(self, live: LiveCase) -> list[Hold]:
        return holds_of(live, self._house.services.manager.live)

    async def suspend(self, case: str, item: str = "", *, who: str) -> CaseView:
        return await self._order(case, Suspend(item=ItemId(item) if item else None))

    async def resume(self, case: str, item: str = "", *, who: str) -> CaseView:
        return await self._order(case, Resume(item=ItemId(item) if item else None))

    async def remove(self, case: str, item: str = "", *, who: str, reason: str = "") -> CaseView:
        if item:
            return await self._order(case, RemoveItem(item=ItemId(item), reason=reason or f"removed by {who}"))
        return await self._order(case, Cancel(reason=reason or f"removed by {who}"))

    async def send(self, case: str, channel: str, value: Value, *, correlation: Value = None, id: str = "") -> CaseView:
        message = Deliver(id=id or self._chance(8), channel=channel, value=value, correlation=correlation)
        return await self._order(case, message)

    async def _order(self, case: str, command: Suspend | Resume | Cancel | RemoveItem | Deliver) -> CaseView:
        id = await self._id(case)
        document = await self._document(id)
        if not document.live:
            raise Conflict(f"case {id} is over: {document.status}")
        if not await self._house.services.mending.steer_end(id, command):
            await self._house.services.manager.command(id, command)
        await self._settled()
        return await self.case(id)

    async def happenings(self, case: str = "", after: int = 0, *, kind: str = "") -> AsyncIterator[Happening]:
        told = self._house.services.happenings
        source = told.listen("", 0, kind=kind, over=False)
        if case:
            document = await self._document(await self._id(case))
            source = listen(told, document, (await self._items(document.id)).rows(""), after, kind)
        async for happening in source:
            yield happening

    # Items

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        found = await self.find_items(case, state=state, name=name, limit=limit, offset=offset, after=after)
        return found.rows

    async def find_items(
        self,
        case: str,
        *,
        state: str = "",
        name: str = "",
        where: str = "",
        limit: int = 1000,
        offset: int = 0,
        after: str = "",
    ) -> ItemPage:
        search, found, looked_at = Search(ITEMS, where, self._house.clock.now()), list[ItemView](), 0
        async for view in (await self._items(await self._id(case))).rows(after):
            looked_at += 1
            passed = (state and view.state != state) or (name and view.name != name)
            if not passed and (not where or search.holds(msgspec.to_builtins(view))):
                offset -= 1
                found += [view] if offset < 0 else []
            if len(found) == limit or looked_at == LOOKED_MAX:
                return ItemPage(rows=found, next=view.place, looked_at=looked_at)
        return ItemPage(rows=found, looked_at=looked_at)

    async def item(self, case: str, item: str) -> ItemView:
        """The item; of one that was restarted, what goes on, or else what came last."""
        id = await self._id(case)
        found = await (await self._items(id)).find(ItemId(item))
        if found is None:
            raise NotFound(f"case {id} has no item {item!r}; `mendflow items {id}` lists them")
        return found

    async def _items(self, case: CaseId) -> ItemList:
        return ItemList(self._house.services, await self._read(), await self._document(case))

    async def _jobs_of(self, case: CaseId) -> dict[str, list[Job]]:
        """The jobs of a case by the id that the flow knows; each with all its submissions, the oldest first."""
        found: dict[str, list[Job]] = {}
        async for document in (await self._read()).scan("job", f"{case}/"):
            job = self._house.services.meta.jobs.get(JobId(document.id)) or _decode_job(document.body)
            found.setdefault(item_views.generation_of(job.id)[0], []).append(job)
        for submissions in found.values():
            submissions.sort(key=lambda job: item_views.generation_of(job.id)[1])
        return found

    async def why(self, subject: str) -> Explanation:
        told = await reasons.why(self, self._house, subject)
        return reasons.mended(told, await self._repairs_of(told.subject))

    async def _repairs_of(self, subject: str) -> list[DecisionView]:
        """The repairs of an item, of a job's item, or of a whole case, the newest first."""
        case, colon, item = subject.partition(":")
        if not colon and "/" in subject:
            job = await self.job(subject)
            case, item = job.case, job.spec.item
        return await self.decisions(DecisionQuery(case=case, item=item, limit=REPAIRS_TOLD))

    # Jobs and pilots

    async def jobs(self, query: JobQuery) -> list[Job]:
        return (await self.find_jobs(query)).rows

    async def find_jobs(self, query: JobQuery) -> JobPage:
        query, store = await self._of_case(query), await self._searchable(query)
        page = await job_search.search(store, self._house.services.meta, query, self._house.clock.now())
        await self._settled()
        return page

    async def count_jobs(self, query: JobQuery, *, by: str = "") -> Counts:
        query, store = await self._of_case(query), await self._searchable(query)
        counts = await job_search.count(store, self._house.services.meta, query, by, self._house.clock.now())
        await self._settled()
        return counts

    async def _of_case(self, query: JobQuery) -> JobQuery:
        return msgspec.structs.replace(query, case=await self._id(query.case)) if query.case else query

    async def job(self, job: str) -> Job:
        return job_search.shown(self._house.services.meta, await self._job(job))

    async def _job(self, job: str) -> Job:
        case, _, serial = job.rpartition("/")
        id = JobId(f"{await self._id(case)}/{serial}") if case else JobId(job)
        live = self._house.services.meta.jobs.get(id)
        if live is not None:
            return live
        found = await (await self._read()).get("job", id)
        if found is None:
            raise NotFound(f"there is no job {job!r}; `mendflow jobs` lists them")
        return _decode_job(found.body)

    async def newest_submission(self, job: str) -> Job:
        """The job as it was submitted last; when it is over, with the attempts of all its submissions."""
        known = await self._job(job)
        base, _ = item_views.generation_of(known.id)
        if base != known.id:
            return known
        later = [await self._job(found.id) async for found in (await self._read()).scan("job", f"{base}~")]
        submissions = sorted([known, *later], key=lambda each: item_views.generation_of(each.id)[1])
        return item_views.whole_story(submissions) if submissions[-1].finished else submissions[-1]

    async def log(self, job: str) -> str:
        found = await self.newest_submission(job)
        if found.outcome is not None:
            return found.outcome.log_tail or (found.outcome.fault.log_tail if found.outcome.fault else "")
        return self._house.services.meta.log_tail(found.id)

    async def pilots(self) -> list[PilotView]:
        return await self._overview().pilots(self._house.services.meta.pilot_views())

    async def servers(self) -> list[ServerView]:
        return self._overview().servers(self._house.health())

    async def stats(self, *, running: int = 0, everywhere: bool = True) -> list[StatsView]:
        return await look_everywhere(self._house, self._elsewhere if everywhere else None, running=running)

    def _overview(self) -> Overview:
        return Overview(self._house.membership, self._house.neighbours, self._house.meter)

    async def sync(self, request: SyncRequest, *, who: str = "") -> SyncAnswer:
        return await self._house.services.exchange.sync(request, who)

    # People's work

    async def tasks(self, *, role: str = "", state: str = "", case: str = "", limit: int = 100) -> list[TaskView]:
        id = await self._id(case) if case else ""
        return await self._house.services.tasks.search(role=role, state=state, case=id, limit=limit)

    async def task(self, task: str) -> TaskView:
        return (await self._house.services.tasks.find(await self._task_id(task))).view()

    async def claim(self, task: str, *, who: str) -> TaskView:
        return await self._answered(await self._house.services.tasks.claim(await self._task_id(task), who))

    async def release(self, task: str, *, who: str) -> TaskView:
        return await self._answered(await self._house.services.tasks.release(await self._task_id(task), who))

    async def complete(self, task: str, outputs: Value, *, who: str, comment: str = "") -> TaskView:
        id = await self._task_id(task)
        return await self._answered(await self._house.services.tasks.end(id, "completed", outputs, who, comment))

    async def reject(self, task: str, *, who: str, comment: str = "") -> TaskView:
        id = await self._task_id(task)
        return await self._answered(await self._house.services.tasks.end(id, "rejected", None, who, comment))

    async def _answered(self, view: TaskView) -> TaskView:
        await self._settled()
        return view

    async def _task_id(self, task: str) -> str:
        case, _, serial = task.rpartition("/")
        return f"{await self._id(case)}/{serial}" if case == LAST else task

    # Kept files, notices, health

    async def keep(self, name: str, chunks: AsyncIterator[bytes], *, sha256: str = "") -> FileRef:
        return await self._house.keeper.keep(Path(name).name, chunks, sha256=sha256)

    def kept(self, sha256: str) -> AsyncIterator[bytes]:
        return self._house.keeper.kept(sha256)

    async def kept_size(self, sha256: str) -> int:
        size = await self._house.keeper.size(sha256)
        if size is None:
            raise NotFound(f"no file with the digest {sha256} is kept here")
        return size

    async def notices(self, limit: int = 100) -> list[Happening]:
        return await self._house.services.notices.latest(limit)

    async def health(self) -> Health:
        return self._house.health()

    # Archives

    async def export(
        self, cases: Sequence[str], *, everything: bool = False, where: str = "", files: bool = True, who: str
    ) -> AsyncIterator[bytes]:
        desk, chosen = ArchiveDesk(self._house), [await self._id(case) for case in cases]
        query = CaseQuery(where=where, order="started", limit=EXPORTED_PAGE) if everything or where else None
        while query is not None:
            page = await self.find_cases(query)
            chosen += [view.id for view in page.rows]
            query = msgspec.structs.replace(query, after=page.next) if page.next else None
        for case in chosen:
            await self._document(case)
            if server := await desk.elsewhere(root_of(case)):
                raise Conflict(f"case {case} lives on server {server}; export it from there, by --server")
        return desk.export(chosen, files=files, everything=everything, by=who)

    async def import_archive(
        self,
        chunks: AsyncIterator[bytes],
        *,
        as_new: bool = False,
        skip_existing: bool = False,
        resume: bool = False,
        who: str,
    ) -> ImportReport:
        with tempfile.TemporaryFile() as spool:
            async for chunk in chunks:
                await asyncio.to_thread(spool.write, chunk)
            desk = ArchiveDesk(self._house)
            return await desk.take(spool, as_new=as_new, skip_existing=skip_existing, resume=resume, by=who)

    # Names

    async def _id(self, case: str, *, flow: str = "") -> CaseId:
        if case != LAST:
            return CaseId(case)
        where = [Where("parent", None), Where("mends", None), Where("void", None)]
        where += [Where("flow", flow)] if flow else []
        store = await self._read()
        newest = await store.search(CASE_KIND, where, order_by="started_at", descending=True, limit=1)
        if not newest:
            raise NotFound("there is no case yet, so there is no last one")
        return CaseId(newest[0].id)

    async def _document(self, case: CaseId) -> CaseDocument:
        live = self._house.services.manager.live.get(case)
        if live is not None:
            return live.document
        found = await (await self._read()).get(CASE_KIND, case)
        if found is None:
            raise NotFound(f"there is no case {case!r}; `mendflow cases` lists them")
        return _decode_case(found.body)

    async def _read(self) -> Store:
        """The store, when it has caught up with what happened here: what has left memory is then to be found there."""
        await self._settled()
        return self._house.store

    async def _searchable(self, query: JobQuery | CaseQuery) -> Store:
        """The store, when a search with a condition finds there what happened before it. Lists that are asked for again
        and again do not wait for that, and a page after the first has waited already."""
        store = await self._read()
        if query.where and not query.after:
            await store.refresh()
        return store

    async def _settled(self) -> None:
        await self._house.services.ledger.settled()
