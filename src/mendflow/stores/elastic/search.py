"""Scans, searches and counts of documents, as of the last refresh.

Pages continue after the sort values of the last document, never at an offset. The order ends with the id, which is
unique and does not change; so everything that exists all the while is returned exactly once, and no snapshot has to be
kept open in the cluster."""

import heapq
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from mendflow.core.model.values import Value
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.elastic.fields import KNOWN, TOO_LONG, query, sort_key, unindexed
from mendflow.stores.elastic.items import SEEN_FIELDS, IndexedItem, ItemIndex, item
from mendflow.stores.elastic.writer import LastSeenItems
from mendflow.stores.fields import field_of, rank_of, text_of

PAGE = 1000
NAMES_PAGE = 1000
FIELDS = (*SEEN_FIELDS, "id", "body")

Json = dict[str, Any]
SortPlace = tuple[tuple[int, Value], int, str]


class DocumentFinder:
    def __init__(self, item_index: ItemIndex, memory: LastSeenItems) -> None:
        self._item_index = item_index
        self._memory = memory

    async def scan(self, kind: str, prefix: str) -> AsyncIterator[StoredDocument]:
        await self._item_index.refresh()
        async for document in self._all(kind, query(kind, (), prefix), [{"id": "asc"}]):
            yield document

    async def search(
        self,
        kind: str,
        where: Sequence[FieldCondition],
        order_by: str,
        descending: bool,
        first: int,
        behind: int,
        after: StoredDocument | None,
    ) -> list[StoredDocument]:
        """The documents from `first` on and before `behind`, in this order."""
        if order_by and order_by not in KNOWN:
            return (await self._sorted_here(kind, where, order_by, descending, behind, after))[first:]
        sort, start = _sort(order_by, descending), _sort_values(after, order_by)
        if behind <= PAGE:
            skip = first if start is None else 0
            page = await self._page(kind, query(kind, where), sort, start, behind - skip, skip)
            return [document for document, _ in page[first - skip :]]
        found: list[StoredDocument] = []
        async for document in self._all(kind, query(kind, where), sort, start):
            found.append(document)
            if len(found) == behind:
                break
        return found[first:]

    async def count(self, kind: str, where: Sequence[FieldCondition]) -> int:
        search = {"query": query(kind, where), "size": 0, "track_total_hits": True}
        total: int = (await self._item_index.find(search))["hits"]["total"]["value"]
        return total

    async def kinds(self) -> list[str]:
        """Tombstones have no kind."""
        search = {"size": 0, "aggs": {"kinds": {"terms": {"field": "kind", "size": NAMES_PAGE}}}}
        found = (await self._item_index.find(search))["aggregations"]["kinds"]["buckets"]
        assert len(found) < NAMES_PAGE, "there are few kinds"
        return sorted(bucket["key"] for bucket in found)

    async def count_by(self, kind: str, where: Sequence[FieldCondition], by: str) -> dict[str, int]:
        counts = await self._counted_there(kind, where, by) if by in KNOWN else {TOO_LONG: 0}
        if TOO_LONG not in counts:
            return counts
        counts = {}
        async for document in self._all(kind, query(kind, where), [{"id": "asc"}]):
            name = text_of(field_of(msgspec.json.decode(document.body), by))
            counts[name] = counts.get(name, 0) + 1
        return counts

    async def _counted_there(self, kind: str, where: Sequence[FieldCondition], by: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        nameless = False
        source = {"name": {"terms": {"field": f"as.{by}", "missing_bucket": True}}}
        names: Json = {"size": NAMES_PAGE, "sources": [source]}
        while True:
            search = {"query": query(kind, where), "size": 0, "aggs": {"names": {"composite": names}}}
            found = (await self._item_index.find(search))["aggregations"]["names"]
            for bucket in found["buckets"]:
                nameless = nameless or bucket["key"]["name"] is None
                name = bucket["key"]["name"] or ""
                counts[name] = counts.get(name, 0) + bucket["doc_count"]
            if len(found["buckets"]) < NAMES_PAGE:
                break
            names["after"] = found["after_key"]
        return await self._with_unindexed(counts, kind, where, by) if nameless else counts

    async def _with_unindexed(
        self, counts: dict[str, int], kind: str, where: Sequence[FieldCondition], by: str
    ) -> dict[str, int]:
        """Documents that were written before the field could be counted by are counted as nameless: they are read."""
        async for document in self._all(kind, unindexed(kind, where, by), [{"id": "asc"}]):
            name = text_of(field_of(msgspec.json.decode(document.body), by))
            counts[""] -= 1
            counts[name] = counts.get(name, 0) + 1
        return {name: count for name, count in counts.items() if count > 0}

    async def _sorted_here(
        self,
        kind: str,
        where: Sequence[FieldCondition],
        order_by: str,
        descending: bool,
        behind: int,
        after: StoredDocument | None,
    ) -> list[StoredDocument]:
        """The first so many, in an order that the cluster cannot sort by."""

        def place(document: StoredDocument) -> SortPlace:
            return rank_of(field_of(msgspec.json.decode(document.body), order_by)), len(document.id), document.id

        last = None if after is None else place(after)
        found: list[tuple[SortPlace, StoredDocument]] = []
        async for document in self._all(kind, query(kind, where), [{"id": "asc"}]):
            at = place(document)
            if last is None or (at < last if descending else at > last):
                found.append((at, document))
            if len(found) >= behind + 10 * PAGE:
                found = _best(found, behind, descending)
        return [document for _, document in _best(found, behind, descending)]

    async def _all(
        self, kind: str, wanted: Json, sort: list[Json], after: list[Value] | None = None
    ) -> AsyncIterator[StoredDocument]:
        while True:
            page = await self._page(kind, wanted, sort, after, PAGE)
            for document, _ in page:
                yield document
            if len(page) < PAGE:
                return
            after = page[-1][1]

    async def _page(
        self, kind: str, wanted: Json, sort: list[Json], after: list[Value] | None, size: int, skip: int = 0
    ) -> list[tuple[StoredDocument, list[Value]]]:
        search: Json = {"query": wanted, "sort": sort, "size": size, "_source": list(FIELDS)}
        search |= {"seq_no_primary_term": True, "track_total_hits": False}
        if after is not None:
            search["search_after"] = after
        if skip:
            search["from"] = skip
        hits = (await self._item_index.find(search))["hits"]["hits"]
        return [(self.document(kind, item(hit)), hit["sort"]) for hit in hits]

    def document(self, kind: str, found: IndexedItem) -> StoredDocument:
        self._memory.record(found)
        return StoredDocument(kind, found.source["id"], found.version, found.source["body"].encode())


def _sort(order_by: str, descending: bool) -> list[Json]:
    way = "desc" if descending else "asc"
    if not order_by:
        return [{"id": way}]
    null = "_last" if descending else "_first"
    return [{f"by.{order_by}": {"order": way, "missing": null}}, {"length": way}, {"id": way}]


def _sort_values(after: StoredDocument | None, order_by: str) -> list[Value] | None:
    if after is None:
        return None
    if not order_by:
        return [after.id]
    return [sort_key(field_of(msgspec.json.decode(after.body), order_by)), len(after.id), after.id]


def _best(
    found: list[tuple[SortPlace, StoredDocument]], number: int, descending: bool
) -> list[tuple[SortPlace, StoredDocument]]:
    select = heapq.nlargest if descending else heapq.nsmallest
    return select(number, found, key=lambda each: each[0])
