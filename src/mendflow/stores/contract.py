"""The contract of every store.

Versioned documents with compare-and-set, and streams with append at an expected position. The writes of one call are
tried in order, each on its own: a refused write does not stop the next, and there are no transactions over several
writes. When a call has returned, its writes are on disk. Reads by id or position see every write that returned before;
searches may lag and are never used for decisions.

**Versions.** A version is a number above 0 that the store chooses; a later one is greater, and has no other meaning. A
document never has the same version twice, not even after it was deleted and created again: so a writer with an old
version is always refused. A stream only grows: its length is its version. When nobody appends to it any more, it can be
removed as a whole; then it is as if it had never been.

**When the store is away.** A store retries by itself, with growing waits, until its patience ends: reads, and writes
that certainly did not happen. Then it raises StoreUnavailable. If a write was sent and its answer was lost, nobody
knows whether it happened. A store never repeats such a write blindly, because the first would refuse the second, and a
winner would be told that it lost. It finds out: each server-side store leaves a mark of the writer with what it writes,
and looks for it when the connection is back. So `WriteDone` and `WriteConflict` are always true: `WriteDone` happened,
and `WriteConflict` means that another writer was first. If the store cannot find out within its patience, it raises
StoreUnavailable: nothing of that call is acknowledged, any of it may have happened, and may even happen a moment later.
The caller reads again before it continues; compare-and-set makes that safe."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from typing import Final, Protocol, Union

import msgspec

from mendflow.core.model.values import Value

READING_COST: Final[ContextVar[Callable[[float], None] | None]] = ContextVar("mendflow_reading_cost", default=None)
"""Told, by a store that reads in this process, how many seconds of processor time a read has taken: whoever sets it
knows for whom that was."""


class Put(msgspec.Struct, frozen=True):
    """Write the whole document. `expected` is the version it must have now; 0 means that it must not exist yet."""

    kind: str
    id: str
    body: bytes  # JSON
    expected: int


class Delete(msgspec.Struct, frozen=True):
    kind: str
    id: str
    expected: int


class Append(msgspec.Struct, frozen=True):
    """Add entries to a stream. `expected` is how many entries it must have now."""

    stream: str
    entries: Sequence[bytes]
    expected: int


class RemoveStream(msgspec.Struct, frozen=True):
    """Remove a stream with all its entries, if there is one. Whoever asks for it knows that nobody appends to it any
    more, so there is nothing to compare, and it may be repeated."""

    stream: str


ConditionalWrite = Union[Put, Delete, Append]
"""A write that is refused if the document or stream is not at the expected version."""

Write = Union[Put, Delete, Append, RemoveStream]


class WriteDone(msgspec.Struct, frozen=True):
    """The write is on disk; `version` is the document's version after it (0: deleted), or the stream's length."""

    version: int


class WriteConflict(msgspec.Struct, frozen=True):
    """Another writer was first: the document or stream is not at the expected version. Nothing was written. `actual` is
    what was found; 0 is an absent document or an empty stream. A stream's `kind` is "stream"."""

    kind: str
    id: str
    expected: int
    actual: int


class StoredDocument(msgspec.Struct, frozen=True):
    kind: str
    id: str
    version: int
    body: bytes


class FieldCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field of the document's JSON, by dotted path, compared with a value. `op` is one of eq ne lt le gt ge in."""

    field: str
    value: Value
    op: str = "eq"


class RetryCounter:
    """How often the stores of this process had to retry, because there was no answer or only a passing error."""

    times = 0


RETRIES = RetryCounter()


class Store(Protocol):
    """Open before use, close after. Raises StoreUnavailable when the store cannot answer (disk full, file locked,
    server away): nothing of that call is acknowledged, and the message says what to do.

    If its server is away when a store is opened, it raises StoreUnavailable and may be opened again. An open store
    stays open while its server is away, and answers again when it is back."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]: ...
    async def get(self, kind: str, id: str) -> StoredDocument | None: ...
    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]: ...
    async def statuses(self, kind: str, ids: Sequence[str]) -> dict[str, str]:
        """The `status` of those of these documents that have one, a text of at most 200 characters; does not lag. It is
        for many documents that may be large: their bodies stay where they are, if the store can do that."""
        ...

    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]: ...
    async def length(self, stream: str) -> int: ...
    def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        """Every document of a kind, by id; does not lag. A server reads this when it starts."""
        ...

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
        """Sorted by a field, then in the same direction by id, shorter ids first; without a field, by id as text.

        `offset` is for people who turn a few pages. To read everything, pass the last document of a page as `after`,
        with the same order: the next page starts behind it, whatever was written meanwhile."""
        ...

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        """How many documents match, per value of a field, or all under the empty name."""
        ...

    async def kinds(self) -> list[str]:
        """The kinds of which there are documents; does not lag."""
        ...

    async def refresh(self) -> None:
        """Returns when searches and counts find every write that returned before this call."""
        ...
