"""Lists in PostgreSQL's binary format: a header, then each item after its length. Nothing is quoted, and the type is
known even for a list that is empty or has only nulls."""

import struct
from collections.abc import Sequence

from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct("!iiIii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


class TextArray(list[str | bytes | None]):
    """text[]; bytes are UTF-8 already."""


class BytesArray(list[bytes]):
    """bytea[]"""


class NumberArray(list[int]):
    """bigint[]"""


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = 1009

    def dump(self, obj: TextArray) -> Buffer:
        return _array(25, [item.encode() if isinstance(item, str) else item for item in obj])


class _BytesDumper(Dumper):
    format = Format.BINARY
    oid = 1001

    def dump(self, obj: BytesArray) -> Buffer:
        return _array(17, obj)


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = 1016

    def dump(self, obj: NumberArray) -> Buffer:
        flat = [8] * (2 * len(obj))
        flat[1::2] = obj
        return _header(20, len(obj)) + struct.pack("!" + "iq" * len(obj), *flat)


ARRAY_DUMPERS: tuple[tuple[type, type[Dumper]], ...] = (
    (TextArray, _TextsDumper),
    (BytesArray, _BytesDumper),
    (NumberArray, _NumbersDumper),
)


def _array(item_oid: int, items: Sequence[bytes | None]) -> bytes:
    parts = [_header(item_oid, len(items))]
    for item in items:
        if item is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(item)), item)
    return b"".join(parts)


def _header(item_oid: int, count: int) -> bytes:
    """An empty array has no dimension; otherwise one, starting at 1. The flag says that there may be nulls."""
    return _HEADER.pack(1, 1, item_oid, count, 1) if count else struct.pack("!iiI", 0, 0, item_oid)
