"""Wraps any store, times its calls and counts its conflicts. It does not change what the store does."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from mendflow.core.model.errors import StoreUnavailable
from mendflow.services.base.counters import StoreMetrics
from mendflow.stores.contract import FieldCondition, Store, StoredDocument, Write, WriteConflict, WriteDone

_now_ns = time.perf_counter_ns


class MeteredStore:
    """`inner` does the work. A scan is timed to its last document, without the time that the reader takes for each."""

    def __init__(self, inner: Store, counts: StoreMetrics) -> None:
        self.inner = inner
        self.counts = counts

    @contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        began = _now_ns()
        try:
            yield
        except StoreUnavailable:
            self.counts.failed(operation)
            raise
        finally:
            self.counts.observe_call(operation, _now_ns() - began)

    async def open(self) -> None:
        with self._timed("open"):
            await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        began = _now_ns()
        try:  # as `_timed` does, for what is called most
            results = await self.inner.write(writes)
        except StoreUnavailable:
            self.counts.failed("write")
            raise
        finally:
            self.counts.observe_call("write", _now_ns() - began)
        for result in results:
            if type(result) is WriteConflict:
                self.counts.conflicts.add(result.kind or "stream")
        return results

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        with self._timed("get"):
            return await self.inner.get(kind, id)

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        with self._timed("get_many"):
            return await self.inner.get_many(kind, ids)

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        with self._timed("statuses"):
            return await self.inner.statuses(kind, ids)

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        with self._timed("read"):
            return await self.inner.read(stream, start, limit)

    async def length(self, stream: str) -> int:
        with self._timed("length"):
            return await self.inner.length(stream)

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        spent = 0
        began = _now_ns()
        try:
            async for document in self.inner.scan(kind, prefix):
                spent += _now_ns() - began
                yield document
                began = _now_ns()
            spent += _now_ns() - began
        except StoreUnavailable:
            self.counts.failed("scan")
            raise
        finally:
            self.counts.observe_call("scan", spent)

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
        with self._timed("search"):
            return await self.inner.search(
                kind, where, order_by=order_by, descending=descending, limit=limit, offset=offset, after=after
            )

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        with self._timed("count"):
            return await self.inner.count(kind, where, by=by)

    async def kinds(self) -> list[str]:
        with self._timed("kinds"):
            return await self.inner.kinds()

    async def refresh(self) -> None:
        with self._timed("refresh"):
            await self.inner.refresh()


def store_name(store: Store) -> str:
    """The kind of store, whether its calls are timed or not."""
    kind = type(store.inner if isinstance(store, MeteredStore) else store).__name__
    return {"ElasticStore": "elasticsearch"}.get(kind, kind.removesuffix("Store").lower())
