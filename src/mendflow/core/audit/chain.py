"""The chain: each entry has the SHA-256 of the one before, as it is stored.

So nobody can change, remove or insert an entry without changing all that follow; and those that end the chain are
counted in a document beside it. Whoever can write all of that can write another chain: an export that is kept elsewhere
shows it, because its last entry is then not in the chain."""

import hashlib

import msgspec

from mendflow.core.model.audit import (
    TEXT_CHARS_MAX,
    AuditChain,
    AuditCut,
    AuditEntry,
    AuditQuery,
    AuditSegment,
    ChainView,
    RequestRecord,
)
from mendflow.core.model.ids import Instant

DAY_MS = 86_400_000
SEGMENT_ENTRIES_MAX = 10_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditEntry).decode


def sha256_of(entry: bytes) -> str:
    return hashlib.sha256(entry).hexdigest()


class ChainEnd(msgspec.Struct, frozen=True):
    """Where the next entry of a chain goes: into the segment that begins with the entry `first`, as entry `number` of
    the chain. `first` is 0 while there is no segment."""

    server: str
    first: int = 0
    number: int = 1
    at: Instant = 0
    previous: str = ""

    @property
    def position(self) -> int:
        """How many entries the segment has."""
        return self.number - self.first

    def wants_segment(self, now: Instant) -> bool:
        """Whether the next entry begins a segment: one a day, and before it is too long to be read at once."""
        if not self.first or self.position >= SEGMENT_ENTRIES_MAX:
            return True
        return self.position > 0 and now // DAY_MS > self.at // DAY_MS

    def begin_segment(self, now: Instant) -> tuple["ChainEnd", AuditSegment]:
        at = max(now, self.at)
        end = msgspec.structs.replace(self, first=self.number, at=at)
        return end, AuditSegment(server=self.server, first=self.number, at=at, previous=self.previous)

    def add(self, record: RequestRecord, now: Instant) -> tuple["ChainEnd", bytes]:
        """The end after this entry, and the entry. Time never runs back in a chain."""
        at = max(now, self.at)
        fields = {name: getattr(record, name) for name in record.__struct_fields__}
        entry = _encode(AuditEntry(server=self.server, number=self.number, at=at, previous=self.previous, **fields))
        end = ChainEnd(self.server, self.first, self.number + 1, at, sha256_of(entry))
        return end, entry


class ChainCheck:
    """Reads a chain from its beginning, and remembers the first thing that is wrong with it."""

    def __init__(self, server: str, cut: AuditCut | None, head: AuditChain | None) -> None:
        self._server = server
        self._cut = cut.count if cut is not None else 0
        self._sha256 = cut.sha256 if cut is not None else ""
        self._next = self._cut + 1
        self._head = head
        self._head_seen = head is not None and head.count == self._cut and head.sha256 == self._sha256
        self.problem = ""

    def begin_segment(self, segment: AuditSegment) -> None:
        if segment.first != self._next:
            self._fail(f"entries {self._next} to {segment.first - 1} are missing")
        elif segment.previous != self._sha256:
            self._fail(f"entry {segment.first - 1} is not the one that entry {segment.first} was written after")

    def read(self, stored: bytes) -> None:
        """The next entry, as it is stored."""
        if self.problem:
            return
        try:
            entry = _decode(stored)
        except msgspec.MsgspecError:
            self._fail(f"entry {self._next} cannot be read")
            return
        if entry.server != self._server or entry.number != self._next:
            self._fail(f"in the place of entry {self._next} stands entry {entry.number} of {entry.server[:80]}")
        elif entry.previous != self._sha256:
            self._fail(f"entry {entry.number - 1} was changed after entry {entry.number} was written")
        else:
            self._sha256, self._next = sha256_of(stored), self._next + 1
            if self._head is not None and self._head.count == entry.number:
                self._head_seen = self._head.sha256 == self._sha256
                if not self._head_seen:
                    self._fail(f"entry {entry.number} was changed")

    def _fail(self, problem: str) -> None:
        self.problem = self.problem or problem

    def result(self) -> ChainView:
        """What was found, once everything was read."""
        last = self._next - 1
        if self._head is None and last > self._cut:
            self._fail(f"the document that counts the chain of {self._server} is missing")
        if self._head is not None and self._head.count > last:
            self._fail(f"entries {last + 1} to {self._head.count} are missing at the end")
        elif self._head is not None and not self._head_seen and self._head.count > 0:
            self._fail(f"entry {self._head.count} is not the one that was counted as the last")
        return ChainView(
            server=self._server, entries=last - self._cut, cut=self._cut, sha256=self._sha256, problem=self.problem
        )


def fits(entry: AuditEntry, query: AuditQuery) -> bool:
    """Whether an entry is among those that are asked for, whatever the time."""
    return (
        (not query.who or entry.who == query.who)
        and (not query.operation or entry.operation == query.operation)
        and (not query.without or entry.operation != query.without)
        and (not query.object or _is_of(query.object, entry.object) or _is_of(query.object, entry.made))
        and (not query.project or entry.project == query.project)
        and (not query.outcome or entry.outcome == query.outcome)
    )


def _is_of(wanted: str, named: str) -> bool:
    """Whether it is this object or one below it: of a case its items `CASE:ITEM`, its jobs and user tasks
    `CASE/NUMBER`, and the cases that it called, `CASE.NUMBER`; of a folder the names in it."""
    if not named.startswith(wanted):
        return False
    rest = named[len(wanted) :]
    return not rest or wanted.endswith("/") or rest[0] in "/:" or (rest[0] == "." and rest[1:2].isdecimal())


def bounded(text: str) -> str:
    """A name or an id from a request, as long as an entry has it at most, and in one line."""
    plain = "".join(each if each.isprintable() else "?" for each in text[: TEXT_CHARS_MAX + 1])
    return plain if len(plain) <= TEXT_CHARS_MAX else f"{plain[: TEXT_CHARS_MAX - 1]}…"
