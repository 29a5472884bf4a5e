"""Archives old data: moves stream entries to one index per month, and removes old tombstones.

The chunk document of a stream stays where it is, because its id prevents other writes at its position; only its entries
move, and the chunk names the index that has them. They are first written there, then removed from the chunk by
compare-and-set. So any server may do this, several may do it at once, and a crash between the two steps leaves the
entries in both places.

A tombstone matters only to a writer that still waits for a lost answer; after a day there is none."""

import asyncio
import datetime
import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.elastic.indices import history_of, make
from mendflow.stores.elastic.items import IndexedItem, ItemIndex, ItemWrite, item

DAY_MS = 24 * 3600 * 1000
TOMBSTONE_MS = DAY_MS
EVERY_S = 3600.0
PAGE = 200
_MOVED = ("entries", "entries64")

Json = dict[str, Any]


class TidyResult(msgspec.Struct, frozen=True):
    """How many chunks were moved, and how many tombstones removed."""

    moved: int
    purged: int


class StreamHistory:
    def __init__(self, item_index: ItemIndex) -> None:
        self._item_index = item_index

    async def keep_tidy(self) -> None:
        """Runs while the store is open."""
        while True:
            await asyncio.sleep(EVERY_S * random.uniform(0.5, 1.5))
            try:
                await self.tidy(int(time.time() * 1000))
            except StoreUnavailable:
                continue  # not urgent: the next round tries again

    async def tidy(self, now_ms: int) -> TidyResult:
        moved = purged = 0
        before = now_ms - self._item_index.http.address.history_days * DAY_MS
        old = {"bool": {"filter": [_until("since", before)], "must_not": [{"exists": {"field": "month"}}]}}
        async for page in self._pages(old, "since"):
            moved += await self._move(page)
        async for page in self._pages({"bool": {"filter": [_until("gone", now_ms - TOMBSTONE_MS)]}}, "gone"):
            purged += await self._write([ItemWrite(each.id, each.version, None) for each in page])
        return TidyResult(moved, purged)

    async def _move(self, chunks: Sequence[IndexedItem]) -> int:
        by_month: dict[str, list[IndexedItem]] = {}
        for chunk in chunks:
            by_month.setdefault(month_of(chunk.source["since"]), []).append(chunk)
        for month, some in by_month.items():
            index = history_of(self._item_index.http.address, month)
            await make(self._item_index.http, index, {})
            lines = [ItemWrite(chunk.id, 0, msgspec.json.encode(chunk.source)) for chunk in some]
            await self._item_index.copy_to(index, lines)
        return await self._write([_let_go(chunk, month) for month, some in by_month.items() for chunk in some])

    async def _write(self, lines: Sequence[ItemWrite]) -> int:
        """Skips what another writer has changed meanwhile."""
        made, _ = await self._item_index.write(lines, self._item_index.http.patience())
        return sum(1 for each in made if each.version)

    async def _pages(self, wanted: Json, by: str) -> AsyncIterator[list[IndexedItem]]:
        search: Json = {"query": wanted, "sort": [{by: "asc"}, {"stream": "asc"}, {"first": "asc"}], "size": PAGE}
        search |= {"seq_no_primary_term": True, "track_total_hits": False}
        while hits := (await self._item_index.find(search))["hits"]["hits"]:
            yield [item(hit) for hit in hits]
            search["search_after"] = hits[-1]["sort"]


def month_of(since_ms: int) -> str:
    return datetime.datetime.fromtimestamp(since_ms / 1000, datetime.UTC).strftime("%Y.%m")


def _until(field: str, moment_ms: int) -> Json:
    return {"range": {field: {"lte": moment_ms}}}


def _let_go(chunk: IndexedItem, month: str) -> ItemWrite:
    kept = {name: value for name, value in chunk.source.items() if name not in _MOVED}
    return ItemWrite(chunk.id, chunk.version, msgspec.json.encode(kept | {"month": month}))
