"""Converts writes to the columns that the database function takes, sorted by key, and its results back to answers."""

from collections.abc import Sequence

import msgspec

from mendflow.stores.contract import Append, Put, RemoveStream, Write, WriteConflict, WriteDone
from mendflow.stores.fields import BadDocument
from mendflow.stores.postgresql.arrays import BytesArray, NumberArray, TextArray
from mendflow.stores.postgresql.queries import INDEXED_CHARS_MAX

IndexedFields = tuple[str | None, str | None, str | None]


class _Known(msgspec.Struct):
    """The fields that are stored beside a body, if they are texts."""

    case: object = None
    state: object = None
    status: object = None


_known = msgspec.json.Decoder(_Known)


def fields_of(write: Put) -> IndexedFields:
    """The three fields of a body that have columns; refused if the body is not JSON."""
    try:
        known = _known.decode(write.body)
    except msgspec.ValidationError:
        known = _Known()  # JSON, but not an object
    except msgspec.DecodeError as error:
        raise BadDocument(f"{write.kind} {write.id} cannot be stored: its body is not JSON ({error})") from None
    return _indexed(known.case), _indexed(known.state), _indexed(known.status)


def _indexed(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= INDEXED_CHARS_MAX and "\0" not in value else None


class WriteGroup:
    """A group of writes. Sorted, so that two servers lock rows in the same order; writes to the same key keep their
    order."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self._writes = writes
        self._order = sorted(range(len(writes)), key=lambda at: _key(writes[at]))
        self._kinds, self._ids, self._bodies = TextArray(), TextArray(), TextArray()
        self._cases, self._states, self._statuses = TextArray(), TextArray(), TextArray()
        self._expecteds, self._addeds = NumberArray(), NumberArray()
        self._owners, self._streams, self._positions, self._entries = (
            NumberArray(),
            TextArray(),
            NumberArray(),
            BytesArray(),
        )
        for at in self._order:
            self._add(writes[at])

    @property
    def params(self) -> tuple[object, ...]:
        return (
            *(self._kinds, self._ids, self._expecteds, self._bodies, self._cases, self._states, self._statuses),
            *(self._addeds, self._owners, self._streams, self._positions, self._entries),
        )

    def answers(self, made: Sequence[int]) -> list[WriteDone | WriteConflict]:
        """The result of each write, in the order in which they were given."""
        outcomes = dict(zip(self._order, made, strict=True))
        return [_answer(write, outcomes[at]) for at, write in enumerate(self._writes)]

    def _add(self, write: Write) -> None:
        if isinstance(write, Append):
            self._row(None, write.stream, write.expected, None, (None, None, None), write.entries)
        elif isinstance(write, Put):
            self._row(write.kind, write.id, write.expected, write.body, fields_of(write))
        elif isinstance(write, RemoveStream):
            while self._streams and self._streams[-1] == write.stream:  # the group's own entries, which go too
                for column in (self._owners, self._streams, self._positions, self._entries):
                    column.pop()
            self._row("", write.stream, 0, None, (None, None, None))
        else:
            self._row(write.kind, write.id, write.expected, None, (None, None, None))

    def _row(
        self,
        kind: str | None,
        id: str,
        expected: int,
        body: bytes | None,
        fields: IndexedFields,
        entries: Sequence[bytes] = (),
    ) -> None:
        self._kinds.append(kind)
        self._ids.append(id)
        self._expecteds.append(expected)
        self._bodies.append(body)
        self._cases.append(fields[0])
        self._states.append(fields[1])
        self._statuses.append(fields[2])
        self._addeds.append(len(entries))
        self._owners += [len(self._ids)] * len(entries)
        self._streams += [id] * len(entries)
        self._positions += range(expected, expected + len(entries))
        self._entries += entries


def _key(write: Write) -> tuple[str, str]:
    """Streams are sorted before documents, and have no kind."""
    return ("", write.stream) if isinstance(write, (Append, RemoveStream)) else (write.kind, write.id)


def _answer(write: Write, made: int) -> WriteDone | WriteConflict:
    if made >= 0:
        return WriteDone(made)
    kind, id = _key(write)
    assert not isinstance(write, RemoveStream), "nothing refuses the removal of a stream"
    return WriteConflict(kind or "stream", id, write.expected, -made - 1)
