"""Every SQL statement of the PostgreSQL store, named and described; and how a search becomes SQL.

Values are always bound, never part of the text; a field path is validated before, and is bound too."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.values import Value
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.fields import field_of, is_number, rank_of
from mendflow.stores.postgresql.arrays import TextArray
from mendflow.stores.sql import Params, all_conditions

WRITE_GROUP = b"""
SELECT write_group(%b, %b::bigint, %b::bigint, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)
"""

BEGIN_LIFE = b"""
-- A writer's new life: what an older one sent and nobody heard of happens no more. Waits for what is happening.
INSERT INTO writers (writer, life, number, outcomes) VALUES (%b, 1, 0, '{}')
ON CONFLICT (writer) DO UPDATE SET life = writers.life + 1, seen_at = now()
RETURNING life, number, outcomes
"""

END_LIFE = b"DELETE FROM writers WHERE writer = %b"

FORGET_OLD_WRITERS = b"DELETE FROM writers WHERE seen_at < now() - interval '2 days'"

KINDS = b"""
-- Each kind once, by a step of the index per kind: the table may be large, and there are few kinds.
WITH RECURSIVE found (kind) AS (
  (SELECT kind FROM documents ORDER BY kind LIMIT 1)
  UNION ALL
  SELECT (SELECT d.kind FROM documents d WHERE d.kind > found.kind ORDER BY d.kind LIMIT 1)
  FROM found WHERE found.kind IS NOT NULL
)
SELECT kind FROM found WHERE kind IS NOT NULL
"""

NOTHING = b"SELECT 1"

GET = b"SELECT version, body FROM documents WHERE kind = %b AND id = %b"

GET_MANY = b"""
SELECT d.id, d.version, d.body
FROM unnest(%b) WITH ORDINALITY AS k (id, number) JOIN documents d ON d.kind = %b AND d.id = k.id ORDER BY k.number
"""

STATUSES = b"""
SELECT d.id, d.by_status
FROM unnest(%b) AS k (id) JOIN documents d ON d.kind = %b AND d.id = k.id WHERE d.by_status IS NOT NULL
"""

READ = b"SELECT body FROM entries WHERE stream = %b AND position >= %b::bigint ORDER BY position LIMIT %b::bigint"

LENGTH = b"SELECT length FROM streams WHERE stream = %b"

_SCAN = (
    b"SELECT id, version, body FROM documents WHERE kind = %%b AND id %b %%b AND id < %%b ORDER BY id LIMIT %%b::bigint"
)
SCAN_FIRST, SCAN_NEXT = _SCAN % b">=", _SCAN % b">"

_COLUMNS = {"case": "by_case", "state": "by_state", "status": "by_status"}
INDEXED_CHARS_MAX = 200
"""Longer texts are left out of the columns: their indexes could not hold them."""

_CASE, _STANDS_FOR = "case", "stands_for"

_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALONE = "documents d"
_WITH_DATA = "documents d CROSS JOIN LATERAL (SELECT data_of(d.body) AS data OFFSET 0) j"
"""OFFSET 0 makes PostgreSQL parse the body once per row, however many fields are used."""

"""Parameters of a statement."""


def search(
    kind: str,
    where: Sequence[FieldCondition],
    order_by: str,
    descending: bool,
    limit: int,
    offset: int,
    after: StoredDocument | None = None,
) -> tuple[bytes, Params]:
    """Documents that satisfy every condition, in order; equal ones by id, shorter ids first."""
    condition, params = _conditions(kind, where)
    way = " DESC" if descending else ""
    beyond = "<" if descending else ">"
    if order_by:
        value, path = _field(order_by)
        keys = [f"rank_of({value})", f"number_of({value})", f'text_of({value}) COLLATE "C"', "length(d.id)", "d.id"]
        bound = path * 3
    else:
        keys, bound = ["d.id"], []
    if after is not None:
        marks, place = _place(after, order_by)
        condition += f" AND ({', '.join(keys)}) {beyond} ({marks})"
        params += bound + place
    order = ", ".join(f"{key}{way}" for key in keys)
    source = _WITH_DATA if order_by or _needs_data(where) else _ALONE
    text = f"SELECT d.id, d.version, d.body FROM {source} WHERE {condition} ORDER BY {order}"
    return f"{text} LIMIT %s::bigint OFFSET %s::bigint".encode(), [*params, *bound, limit, offset]


def count(kind: str, where: Sequence[FieldCondition], by: str) -> tuple[bytes, Params]:
    """How many documents satisfy every condition, per value of a field as text."""
    condition, params = _conditions(kind, where)
    source = _WITH_DATA if _needs_data(where) else _ALONE
    if not by:
        return f"SELECT '', count(*) FROM {source} WHERE {condition}".encode(), params
    if by in _COLUMNS:
        label = f"coalesce(d.{_COLUMNS[by]}, label_of(data_of(d.body) -> '{by}'))"
        return f"SELECT {label} AS label, count(*) FROM {source} WHERE {condition} GROUP BY 1".encode(), params
    value, path = _field(by)
    text = f"SELECT label_of({value}) AS label, count(*) FROM {_WITH_DATA} WHERE {condition} GROUP BY 1"
    return text.encode(), path + params


def _place(after: StoredDocument, order_by: str) -> tuple[str, Params]:
    """The position of a document in the order, as the sort keys above."""
    if not order_by:
        return "%s::text", [after.id]
    rank, key = rank_of(field_of(msgspec.json.decode(after.body), order_by))
    number = _json(key + 0) if rank == 1 else "0"
    text = key.replace("\0", "") if rank == 2 else ""
    return "%s::int, %s::numeric, %s::text, %s::int, %s::text", [rank, number, text, len(after.id), after.id]


def _needs_data(where: Sequence[FieldCondition]) -> bool:
    return not all(_has_column(each) for each in where)


def _has_column(where: FieldCondition) -> bool:
    value = where.value
    return where.op == "eq" and where.field in _COLUMNS and isinstance(value, str) and len(value) <= INDEXED_CHARS_MAX


def _conditions(kind: str, where: Sequence[FieldCondition]) -> tuple[str, Params]:
    return all_conditions("d.kind = %s", kind, where, _case_condition if kind == _CASE else _condition)


def _case_condition(where: FieldCondition) -> tuple[str, Params]:
    """Only of cases the texts of this field stand in a column."""
    wanted = where.value if where.op == "in" else [where.value]
    if where.field != _STANDS_FOR or where.op not in ("eq", "in") or not all(map(_is_indexed, wanted)):
        return _condition(where)
    return "d.by_stands_for = ANY(%s)", [TextArray(wanted)]


def _is_indexed(value: Value) -> bool:
    return isinstance(value, str) and 0 < len(value) <= INDEXED_CHARS_MAX and "\0" not in value


def _condition(where: FieldCondition) -> tuple[str, Params]:
    value = where.value
    if _has_column(where):
        return f"d.{_COLUMNS[where.field]} = %s", [value]
    field, path = _field(where.field)
    match where.op:
        case "eq":
            if value is None:
                return f"plain({field}) IS NULL", path
            return f"plain({field}) = %s::jsonb", [*path, _scalar(value)]
        case "ne":
            wanted = None if value is None else _scalar(value)
            return f"plain({field}) IS DISTINCT FROM %s::jsonb", [*path, wanted]
        case "in":
            return _within(field, path, value)
    sign = _COMPARISONS[where.op]
    if is_number(value):
        part = f"CASE jsonb_typeof({field}) WHEN 'number' THEN number_of({field}) {sign} %s::numeric ELSE false END"
    else:
        text = f'text_of({field}) COLLATE "C"'
        part = f"CASE jsonb_typeof({field}) WHEN 'string' THEN {text} {sign} %s::text ELSE false END"
    return part, [*path, *path, _json(value) if is_number(value) else value]


def _within(field: str, path: Params, values: Sequence[Value]) -> tuple[str, Params]:
    given = "[" + ",".join(_scalar(value) for value in values if value is not None) + "]"
    part = f"plain({field}) IN (SELECT jsonb_array_elements(%s::jsonb))"
    if None in values:
        return f"({part} OR plain({field}) IS NULL)", [*path, given, *path]
    return part, [*path, given]


def _field(field: str) -> tuple[str, Params]:
    """The expression for a field, and its parameters. Only names in objects count; a list has no fields."""
    names = field.split(".")
    return "(" + "->".join(["j.data", *["%s::text"] * len(names)]) + ")", list(names)


def _scalar(value: Value) -> str:
    """A value as searches compare it: true and false are numbers."""
    return _json(int(value) if isinstance(value, bool) else value)


def _json(value: Value) -> str:
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
