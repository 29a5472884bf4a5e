"""A write on its way to the index, and what is to be thought when it was refused, or when its answer was lost.

Every write has a mark of its own, which is left with what it writes. Who is refused looks at what stands there:

- Our own mark: an answer was lost on the way, or inside the cluster, which repeats writes by itself when a node dies.
  What can be read may still be on one node only, so it is written once more, on top of itself, and that answer counts.
- Our mark among the last few writes: it happened, and somebody has written since.
- Somebody else's: ours did not happen, if no write between is unknown. If one is, nobody can tell, and we do not."""

import base64
from typing import Any

import msgspec

from mendflow.stores.contract import Append, Delete, Put, Write, WriteConflict, WriteDone
from mendflow.stores.elastic.fields import index_terms
from mendflow.stores.elastic.items import ID_BYTES_MAX, IndexedItem, ItemHistory, ItemWrite, is_valid_version
from mendflow.stores.fields import BadDocument

PAST_MAX = 4
NEVER_SEARCHED = frozenset({"snapshot"})
"""Large documents that are only ever read by id."""


class LastSeen(msgspec.Struct, frozen=True):
    """What the store remembers of an item that it read or wrote: enough to say what came before the next write."""

    version: int
    mark: str
    past: ItemHistory


class WriteAttempt:
    """One write. `at`: the version to write at next, or None to look first. `doubt`: the version at which it was sent
    with no answer, if that happened."""

    __slots__ = ("at", "doubt", "id", "mark", "outcome", "rest", "tries", "write")

    def __init__(self, write: Write, mark: str, now_ms: int) -> None:
        self.write = write
        self.mark = mark
        self.id = item_id(write)
        self.rest = _rest(write, now_ms)
        self.at: int | None = write.expected
        self.doubt: int | None = None
        self.tries = 0
        self.outcome: WriteDone | WriteConflict | None = None
        if isinstance(write, Append):
            self.at = None if write.expected or not write.entries else 0
        elif not is_valid_version(write.expected) and (write.expected or isinstance(write, Delete)):
            self.at = None

    def line(self, known: LastSeen | None) -> ItemWrite:
        assert self.at is not None
        past = self.past(known)
        head = b'{"mark":"%s","past":%s,' % (self.mark.encode(), msgspec.json.encode(past))
        return ItemWrite(self.id, self.at, head + self.rest[1:])

    def past(self, known: LastSeen | None) -> ItemHistory:
        """The version that is written over, and what is known of those before it."""
        assert self.at is not None
        if known is None or known.version != self.at:
            return [(self.at, "")]
        return [(self.at, known.mark), *known.past][:PAST_MAX]

    def done(self, version: int) -> None:
        if isinstance(self.write, Append):
            version = self.write.expected + len(self.write.entries)
        self.outcome = WriteDone(0 if isinstance(self.write, Delete) else version)

    def taken(self, actual: int) -> None:
        write = self.write
        if isinstance(write, Append):
            self.outcome = WriteConflict("stream", write.stream, write.expected, actual)
        else:
            self.outcome = WriteConflict(write.kind, write.id, write.expected, actual)

    def mark_doubtful(self) -> None:
        """It was sent, and there was no answer."""
        if self.doubt is None:
            self.doubt = self.at

    def judge(self, seen: IndexedItem | None) -> bool:
        """Decide by what stands there: an outcome, or at which version to try next; False if nobody can tell."""
        if seen is not None:
            if seen.mark == self.mark:
                self.at = seen.version
                return True
            made = next((version for version, mark in seen.past if mark == self.mark), 0)
            if made:
                self.done(made)
                return True
        if self.doubt is not None and not is_traced(seen, self.doubt):
            return False
        actual = 0 if seen is None or seen.gone else seen.version
        if actual != self.write.expected:
            self.taken(actual)
        elif isinstance(self.write, Delete) and not actual:
            self.done(0)
        else:
            self.at = 0 if seen is None else seen.version
        return True


def is_traced(seen: IndexedItem | None, version: int) -> bool:
    """Whether every write after this version is known by its mark."""
    if seen is None:
        return version == 0
    if seen.version == version:
        return True
    for before, mark in seen.past:
        if before == version:
            return True
        if not mark:
            return False
    return False


def item_id(write: Write) -> str:
    """Under which id an item lies in the index. A kind is never empty and has no colon, so that no two share one."""
    if isinstance(write, Append):
        return _checked(chunk_id(write.stream, write.expected), f"stream {write.stream}")
    if not write.kind or ":" in write.kind:
        raise BadDocument(f"{write.kind!r} cannot be the kind of a document: give a plain word")
    return _checked(document_id(write.kind, write.id), f"{write.kind} {write.id}")


def document_id(kind: str, id: str) -> str:
    return f"{kind}:{id}"


def chunk_id(stream: str, first: int) -> str:
    return f":{stream}:{first}"


def fits(id: str) -> bool:
    """Whether an item can have this id at all."""
    try:
        return len(id.encode()) <= ID_BYTES_MAX
    except UnicodeEncodeError:
        return False


def _checked(id: str, what: str) -> str:
    if not fits(id):
        raise BadDocument(
            f"{what[:80]!r} cannot be stored: Elasticsearch takes ids of plain text up to {ID_BYTES_MAX} bytes, with"
            " the kind before it; give a shorter name"
        )
    return id


def _rest(write: Write, now_ms: int) -> bytes:
    """The item as JSON, without what depends on how its writing goes."""
    if isinstance(write, Delete):
        return msgspec.json.encode({"gone": now_ms})
    if isinstance(write, Append):
        end = write.expected + len(write.entries)
        chunk = {"stream": write.stream, "first": write.expected, "end": end, "since": now_ms}
        return msgspec.json.encode(chunk | _entries(write))
    return msgspec.json.encode(_document(write))


def _document(put: Put) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(put.body)
        text = bytes(put.body).decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadDocument(f"{put.kind} {put.id} cannot be stored: its body is not JSON ({error})") from None
    document = {"kind": put.kind, "id": put.id, "length": len(put.id), "body": text}
    return document if put.kind in NEVER_SEARCHED else document | index_terms(data)


def _entries(append: Append) -> dict[str, list[str]]:
    """As text where it is text, so that people can read it."""
    try:
        return {"entries": [bytes(entry).decode() for entry in append.entries]}
    except UnicodeDecodeError:
        return {"entries64": [base64.b64encode(entry).decode() for entry in append.entries]}


def entries_of(source: dict[str, Any]) -> list[bytes]:
    if "entries" in source:
        return [entry.encode() for entry in source["entries"]]
    return [base64.b64decode(entry) for entry in source["entries64"]]
