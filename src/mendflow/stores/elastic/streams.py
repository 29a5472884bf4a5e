"""Streams as chains of chunks: each append creates one item, whose id is the stream and the position where it starts.

A chunk is created only at the end of the one before it, and only once: of two that append at one position, one creates
the item and the other finds it created, and an append is complete or absent. The end of a stream is not stored; it is
where the next chunk is missing. Searches, which may lag, say where to start; from there the chain is followed by
fetching, which does not lag."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from mendflow.stores.elastic.http import ClusterRetries, unavailable
from mendflow.stores.elastic.indices import history_of
from mendflow.stores.elastic.items import ItemIndex, ItemWrite
from mendflow.stores.elastic.write_attempts import chunk_id, entries_of, fits

PAGE_CHUNKS = 200
WALK_MAX = 16
"""After so many steps, a refresh and a search are faster."""

TOGETHER_MAX = 16
REMOVED_TOGETHER = 500
REMEMBERED_MAX = 50_000
FAR = 10**15
_CONTENT = ("first", "end", "entries", "entries64", "month")
_WHOLE = (*_CONTENT, "stream", "since")

Json = dict[str, Any]


class StreamIndex:
    def __init__(self, item_index: ItemIndex) -> None:
        self._item_index = item_index
        # Only ends of our own acknowledged writes: these cannot be lost.
        self._ends: dict[str, int] = {}

    def record_end(self, stream: str, end: int) -> None:
        if len(self._ends) >= REMEMBERED_MAX:
            self._ends.clear()
        self._ends[stream] = end

    def may_end_at(self, stream: str, position: int) -> bool:
        """Whether it ended there after our last write: then creating the next chunk is proof enough."""
        return self._ends.get(stream) == position

    async def length(self, stream: str) -> int:
        if not fits(chunk_id(stream, FAR)):
            return 0
        return (await self._end(stream, self._item_index.http.patience()))[0]

    async def ends(self, streams: Sequence[str], patience: ClusterRetries) -> dict[str, int]:
        """The current ends of streams."""
        found: dict[str, int] = {}
        for start in range(0, len(streams), TOGETHER_MAX):
            some = streams[start : start + TOGETHER_MAX]
            ends = await asyncio.gather(*(self._end(stream, patience) for stream in some))
            found.update(zip(some, (end for end, _ in ends), strict=True))
        return found

    async def settle(self, stream: str, patience: ClusterRetries) -> int:
        """The end, such that a chunk may be created behind it. What can be read may be on one node only, and be lost
        with it; so the last chunk is written again unchanged. When that is acknowledged, the end is certain."""
        while True:
            end, last = await self._end(stream, patience)
            if not last:
                return end
            chunk = (await self._item_index.fetch([last], *_WHOLE, patience=patience)).get(last)
            if chunk is not None:
                line = ItemWrite(chunk.id, chunk.version, msgspec.json.encode(chunk.source))
                (made,), _ = await self._item_index.write([line], patience)
                if made.version:
                    self.record_end(stream, end)
                    return end
            await patience.rest(f"the end of stream {stream} is not settled")

    async def read(self, stream: str, start: int, limit: int) -> list[bytes]:
        if not fits(chunk_id(stream, FAR)) or limit <= 0:
            return []
        start, behind = max(start, 0), max(start, 0) + limit
        patience = self._item_index.http.patience()
        chunks = await self._found(stream, start, behind)
        at = chunks[-1]["end"] if chunks else await self._before(stream, start)
        while at < behind:
            walked = await self._walked(stream, at, behind, patience)
            chunks += [source for source in walked if source["end"] > start]
            if len(walked) < WALK_MAX:
                break
            await self._item_index.refresh()
            more = await self._found(stream, walked[-1]["end"], behind)
            chunks += more
            at = (more or walked)[-1]["end"]
        await self._bring_back(stream, chunks)
        entries = [entry for source in chunks for entry in entries_of(source)[max(start - source["first"], 0) :]]
        return entries[:limit]

    async def remove(self, streams: Sequence[str]) -> None:
        """Remove streams that nobody appends to any more, also their entries in the indices of the months."""
        for stream in streams:
            self._ends.pop(stream, None)
        months = history_of(self._item_index.http.address, "*")
        for start in range(0, len(streams), REMOVED_TOGETHER):
            some = streams[start : start + REMOVED_TOGETHER]
            await self._item_index.refresh()
            for index in (months, self._item_index.index):
                await self._item_index.delete_where(index, {"terms": {"stream": list(some)}})

    async def _walked(self, stream: str, at: int, behind: int, patience: ClusterRetries) -> list[Json]:
        """Chunks from a position where one starts or would start."""
        chunks: list[Json] = []
        while at < behind and len(chunks) < WALK_MAX:
            id = chunk_id(stream, at)
            found = await self._item_index.fetch([id], *_CONTENT, patience=patience)
            if id not in found:
                break
            chunks.append(found[id].source)
            at = chunks[-1]["end"]
        return chunks

    async def _found(self, stream: str, start: int, behind: int) -> list[Json]:
        """Chunks with the wanted entries, as far as searches see them without a gap."""
        chunks: list[Json] = []
        while True:
            at = chunks[-1]["end"] if chunks else start
            query = {"bool": {"filter": [{"term": {"stream": stream}}, {"range": {"end": {"gt": at}}}]}}
            search = {"query": query, "sort": [{"first": "asc"}], "size": PAGE_CHUNKS, "_source": list(_CONTENT)}
            hits = (await self._item_index.find(search | {"track_total_hits": False}))["hits"]["hits"]
            for hit in hits:
                source = hit["_source"]
                if source["first"] > at or source["first"] >= behind:
                    return chunks
                chunks.append(source)
                at = source["end"]
            if len(hits) < PAGE_CHUNKS:
                return chunks

    async def _before(self, stream: str, start: int) -> int:
        """No search has found the entry at `start`: returns a position before it where a chunk starts, or would."""
        known = self._ends.get(stream, 0) or (await self._last(stream))[0]
        return known if known <= start else 0

    async def _bring_back(self, stream: str, chunks: list[Json]) -> None:
        """Fetch the entries of archived chunks."""
        for month in {source["month"] for source in chunks if "month" in source}:
            away = {chunk_id(stream, source["first"]): source for source in chunks if source.get("month") == month}
            index = history_of(self._item_index.http.address, month)
            found = await self._item_index.fetch_from(index, list(away), *_CONTENT)
            if len(found) < len(away):
                raise unavailable(
                    self._item_index.http.address,
                    f"entries of stream {stream} are missing in {index}: restore that index",
                )
            for id, source in away.items():
                source.update(found[id])

    async def _end(self, stream: str, patience: ClusterRetries) -> tuple[int, str]:
        """The end, and the id of the chunk before it, if only other writers can have written that."""
        known = self._ends.get(stream)
        end, last = (known, "") if known is not None else await self._last(stream)
        steps = 0
        while id := chunk_id(stream, end):
            found = await self._item_index.fetch([id], "end", patience=patience)
            if id not in found:
                break
            end, last, steps = int(found[id].source["end"]), id, steps + 1
            if steps % WALK_MAX == 0:
                await self._item_index.refresh()
                end, last = max((end, last), await self._last(stream))
        return end, last

    async def _last(self, stream: str) -> tuple[int, str]:
        """The end and the last chunk as searches see them."""
        query = {"bool": {"filter": [{"term": {"stream": stream}}]}}
        search = {"query": query, "sort": [{"first": "desc"}], "size": 1, "_source": ["end"], "track_total_hits": False}
        hits = (await self._item_index.find(search))["hits"]["hits"]
        return (int(hits[0]["_source"]["end"]), str(hits[0]["_id"])) if hits else (0, "")
