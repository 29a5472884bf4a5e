"""The fields of documents that people search by, as the values of their columns.

They are what SQLite's own functions for JSON would find. These would parse the whole document, for several columns and
indexes, and once more when it is replaced; here it is read once, without what is in other fields."""

from typing import Final

import msgspec

Column = str | int | float | None

UNSEARCHED: Final = "snapshot"
"""Nobody searches documents of this kind, and their field `state` is a whole case."""

INT_MAX: Final = 2**63 - 1

_ABSENT: Final = msgspec.Raw(b"null")


class _SearchedFields(msgspec.Struct, frozen=True):
    case: msgspec.Raw = _ABSENT
    state: msgspec.Raw = _ABSENT
    status: msgspec.Raw = _ABSENT
    created_at: msgspec.Raw = _ABSENT
    started_at: msgspec.Raw = _ABSENT
    project: msgspec.Raw = _ABSENT
    key: msgspec.Raw = _ABSENT
    stands_for: msgspec.Raw = _ABSENT


COLUMNS: Final = (
    *("by_case", "by_state", "by_status", "by_created", "by_started", "by_project", "by_key"),
    "by_stands_for",
)
"""In the order of the fields."""

_decode = msgspec.json.Decoder(_SearchedFields).decode
_decode_value = msgspec.json.Decoder().decode
_NOTHING: Final[tuple[Column, ...]] = (None,) * len(COLUMNS)


def searched_columns(kind: str, body: bytes) -> tuple[Column, ...]:
    if kind == UNSEARCHED:
        return _NOTHING
    try:
        fields = _decode(body)
    except msgspec.ValidationError:
        return _NOTHING  # it is no object
    return tuple(_column(each) for each in msgspec.structs.astuple(fields))


def _column(raw: msgspec.Raw) -> Column:
    """As SQLite sees it: true is 1, a number without bounds is a fraction, and a list is its text."""
    if raw is _ABSENT:
        return None
    value = _decode_value(raw)
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, int) and not -INT_MAX - 1 <= value <= INT_MAX:
        return float(value)
    found: Column = value
    return found
