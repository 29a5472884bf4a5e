"""A store in memory, the simplest implementation of the contract, for tests and for work that need not outlive its
process.

Nothing awaits between reading and changing, so a compare-and-set is atomic."""

import bisect
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.stores.contract import (
    Append,
    Delete,
    FieldCondition,
    Put,
    RemoveStream,
    StoredDocument,
    Write,
    WriteConflict,
    WriteDone,
)
from mendflow.stores.fields import BadDocument, check, field_of, is_number, rank_of, statuses_in, text_of

_JSON = msgspec.json.Decoder(msgspec.Raw)  # validates without building anything


class MemoryStore:
    def __init__(self) -> None:
        self._documents: dict[str, dict[str, StoredDocument]] = {}
        self._streams: dict[str, list[bytes]] = {}
        self._version = 0
        self._open = False

    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        self._demand_open()
        for write in writes:
            if isinstance(write, Put):
                _demand_json(write)
        return [self._apply(write) for write in writes]

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        self._demand_open()
        return self._documents.get(kind, {}).get(id)

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        self._demand_open()
        known = self._documents.get(kind, {})
        return [known[id] for id in dict.fromkeys(ids) if id in known]

    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        return statuses_in(await self.get_many(kind, ids))

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]:
        self._demand_open()
        return self._streams.get(stream, [])[start : start + limit]

    async def length(self, stream: str) -> int:
        self._demand_open()
        return len(self._streams.get(stream, ()))

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        """The ids are those at the start of the scan; each document is read in its turn."""
        self._demand_open()
        ids = sorted(self._documents.get(kind, ()))
        for id in ids[bisect.bisect_left(ids, prefix) :]:
            if not id.startswith(prefix):
                return
            document = self._documents[kind].get(id)
            if document is not None:
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
        self._demand_open()
        check(where, order_by)
        if not where and not order_by:
            return self._by_id(kind, descending, limit, offset, after)
        found = [(_place(document.id, data, order_by), document) for document, data in self._matching(kind, where)]
        if after is not None:
            last = _place(after.id, msgspec.json.decode(after.body), order_by)
            found = [each for each in found if (each[0] < last if descending else each[0] > last)]
        found.sort(key=lambda each: each[0], reverse=descending)
        return [document for _, document in found[offset : offset + limit]]

    def _by_id(
        self, kind: str, descending: bool, limit: int, offset: int, after: StoredDocument | None
    ) -> list[StoredDocument]:
        """Sorted by id without reading bodies, so that very many documents are possible."""
        ids = sorted(self._documents.get(kind, ()))
        if after is not None:
            at = bisect.bisect_left(ids, after.id) if descending else bisect.bisect_right(ids, after.id)
            ids = ids[:at] if descending else ids[at:]
        ids = ids[::-1] if descending else ids
        return [self._documents[kind][id] for id in ids[offset : offset + limit]]

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        self._demand_open()
        check(where, by)
        counts: dict[str, int] = {} if by else {"": 0}
        for _, data in self._matching(kind, where):
            name = text_of(field_of(data, by)) if by else ""
            counts[name] = counts.get(name, 0) + 1
        return counts

    async def kinds(self) -> list[str]:
        self._demand_open()
        return sorted(kind for kind, documents in self._documents.items() if documents)

    async def refresh(self) -> None:
        self._demand_open()

    def _apply(self, write: Write) -> WriteDone | WriteConflict:
        if isinstance(write, Append):
            return self._append(write)
        if isinstance(write, RemoveStream):
            self._streams.pop(write.stream, None)
            return WriteDone(0)
        documents = self._documents.setdefault(write.kind, {})
        present = documents.get(write.id)
        actual = 0 if present is None else present.version
        if actual != write.expected:
            return WriteConflict(write.kind, write.id, write.expected, actual)
        if isinstance(write, Delete):
            documents.pop(write.id, None)
            return WriteDone(0)
        self._version += 1
        documents[write.id] = _document(write, self._version)
        return WriteDone(self._version)

    def _append(self, write: Append) -> WriteDone | WriteConflict:
        entries = self._streams.get(write.stream, [])
        if len(entries) != write.expected:
            return WriteConflict("stream", write.stream, write.expected, len(entries))
        if write.entries:
            entries.extend(write.entries)
            self._streams[write.stream] = entries
        return WriteDone(len(entries))

    def _matching(self, kind: str, where: Sequence[FieldCondition]) -> Iterator[tuple[StoredDocument, Value]]:
        for document in self._documents.get(kind, {}).values():
            data = msgspec.json.decode(document.body)
            if all(_holds(field_of(data, condition.field), condition) for condition in where):
                yield document, data

    def _demand_open(self) -> None:
        if not self._open:
            raise StoreUnavailable("the store in memory is not open: open it before use", store="memory")


def _demand_json(write: Put) -> None:
    try:
        _JSON.decode(write.body)
    except msgspec.DecodeError as error:
        raise BadDocument(f"{write.kind} {write.id} cannot be stored: its body is not JSON ({error})") from None


def _document(write: Put, version: int) -> StoredDocument:
    return StoredDocument(write.kind, write.id, version, bytes(write.body))


def _holds(value: Value, condition: FieldCondition) -> bool:
    wanted = condition.value
    match condition.op:
        case "eq":
            return bool(value == wanted)
        case "ne":
            return bool(value != wanted)
        case "in":
            return value in wanted
    if not ((is_number(value) and is_number(wanted)) or (isinstance(value, str) and isinstance(wanted, str))):
        return False
    match condition.op:
        case "lt":
            return bool(value < wanted)
        case "le":
            return bool(value <= wanted)
        case "gt":
            return bool(value > wanted)
    return bool(value >= wanted)


def _place(id: str, data: Value, order_by: str) -> tuple[tuple[int, Value], int, str]:
    """The sort key of a document in a search."""
    return (rank_of(field_of(data, order_by)), len(id), id) if order_by else ((0, 0), 0, id)
