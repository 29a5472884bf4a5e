"""What every store promises, and all that it promises.

Versioned documents with compare-and-set, and streams with append at an expected position. Writes given in one call are
tried in their order, each on its own: one that is refused does not stop the next, and nothing spans two of them. A
call that returned is on disk. Reads by id or position see every write that returned before; searches may lag and are
never used to decide.

**Versions.** A version is a number above 0 that the store chooses; a later one is greater, and nothing else may be read
from it. A document never has the same version twice, not even after it was deleted and made again: so whoever holds an
old version is refused, however much has happened since. A stream only grows: its length is all the version it needs.

**When the store is away.** A store tries again by itself, with growing waits, for as long as its patience lasts: reads,
and writes of which it knows that they did not happen. Then it raises StoreUnavailable. Of a write that was sent, and
whose answer was lost, nobody knows whether it happened. A store never repeats such a write blindly, because the second
would be refused by the first, and a winner would be told that it lost. It finds out: each server-side store leaves a
mark of the writer with what it writes, and looks for it when the connection is back. So `WriteDone` and `WriteConflict`
are always true: `WriteDone` happened, and `WriteConflict` means that somebody else was there. What the store could not
find out within its patience ends as StoreUnavailable: nothing of that call is acknowledged, any of it may have
happened, and may even happen a moment later. Whoever called reads again before going on; compare-and-set makes that
safe."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, Union

import msgspec

from mendflow.core.model.values import Value


class Put(msgspec.Struct, frozen=True):
    """Write the document whole. `expected` is the version it must have now; 0 means that it must not exist yet."""

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


Write = Union[Put, Delete, Append]


class WriteDone(msgspec.Struct, frozen=True):
    """The write is on disk; `version` is the document's version after it (0: deleted), or the stream's length."""

    version: int


class WriteConflict(msgspec.Struct, frozen=True):
    """Someone else was faster: the document, or the stream, is not at the expected version. Nothing was written.
    `actual` is what was found; 0 is an absent document, or an empty stream. A stream's `kind` is "stream"."""

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
    """How often stores of this process were asked again, because there was no answer or none that helps."""

    times = 0


RETRIES = RetryCounter()


class Store(Protocol):
    """Open before use, close after. Raises StoreUnavailable when the store cannot answer (disk full, file locked,
    server away): whatever was in that call is then not acknowledged, and the sentence says what to do.

    A store whose server is away when it is opened raises StoreUnavailable and may be opened again. One that was open
    stays so while its server is away, and answers again when it is back."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]: ...
    async def get(self, kind: str, id: str) -> StoredDocument | None: ...
    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]: ...
    async def read(self, stream: str, start: int = 0, limit: int = 10_000) -> list[bytes]: ...
    async def length(self, stream: str) -> int: ...
    def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        """Every document of a kind, by id; not lagging. What a server reads when it starts."""
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
        """By a field, then in the same direction by id, shorter ids first; without a field, by id as text.

        `offset` is for the few pages that people turn. To go through everything, however much it is, give the last
        document of a page as `after`, with the same order: the next page begins behind its place, whatever was written
        meanwhile."""
        ...

    async def count(self, kind: str, where: Sequence[FieldCondition] = (), *, by: str = "") -> dict[str, int]:
        """How many documents match, by the value of a field, or all under the empty name."""
        ...

    async def refresh(self) -> None:
        """Return when searches and counts find every write that returned before this call."""
        ...
