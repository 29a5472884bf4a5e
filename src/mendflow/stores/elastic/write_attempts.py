"""A write on its way to the index, and what a refusal or a lost answer means.

Every write has its own mark, stored with what it writes. A writer that is refused looks at the item:

- It has our own mark: an answer was lost on the way, or inside the cluster, which repeats writes itself when a node
  dies. What can be read may still be on one node only, so it is written again unchanged, and that answer counts.
- Our mark is among the last few writes: it happened, and another writer has written since.
- It has another writer's mark: ours did not happen, if no write in between is unknown. If one is, we report that we do
  not know."""

import base64
from typing import Any

import msgspec

from mendflow.stores.contract import Append, ConditionalWrite, Delete, Put, WriteConflict, WriteDone
from mendflow.stores.elastic.fields import index_terms
from mendflow.stores.elastic.items import ID_BYTES_MAX, IndexedItem, ItemHistory, ItemWrite, is_valid_version
from mendflow.stores.fields import BadDocument

PAST_MAX = 4
NEVER_SEARCHED = frozenset({"snapshot"})
"""Large documents that are only read by id."""


class LastSeen(msgspec.Struct, frozen=True):
    """What the store remembers of an item that it read or wrote: enough to name the writes before the next one."""

    version: int
    mark: str
    past: ItemHistory


class WriteAttempt:
    """One write. `at`: the version to write at next, or None to look first. `doubt`: the version at which it was sent
    without an answer, if that happened."""

    __slots__ = ("at", "doubt", "id", "mark", "outcome", "rest", "tries", "write")

    def __init__(self, write: ConditionalWrite, mark: str, now_ms: int) -> None:
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
        """The version that is overwritten, and what is known of earlier ones."""
        assert self.at is not None
        if known is None or known.version != self.at:
            return [(self.at, "")]
        return [(self.at, known.mark), *known.past][:PAST_MAX]

    def done(self, version: int) -> None:
        if isinstance(self.write, Append):
            version = self.write.expected + len(self.write.entries)
        self.outcome = WriteDone(0 if isinstance(self.write, Delete) else version)

    def mark_taken(self, actual: int) -> None:
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
        """Decide by the current item: an outcome, or the version for the next try; False if it cannot be known."""
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
            self.mark_taken(actual)
        elif isinstance(self.write, Delete) and not actual:
            self.done(0)
        else:
            self.at = 0 if seen is None else seen.version
        return True


def is_traced(seen: IndexedItem | None, version: int) -> bool:
    """Whether the mark of every write after this version is known."""
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


def item_id(write: ConditionalWrite) -> str:
    """The id of an item in the index. A kind is never empty and has no colon, so ids are unique."""
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
    """Whether this id is valid."""
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


def _rest(write: ConditionalWrite, now_ms: int) -> bytes:
    """The item as JSON, without the fields that depend on how it is written."""
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
    """As text if it is text, so that people can read it."""
    try:
        return {"entries": [bytes(entry).decode() for entry in append.entries]}
    except UnicodeDecodeError:
        return {"entries64": [base64.b64encode(entry).decode() for entry in append.entries]}


def entries_of(source: dict[str, Any]) -> list[bytes]:
    if "entries" in source:
        return [entry.encode() for entry in source["entries"]]
    return [base64.b64decode(entry) for entry in source["entries64"]]
