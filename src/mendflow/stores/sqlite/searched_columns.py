"""The fields of documents that people search by, as the values of their columns.

They are what SQLite's own functions for JSON would find. These would parse the whole document, for several columns and
indexes, and once more when it is replaced; here it is read once, without what is in other fields. Nearly all values are
texts and times, which are taken as they are read; where one is anything else, each field is looked at."""

from typing import Annotated, Final

import msgspec

PlainColumn = str | int | None
Column = PlainColumn | float

UNSEARCHED: Final = frozenset({"snapshot", "result"})
"""Nobody searches documents of these kinds by a column. A field `state` of a snapshot is a whole case; a result has
none of the fields, and there is one for each job."""

CASE: Final = "case"
"""The only kind that is searched by the last four columns."""

INT_MAX: Final = 2**63 - 1

COLUMNS: Final = (
    *("by_case", "by_state", "by_status", "by_created", "by_started", "by_project", "by_key"),
    "by_stands_for",
)
"""In the order of the fields."""

COLUMNS_OF_MOST: Final = COLUMNS[:4]
"""Those of all kinds but cases, of which nobody reads the others."""

NOTHING: Final[tuple[PlainColumn, ...]] = (None,) * len(COLUMNS_OF_MOST)
"""The columns of a document without any field that is searched by."""

_Plain = str | Annotated[int, msgspec.Meta(ge=-INT_MAX - 1, le=INT_MAX)] | None


class _PlainFields(msgspec.Struct, frozen=True, gc=False):
    case: _Plain = None
    state: _Plain = None
    status: _Plain = None
    created_at: _Plain = None


class _PlainFieldsOfCase(_PlainFields, frozen=True, gc=False):
    started_at: _Plain = None
    project: _Plain = None
    key: _Plain = None
    stands_for: _Plain = None


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


_decode_plain = msgspec.json.Decoder(_PlainFields).decode
_decode_plain_case = msgspec.json.Decoder(_PlainFieldsOfCase).decode
_decode = msgspec.json.Decoder(_SearchedFields).decode
_decode_value = msgspec.json.Decoder().decode
_values_of = msgspec.structs.astuple


def columns_of(kind: str) -> tuple[str, ...]:
    """The columns that documents of this kind have values in."""
    return COLUMNS if kind == CASE else COLUMNS_OF_MOST


def plain_columns(kind: str, body: bytes) -> tuple[PlainColumn, ...] | None:
    """The columns of a document in which all are texts, whole numbers, or empty: values that are equal are the same in
    the store too. None if some are anything else."""
    try:
        return _values_of(_decode_plain_case(body) if kind == CASE else _decode_plain(body))
    except msgspec.ValidationError:
        return None


def searched_columns(kind: str, body: bytes) -> tuple[Column, ...]:
    """The columns of any document."""
    count = len(columns_of(kind))
    try:
        fields = _decode(body)
    except msgspec.ValidationError:
        return (None,) * count  # it is no object
    return tuple(_column(each) for each in _values_of(fields)[:count])


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
