"""The items of a case in the order in which they last began, one page at a time.

Every order of an item has a serial, and the item's documents are found by it: so a page reads the documents of its own
serials, and nothing else of the case. An item without an order, such as a skipped one, is noted with its *place*: the
serial that would have come next. An item that was restarted has several runs, shown as one row at the place of the
last."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mendflow.core.engine import LiveItem, find_item, item_of, live_items
from mendflow.core.engine.elements import element_of_live
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import Instant, ItemId, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.repair import Decision, ExceptionType
from mendflow.core.model.views import ITEM_END_STATES, ItemState, ItemView
from mendflow.core.recovery.conversation import Conversation
from mendflow.core.recovery.ids import generation_of, serial_of
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, root_of
from mendflow.services.cases import item_views
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND, CaseDocument, ItemDocument, ItemRuns, LiveCase
from mendflow.services.cases.user_tasks import TASK_KIND, TaskDocument
from mendflow.services.observe import history
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from mendflow.services.runtime.server import Runtime
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

if TYPE_CHECKING:
    from mendflow.services.api.row_reasons import RowReasons

WINDOW = 500
RUNS_MAX = 1_000
FEW = 500
NAMED_MAX = 5_000
"""So many documents are read, at most, to tell which items can be in a state."""
_decode_case = msgspec.json.Decoder(CaseDocument).decode
_decode_item = msgspec.json.Decoder(ItemDocument).decode
_decode_job = msgspec.json.Decoder(Job).decode
_decode_runs = msgspec.json.Decoder(ItemRuns).decode
_decode_talk = msgspec.json.Decoder(Conversation).decode
_decode_task = msgspec.json.Decoder(TaskDocument).decode


class ItemCursor(NamedTuple):
    """The position of a row: items noted before a serial come before it, in the order of `number`."""

    serial: int
    number: int = 0  # 0: the item with the serial itself

    def __str__(self) -> str:
        return f"{self.serial}+{self.number}" if self.number else str(self.serial)

    @property
    def order(self) -> tuple[int, int, int]:
        return self.serial, not self.number, self.number


def parse_cursor(text: str) -> ItemCursor:
    serial, plus, number = text.partition("+")
    if not serial.isdecimal() or (plus and not number.isdecimal()) or len(text) > 30:
        raise RequestError(f"`after` is {text!r:.80}, which is no item's `place`; give the place of a page's last item")
    return ItemCursor(int(serial), int(number or 0))


SKIP_MARK = "~"
"""Before the number of rows that are still to be skipped after a place."""


def with_skip(place: str, skip: int) -> str:
    """From where a page continues that has not yet skipped all that it was asked to."""
    return f"{place}{SKIP_MARK}{skip}" if skip > 0 else place


def split_skip(after: str) -> tuple[str, int]:
    """The place to continue after, and how many rows are to be skipped from there on."""
    place, mark, skip = after.partition(SKIP_MARK)
    if mark and (not place or len(skip) > 30 or not (skip.isascii() and skip.isdecimal())):
        raise RequestError(f"`after` is {after!r:.80}; give the `Mendflow-Next` of the page before, unchanged")
    return place, int(skip or 0)


class SerialDocuments(NamedTuple):
    """The documents of some serials."""

    jobs: dict[int, list[Job]]  # with all submissions, the oldest first
    tasks: dict[int, TaskDocument]
    called: dict[int, CaseDocument]

    def item(self, serial: int) -> ItemId | None:
        if serial in self.jobs:
            return self.jobs[serial][0].spec.item
        if serial in self.tasks:
            return self.tasks[serial].item
        return self.called[serial].parent_item if serial in self.called else None

    def serials(self) -> set[int]:
        return {*self.jobs, *self.tasks, *self.called}


class ItemList:
    """The items of one case. `reasons` says why each of them is as it is; without it, nothing is said of that."""

    def __init__(
        self, runtime: Runtime, store: Store, document: CaseDocument, reasons: "RowReasons | None" = None
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._document = document
        self._case = document.id
        self._reasons = reasons
        self._live: LiveCase | None = runtime.manager.live.get(document.id)
        self._held: dict[ItemId | None, Decision] | None = None  # what waits for a person, once somebody has asked
        self._few: dict[str, dict[str, StoredDocument] | None] = {}

    async def rows(self, after: str = "", state: str = "") -> AsyncIterator[ItemView]:
        """Every item after a place, or from the first on. With a state, those may be left out that are not in it: so
        the few that failed of very many are found without reading all."""
        if self._document.mends is not None:
            for view in await self._exlet_views(parse_cursor(after or "0").serial):
                yield view
            return
        begin = parse_cursor(after) if after else ItemCursor(0)
        noted = self._rows_of_notes(begin)
        held: tuple[ItemView, ItemCursor] | None = await anext(noted, None)
        async for view, place in self._rows_with_serial(begin, state):
            while held is not None and held[1].order < place.order:
                yield _with_cursor(*held)
                held = await anext(noted, None)
            yield _with_cursor(view, place)
        while held is not None:
            yield _with_cursor(*held)
            held = await anext(noted, None)
        for view, place in self._rows_without_serial(begin):
            yield _with_cursor(view, place)

    async def find(self, item: ItemId) -> ItemView | None:
        """One item, by its id: its last run, also if that is only a note."""
        serials = await self._serials_of(item)
        found = [view async for view, _ in self._views(sorted(serials)) if view.item == item]
        kept = await self._store.get(ITEM_KIND, f"{self._case}/{item}")
        noted = _decode_item(kept.body) if kept is not None else None
        if found and (noted is None or noted.serial <= found[-1].serial):
            return found[-1]
        if noted is not None:
            return self._with_hold(item_views.of_document(noted))
        rest = [view for view, _ in self._rows_without_serial(ItemCursor(0))]
        if self._document.mends is not None:
            rest += await self._exlet_views(0)
        return next((view for view in rest if view.item == item), None)

    async def views_of(self, serials: Iterable[int], noted: Iterable[ItemId] = ()) -> AsyncIterator[ItemView]:
        """The items whose last runs have these serials, and those that are only noted."""
        wanted = sorted(serials)
        for begin in range(0, len(wanted), WINDOW):
            async for view, place in self._views(wanted[begin : begin + WINDOW]):
                yield _with_cursor(view, place)
        for found in await self._store.get_many(ITEM_KIND, [f"{self._case}/{item}" for item in noted]):
            yield self._with_hold(item_views.of_document(_decode_item(found.body)))

    async def _serials_of(self, item: ItemId) -> set[int]:
        case = FieldCondition("case", self._case)
        jobs = await self._store.search(JOB_KIND, [case, FieldCondition("spec.item", item)], limit=RUNS_MAX)
        tasks = await self._store.search(TASK_KIND, [case, FieldCondition("item", item)], limit=RUNS_MAX)
        serials = {serial_of(found.id) for found in (*jobs, *tasks)}
        if self._live is not None and (now := find_item(self._live.case, item)) is not None:
            serials.add(now.serial)
        if not serials:
            called = (await self._runtime.manager.reader.cases_called_by(self._case)).get(item)
            serials |= {called.parent_serial} if called is not None else set()
        return serials - {0}

    # Items with a serial

    async def _rows_with_serial(self, after: ItemCursor, state: str = "") -> AsyncIterator[tuple[ItemView, ItemCursor]]:
        last = self._live.case.last_serial if self._live is not None else await self._last_serial()
        first = after.serial if after.number else after.serial + 1
        some = await self._serials_in(state) if state else None
        serials = range(first, last + 1) if some is None else sorted(each for each in some if first <= each <= last)
        for begin in range(0, len(serials), WINDOW):
            async for found in self._views(serials[begin : begin + WINDOW]):
                yield found

    async def _serials_in(self, state: str) -> set[int] | None:
        """The serials of which an item can be in a state; None if they are too many to be named. An item that is not
        over is one that the engine waits for; what the others came to is in the documents of their jobs, tasks and
        called cases, or in a note."""
        if state in ("completed", "cached"):
            return None
        await self._store.refresh()
        case, states = FieldCondition("case", self._case), list[JobState]()
        if state in ("failed", "cancelled"):
            states = [JobState.FAILED]
        elif state not in ITEM_END_STATES and self._live is None:
            states = [JobState.AVAILABLE, JobState.RUNNING]
        jobs = [(JOB_KIND, [case, FieldCondition("state", str(each))]) for each in states]
        wanted = [*jobs, (TASK_KIND, [case]), (ITEM_KIND, [case, FieldCondition("state", state)])]
        serials = {each.parent_serial for each in await self._runtime.manager.reader.cases_begun_by(self._case)}
        for kind, where in wanted:
            found = await self._store.search(kind, where, limit=NAMED_MAX)
            if len(found) == NAMED_MAX:
                return None
            noted = kind == ITEM_KIND
            serials |= {_decode_item(each.body).serial if noted else serial_of(each.id) for each in found}
        if self._live is not None and state not in ITEM_END_STATES:
            serials |= {each.serial for each in live_items(self._live.case)}
        return serials - {0}

    async def _last_serial(self) -> int:
        """Only a case that was given up as unreadable does not know it."""
        if self._document.serials:
            return self._document.serials
        return max([serial_of(found.id) async for found in self._store.scan(JOB_KIND, f"{self._case}/")], default=0)

    async def _views(self, serials: Iterable[int]) -> AsyncIterator[tuple[ItemView, ItemCursor]]:
        """One view for each item whose last run has one of these serials."""
        serials = list(serials)
        asked = await self.documents(serials)
        live = {serial: now for serial in serials if (now := self._live_item(serial)) is not None}
        items = {item for serial in serials if (item := asked.item(serial))} | {now.item for now in live.values()}
        ids = [f"{self._case}/{item}" for item in items]
        runs = [_decode_runs(found.body) for found in await self._found(RUNS_KIND, ids)]
        noted = [_decode_item(found.body) for found in await self._found(ITEM_KIND, ids)]
        begun, counts_as = {each.item: each.serials for each in runs}, {each.item: each for each in noted}
        past = await self.documents({serial for each in runs for serial in each.serials})
        for serial in serials:
            view = self._view(asked, serial, live.get(serial))
            if view is None or (serial in (earlier := begun.get(view.item, [])) and serial not in live):
                continue
            view = self._with_suspension(item_views.as_forced(view, counts_as.get(view.item)), live.get(serial))
            view = self._with_hold(view)
            before = (self._view(past, each) for each in earlier if each != serial)
            view = item_views.with_earlier_runs(view, [each for each in before if each is not None])
            yield self._explained(view, asked.jobs.get(serial)), ItemCursor(serial)

    def _explained(self, view: ItemView, jobs: Sequence[Job] | None = None) -> ItemView:
        if self._reasons is None:
            return view
        said = self._reasons.of_item(view, jobs[-1] if jobs else None, self._live)
        return msgspec.structs.replace(view, why=said) if said != view.why else view

    def _with_suspension(self, view: ItemView, now: LiveItem | None) -> ItemView:
        """An item that waits and must not go on, or whose case must not, is suspended."""
        if now is None or self._live is None or view.state not in ("waiting", "staging"):
            return view
        held = now.suspended or self._live.case.status == "suspended"
        return msgspec.structs.replace(view, state="suspended") if held else view

    def _with_hold(self, view: ItemView) -> ItemView:
        """Whether it waits for a person, and by what it failed. A task that has expired, or a case that was called, is
        over when its failure is held, and knows nothing of that."""
        if self._live is None or (held := self._held_by(view.item)) is None:
            return view
        has_failed = held.type is ExceptionType.ABORT
        if view.state in ITEM_END_STATES and not (has_failed and view.state == "failed"):
            return view
        return msgspec.structs.replace(view, held=True, fault=view.fault or (held.fault if has_failed else None))

    def _held_by(self, item: ItemId) -> Decision | None:
        """The decision about it that waits for a person; of several, that about its failure."""
        if self._held is None:
            decisions = self._runtime.exceptions.decisions.of_tree(root_of(self._case))
            waiting = [each for each in decisions if each.state == "waiting" and each.case == self._case]
            waiting.sort(key=lambda each: each.type is ExceptionType.ABORT)
            self._held = {each.item: each for each in waiting}
        return self._held.get(item)

    async def documents(self, serials: Iterable[int]) -> SerialDocuments:
        ids = [f"{self._case}/{serial}" for serial in serials]
        called = [f"{self._case}.{serial}" for serial in serials]
        for found in await self._found(CONVERSATION_KIND, ids):
            ids += _decode_talk(found.body).submission_ids[1:]
        jobs: dict[int, list[Job]] = {}
        for found in await self._store.get_many(JOB_KIND, ids):
            job = self._runtime.meta.jobs.get(JobId(found.id)) or _decode_job(found.body)
            jobs.setdefault(serial_of(job.id), []).append(job)
        for submissions in jobs.values():
            submissions.sort(key=lambda job: generation_of(job.id))
        cases = [_decode_case(found.body) for found in await self._found(CASE_KIND, called, mark=".")]
        return SerialDocuments(
            jobs,
            {serial_of(found.id): _decode_task(found.body) for found in await self._found(TASK_KIND, ids)},
            # A case that a primitive started, as unwinding does, was not called by an item.
            {one.parent_serial: one for one in cases if one.parent_item is not None},
        )

    async def _found(self, kind: str, ids: Sequence[str], mark: str = "/") -> list[StoredDocument]:
        """The documents with these ids. Of a case that is over, the kinds of which it has few documents, or none, are
        read once for all pages."""
        if self._live is not None:
            return await self._store.get_many(kind, ids)
        if kind not in self._few:
            some = [each async for each in _first(self._store.scan(kind, f"{self._case}{mark}"), FEW)]
            self._few[kind] = {each.id: each for each in some} if len(some) < FEW else None
        few = self._few[kind]
        return (
            [few[id] for id in dict.fromkeys(ids) if id in few]
            if few is not None
            else await self._store.get_many(kind, ids)
        )

    def _view(self, asked: SerialDocuments, serial: int, now: LiveItem | None = None) -> ItemView | None:
        """The state or the outcome of a serial. A call is over when the calling case has recorded its end."""
        if serial in asked.jobs:
            jobs, meta = asked.jobs[serial], self._runtime.meta
            log, runs = meta.log_tail(jobs[-1].id), meta.runs(jobs[-1])
            return item_views.of_jobs(jobs, log, awaited=now is not None, runs=runs)
        if serial in asked.tasks:
            return item_views.of_task(asked.tasks[serial])
        called = asked.called.get(serial)
        if now is not None:
            return self._live_view(now, called.started_at if called is not None else 0)
        return item_views.of_called(called) if called is not None and not called.live else None

    # Items without a serial

    async def _rows_of_notes(self, after: ItemCursor) -> AsyncIterator[tuple[ItemView, ItemCursor]]:
        first, passed = (after.serial, after.number) if after.number else (after.serial + 1, 0)
        where = [FieldCondition("case", self._case), FieldCondition("place", first, "ge")]
        latest, number = first, passed
        while found := await self._store.search(ITEM_KIND, where, order_by="place", limit=WINDOW, offset=passed):
            noted = [_decode_item(each.body) for each in found]
            listed = (await self.documents({each.serial for each in noted if each.serial})).serials()
            for each in noted:
                latest, number = each.place, number + 1 if each.place == latest else 1
                if each.serial not in listed:
                    view = self._with_hold(item_views.of_document(each))
                    yield self._explained(view), ItemCursor(latest, number)
            passed += len(found)

    def _rows_without_serial(self, after: ItemCursor) -> Iterator[tuple[ItemView, ItemCursor]]:
        """Live items that wait only for messages or for a time: they come last."""
        if self._live is None:
            return
        end = self._live.place + 1
        items = (item for item in live_items(self._live.case) if not item.serial)
        waiting = (self._with_hold(self._live_view(item)) for item in items)
        for number, view in enumerate(waiting, 1):
            if ItemCursor(end, number).order > after.order:
                yield self._explained(view), ItemCursor(end, number)

    def _live_item(self, serial: int) -> LiveItem | None:
        if self._live is None:
            return None
        case = self._live.case
        found = item_of(case, serial)
        return find_item(case, found.item) if found is not None and found.serial == serial else None

    def _live_view(self, item: LiveItem, began_at: Instant = 0) -> ItemView:
        assert self._live is not None
        going_on: ItemState = "running" if item.kind == "call" else "waiting"
        state: ItemState = "suspended" if item.suspended else "staging" if item.phase == "staging" else going_on
        return ItemView(
            case=self._case,
            item=item.item,
            name=item.name,
            kind=item.kind,
            serial=item.serial,
            state=state,
            created_at=began_at or self._live.case.started_at,
            element=element_of_live(self._live.case, item.item),
        )

    async def _exlet_views(self, passed: int) -> list[ItemView]:
        """All items of an exlet, which is small: its primitives are known only from its journal."""
        found = [view async for view, _ in self._rows_with_serial(ItemCursor(0)) if view.kind != "mend"]
        found += [view async for view, _ in self._rows_of_notes(ItemCursor(0))]
        found += [view for view, _ in self._rows_without_serial(ItemCursor(0)) if view.kind != "mend"]
        found += history.steps_of(await history.journal(self._store, self._case))
        found.sort(key=lambda view: (view.created_at or view.ended_at, view.serial))
        return [_with_cursor(view, ItemCursor(number)) for number, view in enumerate(found, 1) if number > passed]


def _with_cursor(view: ItemView, place: ItemCursor) -> ItemView:
    return msgspec.structs.replace(view, place=str(place))


async def _first(documents: AsyncIterator[StoredDocument], count: int) -> AsyncIterator[StoredDocument]:
    async for document in documents:
        yield document
        count -= 1
        if not count:
            return
