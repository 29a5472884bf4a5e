"""The last facts of a case, from the end of its journal: nothing is replayed, so that it costs as much as is read.

A fact names an item by its serial. Which item that is, the documents of jobs, user tasks and called cases tell."""

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from mendflow.core.engine.messages import Event, FinishItem
from mendflow.core.model.ids import CaseId, Instant, ItemId, item_name
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases.live_case import CaseDocument, journal_of
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.observe.journal_reader import FactReader, OutgoingItem, decode_event
from mendflow.stores.contract import Store

PAGE: Final = 1_000


class RecentFacts(NamedTuple):
    """What came to a case, and its end; the serials of the items that these end; and since when they are complete."""

    entries: list[HistoryEntry]
    serials: list[int]
    since: Instant


class _JobItem(msgspec.Struct, frozen=True):
    item: ItemId


class _Job(msgspec.Struct, frozen=True):
    spec: _JobItem


class _Task(msgspec.Struct, frozen=True):
    item: ItemId


class _Called(msgspec.Struct, frozen=True):
    parent_item: ItemId | None = None


_decode_job = msgspec.json.Decoder(_Job).decode
_decode_task = msgspec.json.Decoder(_Task).decode
_decode_called = msgspec.json.Decoder(_Called).decode


async def recent_facts(store: Store, document: CaseDocument, last: int) -> RecentFacts | None:
    """The last so many facts, or all. None where no document tells which items they end, as of the steps of exlets and
    of calls of partners: such a journal has to be replayed."""
    length, many = await store.length(journal_of(document.id)), last
    while True:
        first = max(0, length - many) if last else 0
        found = await _facts_from(store, document, first)
        if found is None or not first or len(found.entries) >= last:
            return found
        many *= 2  # some facts are not told of


async def _facts_from(store: Store, document: CaseDocument, first: int) -> RecentFacts | None:
    events = await _events(store, journal_of(document.id), first)
    serials = {event.fact.serial for event in events if isinstance(event.fact, FinishItem)}
    items = await _items_of(store, document.id, serials)
    if len(items) < len(serials):
        return None
    reader = FactReader(document.id, document.flow, items)
    for event in events:
        reader.add_fact(event.at, event.fact)
    if not document.live:
        reader.add_end(document.ended_at, document.status, document.fault.message if document.fault else "")
    return RecentFacts(reader.entries, reader.serials_of(0), events[0].at if first and events else 0)


async def _events(store: Store, stream: str, first: int) -> list[Event]:
    events: list[Event] = []
    while page := await store.read(stream, first + len(events), PAGE):
        events += map(decode_event, page)
    return events


async def _items_of(store: Store, case: CaseId, serials: Collection[int]) -> dict[int, OutgoingItem]:
    found: dict[int, OutgoingItem] = {}
    wanted = sorted(serials)
    for at in range(0, len(wanted), PAGE):
        some = wanted[at : at + PAGE]
        for job in await store.get_many(JOB_KIND, [f"{case}/{serial}" for serial in some]):
            _note(found, job.id, _decode_job(job.body).spec.item, "submitted")
        rest = [serial for serial in some if serial not in found]
        for task in await store.get_many(TASK_KIND, [f"{case}/{serial}" for serial in rest]):
            _note(found, task.id, _decode_task(task.body).item, "offered")
        for called in await store.get_many(CASE_KIND, [f"{case}.{serial}" for serial in rest]):
            if (item := _decode_called(called.body).parent_item) is not None:
                _note(found, called.id.replace(f"{case}.", f"{case}/", 1), item, "called")
    return found


def _note(found: dict[int, OutgoingItem], id: str, item: ItemId, what: str) -> None:
    found[int(id.rpartition("/")[2])] = OutgoingItem(item, what, item_name(item))
