"""The part of the domain that shows cases, items and jobs: one by name, or those that a search finds.

What is live is read from memory and what is over from the store; rows look the same either way."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.engine.files_beside import stored_beside
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_files import FlowFileView
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Job
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import (
    CaseHold,
    CasePage,
    CaseQuery,
    CaseView,
    CountsView,
    ItemPage,
    ItemView,
    JobPage,
    JobQuery,
    LogView,
)
from mendflow.core.query.search import Search
from mendflow.core.query.search_fields import ITEMS
from mendflow.lazy import LazyModule
from mendflow.services.api.cases_for_people import cases_for_people, held_failures
from mendflow.services.api.engine_cases import EngineCaseOperations, view_of_case
from mendflow.services.api.item_list import ItemList, split_skip, with_skip
from mendflow.services.api.job_logs import JobLogs
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.base.paging import EXAMINED_MAX
from mendflow.services.base.search_budget import SearchBudget
from mendflow.services.cases import item_views
from mendflow.services.cases.case_search import CaseSearch, asks_for_people, asks_for_words
from mendflow.services.cases.flow_file_store import NO_FILE, NO_FILE_OF_CALLED, NO_FILE_OF_EXLET
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.cases.suspensions import holds_of
from mendflow.services.recovery.decisions import EngineCaseId
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.job_search import JobSearch, public_job

if TYPE_CHECKING:
    from mendflow.services.api import row_reasons
else:
    row_reasons = LazyModule("mendflow.services.api.row_reasons")

CONDITION_MAX = 20_000
"""So many items are asked about a cheap condition for one answer, and fewer about one that takes much work: the answer
is there soon, and says from where to continue."""


LISTED_BYTES_MAX: Final = 64 << 10
"""Cases of which more is stored are listed without their larger inputs and outputs."""
LISTED_VALUE_BYTES_MAX: Final = 4 << 10
TASKS_LISTED: Final = 10


class ViewOperations(EngineCaseOperations):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._logs = JobLogs(server)

    # Cases

    async def cases(
        self,
        *,
        flow: str = "",
        status: str = "",
        limit: int = 100,
        offset: int = 0,
        sight: Sight = EVERYTHING,
    ) -> list[CaseView]:
        """So many, the newest first, however many answers of a search that takes."""
        query, rows = CaseQuery(flow=flow, status=status, limit=limit, offset=offset), list[CaseView]()
        while True:
            page = await self.find_cases(query, sight=sight)
            rows += page.rows
            if not page.next or len(rows) >= limit:
                return rows
            query = msgspec.structs.replace(query, limit=limit - len(rows), offset=0, after=page.next)

    async def each_case(self, query: CaseQuery, *, sight: Sight = EVERYTHING) -> AsyncGenerator[CaseView, None]:
        """All cases that match, in the query's order, of which `limit` are in memory at a time."""
        while True:
            page = await self.find_cases(query, sight=sight)
            for view in page.rows:
                yield view
            if not page.next:
                return
            query = msgspec.structs.replace(query, offset=0, after=page.next)

    async def find_cases(self, query: CaseQuery, *, sight: Sight = EVERYTHING) -> CasePage:
        """Cases that match the query's condition, in its order, page by page. Raises InvalidSearch."""
        page = await (await self._case_search(query, sight)).find()
        rows, yielder = list[CaseView](), LoopYielder()
        for found in page.found:
            await yielder.pause()
            view = self._view(found.document)
            rows.append(view if len(found.body) <= LISTED_BYTES_MAX else without_large_values(view))
        await self._settled()
        return CasePage(rows=rows, next=page.next, looked_at=page.looked_at)

    async def count_cases(
        self, query: CaseQuery = CaseQuery(), *, by: str = "", sight: Sight = EVERYTHING
    ) -> CountsView:
        counts = await (await self._case_search(query, sight, by)).count(by)
        await self._settled()
        return counts

    async def _case_search(self, query: CaseQuery, sight: Sight, by: str = "") -> CaseSearch:
        store = await self._searchable(query)
        live, now = self._server.runtime.manager.live, self._server.clock.now()
        people = await cases_for_people(store) if asks_for_people(query, by) else frozenset[str]()
        held = await held_failures(store) if asks_for_words(query, by) else {}
        return CaseSearch(store, live, query, now, sight, people, held)

    async def case(self, case: str) -> CaseView:
        if (foreign := self._foreign(case)) is not None:
            return await self.foreign_view(foreign)
        return self._view(await self._document(await self._id(case)))

    async def flow_of(self, case: str) -> Flow:
        """The flow that the case was started with, which may not be the newest version."""
        document = await self._document(await self._id(case))
        return await self._server.runtime.manager.flow_of(document.id)

    async def flow_file_of(self, case: str) -> FlowFileView:
        """The file that the flow of the case was read from, in the version that it was started with."""
        document = await self._document(await self._id(case))
        reason = NO_FILE_OF_EXLET if document.mends else NO_FILE_OF_CALLED if document.parent else NO_FILE
        found = await self._server.runtime.flows.files.find(document.flow, document.digest, reason)
        return replace(found, beside=stored_beside(await self._server.runtime.manager.flow_of(document.id)))

    def _view(self, document: CaseDocument) -> CaseView:
        if document.engine:
            name = EngineCaseId(document.engine, CaseId(document.id.removeprefix(f"{document.engine}:")))
            found = self._engines.live_case(name)
            return view_of_case(found, self._server.runtime.manager.live) if found is not None else document.view()
        live = self._server.runtime.manager.live.get(document.id)
        if live is None or not live.document.live:
            return document.view()
        held = live.case.status == "suspended" or live.case.item_holders or live.document.ending
        view = live.view()
        if waiting := self._server.runtime.administration.held_items(document.id):
            view = msgspec.structs.replace(view, held=waiting)
        if asked := self._server.runtime.tasks.open_below(document.id):
            view = msgspec.structs.replace(
                view, tasks=[task.of_case() for task in asked[:TASKS_LISTED]], tasks_open=len(asked)
            )
        if self._server.membership.shared:
            view = msgspec.structs.replace(view, server=self._server.membership.id)
        if self._server.stopped.holds(document.id):
            view = msgspec.structs.replace(view, stopped=True)
        return msgspec.structs.replace(view, holds=self._holds(live)) if held else view

    def _holds(self, live: LiveCase) -> list[CaseHold]:
        return holds_of(live, self._server.runtime.manager.live)

    # Items

    async def items(
        self, case: str, *, state: str = "", name: str = "", limit: int = 1000, offset: int = 0, after: str = ""
    ) -> list[ItemView]:
        """In the order in which they last began. `after` is the `place` of an item: the page begins after it. The cost
        is that of the items on the page and of those that `offset`, a state or a name skips."""
        id, found = await self._id(case), list[ItemView]()
        while True:
            missing = offset + limit - len(found)
            page = await self.find_items(id, state=state, name=name, limit=missing, after=after)
            found, after = found + page.rows, page.next
            if not after or len(found) >= offset + limit:
                return found[offset:]

    async def items_named(self, case: CaseId, names: Collection[str]) -> list[ItemView]:
        """All items of these activities, in the order in which they last began."""
        return [view async for view in (await self._items(case)).rows() if view.name in names]

    async def find_items(
        self,
        case: str,
        *,
        state: str = "",
        name: str = "",
        where: str = "",
        also: str = "",
        limit: int = 1000,
        offset: int = 0,
        after: str = "",
    ) -> ItemPage:
        """Items that match, page by page. What the page before could not skip any more of its offset, its `next`
        says: it is skipped before this page's offset."""
        after, skip = split_skip(after)
        offset += skip
        found, now = list[ItemView](), self._server.clock.now()
        searches = [Search(ITEMS, each, now) for each in (where, also) if each]
        budget = SearchBudget(CONDITION_MAX if searches and not offset else EXAMINED_MAX)
        yielder = LoopYielder()
        async for view in self._item_rows(case, after, state):
            await yielder.pause()
            budget.look()
            passed = (state and view.state != state) or (name and view.name != name)
            if not passed and _all_hold(searches, view, budget):
                offset -= 1
                found += [view] if offset < 0 else []
            if len(found) == limit or budget.is_spent:
                return ItemPage(rows=found, next=with_skip(view.place, offset), looked_at=budget.looked_at)
        return ItemPage(rows=found, looked_at=budget.looked_at)

    async def _item_rows(self, case: str, after: str, state: str) -> AsyncIterator[ItemView]:
        if (foreign := self._foreign(case)) is not None:
            for told in await self.foreign_items(foreign):
                if not after or int(told.place) > int(after):
                    yield told
            return
        items = await self._items(await self._id(case), row_reasons.RowReasons(self._server))
        async for view in items.rows(after, state):
            yield view

    async def item(self, case: str, item: str) -> ItemView:
        """The item; of one that was restarted, the run that is under way, or else the last one."""
        if (foreign := self._foreign(case)) is not None:
            return await self.foreign_item(foreign, item)
        id = await self._id(case)
        found = await (await self._items(id)).find(ItemId(item))
        if found is None:
            raise NotFound(f"case {id} has no item {item!r}; `mendflow items {id}` lists them")
        return found

    async def _items(self, case: CaseId, reasons: "row_reasons.RowReasons | None" = None) -> ItemList:
        return ItemList(self._server.runtime, await self._read(), await self._document(case), reasons)

    # Jobs

    async def jobs(self, query: JobQuery) -> list[Job]:
        """All of them are looked at, in as many steps as it takes; `find_jobs` gives a page."""
        rows, limit = list[Job](), query.limit
        while True:
            page = await self.find_jobs(query)
            rows += page.rows
            if not page.next or len(rows) >= limit:
                return rows
            query = msgspec.structs.replace(query, limit=limit - len(rows), offset=0, after=page.next)

    async def find_jobs(self, query: JobQuery, *, sight: Sight = EVERYTHING) -> JobPage:
        page = await (await self._job_search(query, sight)).find()
        reasons, yielder = row_reasons.RowReasons(self._server), LoopYielder()
        for job in page.rows:
            await yielder.pause()
            job.why = reasons.of_job(self._server.runtime.meta.jobs.get(job.id, job))
        await self._settled()
        return page

    async def count_jobs(self, query: JobQuery = JobQuery(), *, by: str = "", sight: Sight = EVERYTHING) -> CountsView:
        counts = await (await self._job_search(query, sight)).count(by)
        await self._settled()
        return counts

    async def _job_search(self, query: JobQuery, sight: Sight) -> JobSearch:
        query, store = await self._of_case(query, sight), await self._searchable(query)
        return JobSearch(store, self._server.runtime.meta, query, self._server.clock.now(), sight)

    async def _of_case(self, query: JobQuery, sight: Sight) -> JobQuery:
        return msgspec.structs.replace(query, case=await self._id(query.case, sight=sight)) if query.case else query

    async def job(self, job: str) -> Job:
        return public_job(self._server.runtime.meta, await self._job(job))

    async def newest_submission(self, job: str) -> Job:
        """The newest submission of the job; when it is over, with the attempts of all its submissions."""
        submissions = await self._submissions(job)
        return item_views.merged_submissions(submissions) if submissions[-1].finished else submissions[-1]

    async def _submissions(self, job: str) -> list[Job]:
        """All submissions of a job, the oldest first; of a later one, that one."""
        known = await self._job(job)
        base, _ = item_views.generation_of(known.id)
        if base != known.id:
            return [known]
        later = [await self._job(found.id) async for found in (await self._read()).scan("job", f"{base}~")]
        return sorted([known, *later], key=lambda each: item_views.generation_of(each.id)[1])

    async def log(self, job: str, *, attempt: int = 0, offset: int = 0) -> LogView:
        """A part of what an attempt of the job printed, from a byte on; of the last attempt unless one is given."""
        return await self._logs.read(await self._submissions(job), attempt=attempt, offset=offset)


def _all_hold(searches: Sequence[Search], view: ItemView, budget: SearchBudget) -> bool:
    if not searches:
        return True
    data = msgspec.to_builtins(view)
    return all(budget.holds(each, data) for each in searches)


def _is_large(value: Value) -> bool:
    size = len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
    return size > LISTED_VALUE_BYTES_MAX


def without_large_values(view: CaseView) -> CaseView:
    inputs = {name: value for name, value in view.inputs.items() if not _is_large(value)}
    outputs = {name: value for name, value in view.outputs.items() if not _is_large(value)}
    left_out = [f"inputs.{name}" for name in sorted(view.inputs.keys() - inputs)]
    left_out += [f"outputs.{name}" for name in sorted(view.outputs.keys() - outputs)]
    return msgspec.structs.replace(view, inputs=inputs, outputs=outputs, left_out=left_out)
