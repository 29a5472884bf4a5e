"""Every SQL statement of the SQLite store, named and described; and how a search becomes SQL.

Values are always bound, never part of the text; a field path is validated before, and is bound too."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mendflow.core.model.values import Value
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.fields import field_of, is_number
from mendflow.stores.sql import Params, all_conditions

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # a commit that returned has been synced to the disk
    "PRAGMA wal_autocheckpoint = 64000",  # 256 MB: before that, checkpoints.py copies the log beside the commits
    "PRAGMA cache_size = -32000",
    "PRAGMA temp_store = MEMORY",
)

WAIT_FOR_NO_LOCK = "PRAGMA busy_timeout = 0"
"""The writer runs on the event loop and must not block it; where it can wait for a lock, it does so itself."""

VERSION = "SELECT version FROM documents WHERE kind = ? AND id = ?"

VERSIONS = """
-- The versions of documents of one kind in one answer: a JSON list of [id, version]; absent ones are left out.
SELECT json_group_array(json_array(d.id, d.version))
FROM json_each(?2) k CROSS JOIN documents d ON d.kind = ?1 AND d.id = k.value
"""

LENGTHS = """
-- The lengths of many streams in one answer: a JSON list of [stream, length].
SELECT json_group_array(json_array(k.value,
         (SELECT coalesce(max(e.position) + 1, 0) FROM entries e WHERE e.stream = k.value)))
FROM json_each(?) k
"""

RESERVED = "SELECT upto FROM versions"

RESERVE = "UPDATE versions SET upto = ?"
"""Versions up to this number may be used; recorded before the first of them is."""

PUT_WIDTH = 4
"""A row to put has its kind, id, version and body, and the columns that the statement writes."""


def put(columns: Sequence[str], *, empty: Sequence[str] = ()) -> tuple[str, str, str]:
    """Write whole documents; the writer has compared their versions. Of the columns for searches those in `columns` are
    written, those in `empty` are emptied, and all others stay as they are. A new row has nothing in a column that is
    not written, so to empty some costs only where something is replaced. The middle part is repeated per row."""
    written = ("version", *columns, "body")
    changes = [*(f"{each} = excluded.{each}" for each in written), *(f"{each} = NULL" for each in empty)]
    return (
        f"INSERT INTO documents (kind, id, {', '.join(written)}) VALUES ",
        f"(?, ?, ?, {'?, ' * len(columns)}CAST(? AS TEXT))",
        f" ON CONFLICT (kind, id) DO UPDATE SET {', '.join(changes)}",
    )


APPEND = ("INSERT INTO entries (stream, position, body) VALUES ", "(?, ?, ?)", "")
"""Add entries at their positions; the writer has compared the streams' lengths."""

DELETE = """
-- Remove many documents; the parameter is a JSON list of [kind, id].
DELETE FROM documents WHERE rowid IN (
  SELECT d.rowid FROM json_each(?) k JOIN documents d ON d.kind = k.value->>0 AND d.id = k.value->>1)
"""

REMOVE_STREAMS = """
-- Remove all entries of many streams; the parameter is a JSON list of their names.
DELETE FROM entries WHERE stream IN (SELECT value FROM json_each(?))
"""

KINDS = """
-- Each kind once, by a step of the index per kind: the table may be large, and there are few kinds.
WITH RECURSIVE found (kind) AS (
  SELECT min(kind) FROM documents
  UNION ALL
  SELECT (SELECT min(d.kind) FROM documents d WHERE d.kind > found.kind) FROM found WHERE found.kind IS NOT NULL
)
SELECT kind FROM found WHERE kind IS NOT NULL
"""

GET = "SELECT version, body FROM documents WHERE kind = ? AND id = ?"

GET_MANY = """
-- The documents of one kind with the ids of a JSON list, in its order: json_each is the outer loop, and goes by it.
SELECT d.id, d.version, d.body FROM json_each(?2) k CROSS JOIN documents d ON d.kind = ?1 AND d.id = k.value
"""

STATUSES = """
-- The column stands before the body, so no body is read.
SELECT d.id, d.by_status FROM json_each(?2) k CROSS JOIN documents d ON d.kind = ?1 AND d.id = k.value
"""

READ = "SELECT body FROM entries WHERE stream = ? AND position >= ? ORDER BY position LIMIT ?"

LENGTH = "SELECT coalesce(max(position) + 1, 0) FROM entries WHERE stream = ?"

SCAN_FIRST = "SELECT id, version, body FROM documents WHERE kind = ? AND id >= ? AND id < ? ORDER BY id LIMIT ?"
SCAN_NEXT = "SELECT id, version, body FROM documents WHERE kind = ? AND id > ? AND id < ? ORDER BY id LIMIT ?"

_COLUMNS = {"case": "by_case", "state": "by_state", "status": "by_status"}
_CREATED = "created_at"
_CASE = "case"
_STARTED = "started_at"
_PROJECT = "project"
_KEY = "key"
_STANDS_FOR = "stands_for"
_PROJECTS_MAX = 16
"""Of more projects than this, cases are read in the order of all."""

_ID_AFTER_SEARCH = "+id"  # the plus keeps SQLite from walking all documents by id just to sort them
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class SearchRequest(NamedTuple):
    """What a search asks for. `order_by` is empty for the order of ids; the page begins behind `after`."""

    kind: str
    where: Sequence[FieldCondition]
    order_by: str
    descending: bool
    limit: int
    offset: int
    after: StoredDocument | None = None


def many(statement: tuple[str, str, str], rows: int) -> str:
    """A statement for several rows: one step of SQLite, so the interpreter lock is released and taken only once."""
    head, row, tail = statement
    return head + ",".join([row] * rows) + tail


def search(asked: SearchRequest) -> tuple[str, Params]:
    """Documents that satisfy every condition, in order; equal ones by id, so that pages never overlap, and shorter ids
    first, so that numbers at their end are in order."""
    kind, where, order_by, descending, limit, offset, after = asked
    condition, params = _conditions(kind, where)
    way = " DESC" if descending else ""
    order = f"{_ID_AFTER_SEARCH if where else 'id'}{way}"
    if after is not None:
        behind, more = _behind(after, order_by, descending) if order_by else (_id_behind(descending), [after.id])
        condition += f" AND {behind}"
        params += more
    if order_by:
        expression, more = _field(order_by)
        order = f"{expression}{way}, length(id){way}, id{way}"
        params += more
    rows = f"SELECT rowid AS place FROM documents WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?"
    return _documents_of(rows), [*params, limit, offset]


def _documents_of(rows: str) -> str:
    """The documents at these places, in the same order. Bodies are read when the places are in order: to put some in
    order that are megabytes together, SQLite would write them to a file. The left side of a CROSS JOIN is its outer
    loop, and SQLite keeps the order of a part that has a LIMIT, so the order stays."""
    return f"SELECT d.id, d.version, d.body FROM ({rows}) CROSS JOIN documents d ON d.rowid = place"


def newest(asked: SearchRequest) -> tuple[str, Params] | None:
    """The same for the newest documents, by the index that has them in order; None if another order is wanted, or if
    those of one case are, which are found by it. Documents that do not say when they were made, which come last, are
    left out: the answer is whole if there are as many as may be."""
    kind, where, order_by, descending, limit, offset, after = asked
    if order_by != _CREATED or not descending or any(each.field == "case" for each in where):
        return None
    condition, params = _conditions(kind, where)
    if after is not None:
        made = field_of(msgspec.json.decode(after.body), order_by)
        if not is_number(made):
            return None
        condition += " AND (by_created, length(id), id) < (?, ?, ?)"
        params += [made, len(after.id), after.id]
    sql = (
        f"SELECT id, version, body FROM documents INDEXED BY documents_by_created WHERE {condition}"
        " AND by_created IS NOT NULL ORDER BY by_created DESC, length(id) DESC, id DESC LIMIT ? OFFSET ?"
    )
    return sql, [*params, limit, offset]


def newest_cases(asked: SearchRequest) -> tuple[str, Params] | None:
    """The same for the newest cases, by the indexes that have them in order, of each project that is asked for; None if
    something else is wanted. The cases of other projects are not read, however many and large they are."""
    kind, where, order_by, descending, limit, offset, after = asked
    if kind != _CASE or order_by != _STARTED or not descending:
        return None
    behind = _behind_started(after)
    if behind is None:
        return None
    index, projects, others = _split_by_project(where)
    conditions = [_condition(each) for each in others]
    condition = " AND ".join(["kind = 'case'", *(part for part, _ in conditions)])
    params = [value for _, values in conditions for value in values]
    parts, given = [], Params()
    for project, of_project in projects:
        for place, of_place in behind:
            parts.append(
                f"SELECT * FROM (SELECT rowid AS place, by_started, id FROM documents INDEXED BY {index}"
                f" WHERE {condition} AND {project} AND {place}"
                " ORDER BY by_started DESC, length(id) DESC, id DESC LIMIT ?)"
            )
            given += [*params, *of_project, *of_place, limit + offset]
    rows = (
        f"SELECT place FROM ({' UNION ALL '.join(parts)})"
        " ORDER BY by_started DESC, length(id) DESC, id DESC LIMIT ? OFFSET ?"
    )
    return _documents_of(rows), [*given, limit, offset]


def keyed_cases(asked: SearchRequest) -> tuple[str, Params] | None:
    """The same for the cases with a key, by the index that has them; None if something else is wanted."""
    kind, where, order_by, _, limit, offset, after = asked
    keys = [each.value for each in where if each.field == _KEY and each.op == "eq"]
    if kind != _CASE or order_by or after is not None or len(keys) != 1 or not (isinstance(keys[0], str) and keys[0]):
        return None
    conditions = [_condition(each) for each in where if each.field != _KEY or each.op != "eq"]
    condition = " AND ".join(["kind = 'case'", "by_key > ''", "by_key = ?", *(part for part, _ in conditions)])
    way = " DESC" if asked.descending else ""
    rows = (
        f"SELECT rowid AS place FROM documents INDEXED BY cases_by_key WHERE {condition}"
        f" ORDER BY {_ID_AFTER_SEARCH}{way} LIMIT ? OFFSET ?"
    )
    return _documents_of(rows), [*keys, *(value for _, values in conditions for value in values), limit, offset]


def later_runs(asked: SearchRequest) -> tuple[str, Params] | None:
    """The same for the cases that were run in place of some, by the index that has them; None if something else is
    wanted."""
    kind, where, order_by, descending, limit, offset, after = asked
    about = [each for each in where if each.field == _STANDS_FOR and each.op in ("eq", "in")]
    if kind != _CASE or order_by or len(about) != 1:
        return None
    wanted = about[0].value if about[0].op == "in" else [about[0].value]
    if not all(isinstance(value, str) for value in wanted):
        return None
    conditions = [_condition(each) for each in where if each is not about[0]]
    if after is not None:
        conditions.append((_id_behind(descending), [after.id]))
    condition = " AND ".join(["by_stands_for IN (SELECT value FROM json_each(?))", *(part for part, _ in conditions)])
    way = " DESC" if descending else ""
    rows = (
        "SELECT rowid AS place FROM documents INDEXED BY cases_by_stands_for"
        f" WHERE kind = 'case' AND by_stands_for IS NOT NULL AND {condition}"
        f" ORDER BY {_ID_AFTER_SEARCH}{way} LIMIT ? OFFSET ?"
    )
    given = msgspec.json.encode(wanted).decode()
    return _documents_of(rows), [given, *(value for _, values in conditions for value in values), limit, offset]


def _split_by_project(
    where: Sequence[FieldCondition],
) -> tuple[str, list[tuple[str, Params]], list[FieldCondition]]:
    """The index to read by, the condition on each project to read there, and the conditions that are left."""
    about = [each for each in where if each.field == _PROJECT and each.op in ("eq", "in")]
    others = [each for each in where if each not in about]
    if len(about) == 1:
        [only] = about
        wanted = list(dict.fromkeys(only.value)) if only.op == "in" else [only.value]
        if 0 < len(wanted) <= _PROJECTS_MAX and all(value is None or isinstance(value, str) for value in wanted):
            projects: list[tuple[str, Params]] = [
                ("by_project IS NULL", []) if value is None else ("by_project = ?", [value]) for value in wanted
            ]
            return "cases_by_project", projects, others
    return "cases_by_started", [("true", [])], list(where)


def _behind_started(after: StoredDocument | None) -> list[tuple[str, Params]] | None:
    """Where the page may begin, as conditions each of which an index answers: those that do not say when they began
    come last. None if the document before it has something else there than a time."""
    if after is None:
        return [("true", [])]
    began = field_of(msgspec.json.decode(after.body), _STARTED)
    if not is_number(began):
        return None
    place = [began, len(after.id), after.id]
    return [("(by_started, length(id), id) < (?, ?, ?)", place), ("by_started IS NULL", [])]


def _id_behind(descending: bool) -> str:
    return "id < ?" if descending else "id > ?"


def _behind(after: StoredDocument, order_by: str, descending: bool) -> tuple[str, Params]:
    """The condition for documents after a given one in the order of a field. Null sorts first, and equals only
    itself."""
    field, path = _field(order_by)
    value = field_of(msgspec.json.decode(after.body), order_by)
    beyond = "<" if descending else ">"
    alike, ids = f"(length(id), id) {beyond} (?, ?)", [len(after.id), after.id]
    if value is None:
        later = f" OR {field} IS NOT NULL" if not descending else ""
        return f"(({field} IS NULL AND {alike}){later})", [*path, *ids, *(path if later else [])]
    bound = value if isinstance(value, (bool, int, float, str)) else msgspec.json.encode(value).decode()
    later = f" OR {field} IS NULL" if descending else ""
    part = f"({field} {beyond} ? OR ({field} = ? AND {alike}){later})"
    return part, [*path, bound, *path, bound, *ids, *(path if later else [])]


def count(kind: str, where: Sequence[FieldCondition], by: str) -> tuple[str, Params]:
    """How many documents satisfy every condition, per value of a field as text."""
    condition, params = _conditions(kind, where)
    if not by:
        return f"SELECT '', count(*) FROM documents WHERE {condition}", params
    expression, more = _field(by)
    if by not in _COLUMNS:
        path = _path(by)
        expression = f"CASE json_type(body, ?) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE {expression} END"
        more = [path, *more]
    return f"SELECT {expression} AS value, count(*) FROM documents WHERE {condition} GROUP BY value", more + params


def _conditions(kind: str, where: Sequence[FieldCondition]) -> tuple[str, Params]:
    return all_conditions("kind = ?", kind, where, _condition)


def _condition(where: FieldCondition) -> tuple[str, Params]:
    field, path = _field(where.field)
    value = where.value
    match where.op:
        case "eq":
            return (f"{field} IS NULL", path) if value is None else (f"{field} = ?", [*path, value])
        case "ne":
            return f"{field} IS NOT ?", [*path, value]
        case "in":
            return _within(field, path, value)
    # The type in the JSON, not in SQLite, where true and false are numbers.
    types = "('text')" if isinstance(value, str) else "('integer', 'real')"
    part = f"(json_type(body, ?) IN {types} AND {field} {_COMPARISONS[where.op]} ?)"
    return part, [_path(where.field), *path, value]


def _within(field: str, path: Params, values: Sequence[Value]) -> tuple[str, Params]:
    given = msgspec.json.encode([value for value in values if value is not None]).decode()
    part = f"{field} IN (SELECT value FROM json_each(?))"
    if None in values:
        return f"({part} OR {field} IS NULL)", [*path, given, *path]
    return part, [*path, given]


def _field(field: str) -> tuple[str, Params]:
    """The expression for a field, and its parameters."""
    column = _COLUMNS.get(field)
    return (column, []) if column else ("json_extract(body, ?)", [_path(field)])


def _path(field: str) -> str:
    """Each name is quoted, because it may start with a digit."""
    return "$" + "".join(f'."{name}"' for name in field.split("."))
