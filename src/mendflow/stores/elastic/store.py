"""The store on Elasticsearch 8 and newer, or OpenSearch 2 and newer.

One index holds everything (indices.py). A document's version is the position of its last write in the shard's history,
so the cluster itself does compare-and-set, and nothing is read before it is written (items.py, writer.py). A writer
that lost an answer looks for its mark (write_attempts.py). Streams are chains of chunks (streams.py). Reads by id do
not lag. Searches may lag by a second; a scan refreshes first (search.py)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import Final

from mendflow.stores.contract import FieldCondition, RemoveStream, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.elastic.address import ElasticAddress, parse
from mendflow.stores.elastic.history import StreamHistory, TidyResult
from mendflow.stores.elastic.http import ClusterClient, unavailable
from mendflow.stores.elastic.indices import prepare
from mendflow.stores.elastic.items import ItemIndex
from mendflow.stores.elastic.search import DocumentFinder
from mendflow.stores.elastic.streams import StreamIndex
from mendflow.stores.elastic.write_attempts import document_id, fits
from mendflow.stores.elastic.writer import ElasticWriter, LastSeenItems
from mendflow.stores.fields import check, statuses_in

STATUSES_AT_ONCE: Final = 50


class ElasticStore:
    def __init__(self, address: ElasticAddress) -> None:
        self._address = address
        self._opened: _Opened | None = None

    @classmethod
    def from_url(cls, url: str) -> "ElasticStore":
        """See address.py for the format of the URL."""
        return cls(parse(url))

    async def open(self) -> None:
        assert self._opened is None, "opened twice"
        http = ClusterClient(self._address)
        try:
            http.open()
            await prepare(http)
        except BaseException:
            await http.close()
            raise
        self._opened = _Opened(http)

    async def close(self) -> None:
        """Waits for writes in progress; refuses later calls."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.writer.finish()
            opened.tidying.cancel()
            await asyncio.gather(opened.tidying, return_exceptions=True)
            await opened.http.close()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        opened = self._ready()
        outcomes: list[WriteDone | WriteConflict] = []
        for _, group in groupby(writes, key=lambda write: isinstance(write, RemoveStream)):
            some = list(group)
            if removed := [each.stream for each in some if isinstance(each, RemoveStream)]:
                await opened.streams.remove(removed)
                outcomes += [WriteDone(0)] * len(removed)
            else:
                outcomes += await opened.writer.put([each for each in some if not isinstance(each, RemoveStream)])
        return outcomes

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        found = await self.get_many(kind, [id])
        return found[0] if found else None

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        opened = self._ready()
        wanted = [key for id in dict.fromkeys(ids) if fits(key := document_id(kind, id))]
        found = await opened.item_index.fetch(wanted, "id", "body") if wanted else {}
        return [
            opened.finder.document(kind, seen)
            for key in wanted
            if (seen := found.get(key)) is not None and not seen.gone
        ]

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        """The bodies do come, because the fields beside them are only for sorting and counting; but few at a time."""
        found = dict[str, str]()
        for at in range(0, len(ids), STATUSES_AT_ONCE):
            found |= statuses_in(await self.get_many(kind, ids[at : at + STATUSES_AT_ONCE]))
        return found

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        return await self._ready().streams.read(stream, start, limit)

    async def length(self, stream: str) -> int:
        return await self._ready().streams.length(stream)

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        async for document in self._ready().finder.scan(kind, prefix):
            yield document

    async def search(
        self,
        kind: str,
        where: Sequence[FieldCondition] = (),
        *,
        order_by: str = "",
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
        after: StoredDocument | None = None,
    ) -> list[StoredDocument]:
        check(where, order_by)
        return await self._ready().finder.search(kind, where, order_by, descending, offset, offset + limit, after)

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        check(where, by)
        finder = self._ready().finder
        return await finder.count_by(kind, where, by) if by else {"": await finder.count(kind, where)}

    async def kinds(self) -> list[str]:
        await self.refresh()
        return await self._ready().finder.kinds()

    async def refresh(self) -> None:
        await self._ready().item_index.refresh()

    async def tidy(self, now_ms: int) -> TidyResult:
        """Archive old data now; an open store does so every hour by itself."""
        return await self._ready().history.tidy(now_ms)

    def _ready(self) -> "_Opened":
        if self._opened is None:
            raise unavailable(self._address, "it is not open: open the store before use")
        return self._opened


class _Opened:
    """The state of an open store."""

    def __init__(self, http: ClusterClient) -> None:
        memory = LastSeenItems()
        self.http = http
        self.item_index = ItemIndex(http)
        self.streams = StreamIndex(self.item_index)
        self.finder = DocumentFinder(self.item_index, memory)
        self.writer = ElasticWriter(self.item_index, self.streams, memory)
        self.history = StreamHistory(self.item_index)
        self.tidying = asyncio.create_task(self.history.keep_tidy(), name="elastic-history")
