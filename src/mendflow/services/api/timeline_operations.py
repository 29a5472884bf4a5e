"""The part of the domain that shows a case over time.

The first answer about a large case does not wait until all of it is known: its first items, and the counts that the
case keeps anyway, are told at once, while the rest is read. Whoever asks again is told of all."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import Decision
from mendflow.core.model.timelines import TimelineBand, TimelineRow, TimelineView
from mendflow.core.model.views import CaseView, ItemView, NameCount
from mendflow.lazy import LazyModule
from mendflow.services.api.item_list import ItemList
from mendflow.services.api.paced_answers import PacedAnswers
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import EngineCaseId
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import FieldCondition

if TYPE_CHECKING:
    from mendflow.services.api import timeline_bars, timeline_index
    from mendflow.services.api.timeline_index import TimedEntry, TimelineIndex
else:
    timeline_bars = LazyModule("mendflow.services.api.timeline_bars")
    timeline_index = LazyModule("mendflow.services.api.timeline_index")

FIRST_ANSWER_S: Final = 0.2
"""How long an answer waits for all of a case to be read."""
CASES_KEPT: Final = 16
ITEMS_KEPT: Final = 1_000_000
DECISIONS_READ: Final = 2_000


class _Wanted(NamedTuple):
    """What was asked for. `begin` and `end` are 0 where the whole time is meant."""

    begin: Instant
    end: Instant
    name: str
    limit: int
    after: str

    @property
    def is_all(self) -> bool:
        return not (self.begin or self.end or self.name)


class TimelineOperations(ViewOperations):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._indexes: OrderedDict[CaseId, TimelineIndex] = OrderedDict()
        self._builds: dict[CaseId, asyncio.Task[TimelineIndex]] = {}
        self._refreshed: PacedAnswers[None] = PacedAnswers(server.meter)
        self._selected: PacedAnswers[tuple[list[TimedEntry], list[TimelineBand]]] = PacedAnswers(server.meter)

    async def case_timeline(
        self, case: str, *, begin: int = 0, end: int = 0, name: str = "", limit: int = 500, after: str = ""
    ) -> TimelineView:
        if begin and end and begin > end:
            raise InvalidRequest("`from` is after `to`: give an earlier one, or leave one of them out", field="from")
        wanted = _Wanted(begin, end, name, limit, after)
        if (foreign := self._foreign(case)) is not None:
            view = await self.foreign_view(foreign)
            return await self._of_views(view, await self.foreign_items(foreign), wanted, foreign)
        view = await self.case(case)
        document = await self._document(view.id)
        if document.mends is not None:  # an exlet is small, and its steps stand in its journal alone
            found = [each async for each in (await self._items(view.id)).rows()]
            return await self._of_views(view, found, wanted, EngineCaseId("", view.id))
        index = await self._index(document)
        if index is None:
            return await self._first_answer(view, document, wanted)
        return await self._of_index(view, index, wanted)

    # The index

    async def _index(self, document: CaseDocument) -> "TimelineIndex | None":
        """What is known of the case; None if it is still being read."""
        known = self._indexes.get(document.id)
        if known is not None and (known.document.reopened != document.reopened):
            del self._indexes[document.id]
            known = None
        if known is None:
            task = self._builds.get(document.id)
            if task is None:
                task = self._builds[document.id] = asyncio.create_task(self._build(document))
                task.add_done_callback(lambda _: self._builds.pop(document.id, None))
            done, _ = await asyncio.wait({task}, timeout=FIRST_ANSWER_S)
            return task.result() if done else None
        self._indexes.move_to_end(document.id)
        if known.document.live:
            await self._refreshed.get(document.id, lambda: self._refresh(known, document))
        return known

    async def _build(self, document: CaseDocument) -> "TimelineIndex":
        store, live = await self._read(), self._server.runtime.manager.live.get(document.id)
        index = timeline_index.TimelineIndex(msgspec.structs.replace(document))
        last = live.case.last_serial if live is not None else document.serials
        await index.build(self._server.runtime, store, last)
        self._indexes[document.id] = index
        while len(self._indexes) > 1 and (
            len(self._indexes) > CASES_KEPT or sum(each.read for each in self._indexes.values()) > ITEMS_KEPT
        ):
            self._indexes.popitem(last=False)
        return index

    async def _refresh(self, index: "TimelineIndex", document: CaseDocument) -> None:
        """What is over by now is read for the last time."""
        seen = msgspec.structs.replace(document)
        await index.refresh(self._server.runtime, await self._read(), await self._items(document.id))
        index.document = seen

    # Answers

    async def _of_index(self, view: CaseView, index: "TimelineIndex", wanted: _Wanted) -> TimelineView:
        now = self._server.clock.now()
        begin, end = wanted.begin or view.started_at, wanted.end or view.ended_at or now
        first, key = _position(wanted.after), (view.id, wanted.begin, wanted.end, wanted.name)
        found, folded = await self._selected.get(key, lambda: _select(index, wanted, begin, end, now))
        page = found[first : first + wanted.limit]
        return TimelineView(
            start=begin,
            end=max(begin, end),
            rows=await self._rows(view.id, page, now),
            total=len(found),
            folded=folded,
            cursor=str(first + len(page)) if first + len(page) < len(found) else "",
            items=index.read,
            read=index.read,
        )

    async def _rows(self, case: CaseId, page: list["TimedEntry"], now: Instant) -> list[TimelineRow]:
        items = await self._items(case)
        serials, noted = [each.serial for each in page if each.serial], [each.item for each in page if not each.serial]
        views = {view.item: view async for view in items.views_of(serials, noted)}
        for each in page:
            views.setdefault(each.item, _bare_view(case, each))
        repairs = await self._repairs(EngineCaseId("", case))
        return [timeline_bars.row_of(views[each.item], repairs.get(each.item, ()), now) for each in page]

    async def _first_answer(self, view: CaseView, document: CaseDocument, wanted: _Wanted) -> TimelineView:
        """Its first items, in the order in which they began, and how many there are of each name."""
        now, items = self._server.clock.now(), await self._items(document.id)
        rows, repairs = list[TimelineRow](), await self._repairs(EngineCaseId("", document.id))
        async for each in _some(items, wanted.limit):
            if not wanted.name or each.name == wanted.name:
                rows.append(timeline_bars.row_of(each, repairs.get(each.item, ()), now))
        end = view.ended_at or now
        named = [each for each in view.counts if not wanted.name or each.name == wanted.name]
        counted = [_counted_band(each, view.started_at, end) for each in named]
        total = sum(band.count for band in counted)
        return TimelineView(
            start=wanted.begin or view.started_at,
            end=wanted.end or end,
            rows=rows,
            total=total,
            folded=counted,
            cursor=str(len(rows)) if len(rows) < total else "",
            items=total,
            read=len(rows),
        )

    async def _of_views(
        self, view: CaseView, items: list[ItemView], wanted: _Wanted, case: EngineCaseId
    ) -> TimelineView:
        """Of few items that are known one by one."""
        now, repairs = self._server.clock.now(), await self._repairs(case)
        begin, end = wanted.begin or view.started_at, wanted.end or view.ended_at or now
        indexed = [
            (
                timeline_index.TimedEntry(
                    each.serial, each.item, each.name, each.kind, each.state, start, start, each.ended_at
                ),
                each,
            )
            for each in items
            for start in (each.created_at or each.ended_at or view.started_at,)
            if not wanted.name or each.name == wanted.name
        ]
        found = [pair for pair in indexed if wanted.is_all or pair[0].overlaps(begin, end)]
        found.sort(key=lambda pair: (pair[0].start, pair[0].serial))
        first = _position(wanted.after)
        page = found[first : first + wanted.limit]
        return TimelineView(
            start=begin,
            end=max(begin, end),
            rows=[timeline_bars.row_of(each, repairs.get(each.item, ()), now) for _, each in page],
            total=len(found),
            folded=timeline_index.bands((entry for entry, _ in found), begin, end, now),
            cursor=str(first + len(page)) if first + len(page) < len(found) else "",
            items=len(items),
            read=len(items),
        )

    async def _repairs(self, case: EngineCaseId) -> dict[str, list[Decision]]:
        where = [FieldCondition("case", case.case), FieldCondition("engine", case.engine)]
        found: dict[str, list[Decision]] = {}
        for each in await self._server.runtime.exceptions.decisions.search(where, limit=DECISIONS_READ):
            if each.item is not None:
                found.setdefault(each.item, []).append(each)
        return found


async def _select(
    index: "TimelineIndex", wanted: _Wanted, begin: Instant, end: Instant, now: Instant
) -> tuple[list["TimedEntry"], list[TimelineBand]]:
    found = index.items()
    if wanted.name:
        found = [each for each in found if each.name == wanted.name]
    if not wanted.is_all:
        found = [each for each in found if each.overlaps(begin, end)]
    return found, timeline_index.bands(found, begin, end, now)


_WORDS: Final = {
    "completed": "done",
    **{word: word for word in ("running", "waiting", "failed", "cancelled", "cached", "skipped")},
}


def _counted_band(count: NameCount, start: Instant, end: Instant) -> TimelineBand:
    """What is known of a name before its items are read."""
    states = {state: number for state, word in _WORDS.items() if (number := getattr(count, word))}
    return TimelineBand(
        name=count.name, kind=count.kind, count=sum(states.values()), start=start, end=end, states=states
    )


async def _some(items: ItemList, limit: int) -> AsyncIterator[ItemView]:
    number = 0
    async for each in items.rows():
        yield each
        number += 1
        if number == limit:
            return


def _position(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal() or len(after) > 12:
        raise InvalidRequest(
            f"`after` is {after!r:.80}, which is no answer's `cursor`; give that of the last answer", field="after"
        )
    return int(after)


def _bare_view(case: CaseId, each: "TimedEntry") -> ItemView:
    """An item that waits for a message or a time, of which there is no document."""
    return ItemView(
        case=case,
        item=each.item,
        name=each.name,
        kind=each.kind,
        serial=each.serial,
        state="waiting",
        created_at=each.start,
    )
