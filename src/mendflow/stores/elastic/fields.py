"""How fields of documents are indexed in Elasticsearch, whatever their names.

User data has any field names, but an index should have few fields. So every value of a document becomes a *token*, a
text such as `size.kg=n…`, and all tokens are in one keyword field. A token has the path, the type and the value in that
order, and numbers are encoded so that they sort as texts: equality is then a term query, and an ordering a range
between two tokens of one path. A second field has the paths that are not null.

The cluster can sort and count only by index fields. The few fields that mendflow itself sorts and counts by are index
fields too (KNOWN); for any other, the store sorts and counts what the cluster finds."""

import hashlib
import math
import re
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

from mendflow.core.model.values import Value
from mendflow.stores.contract import FieldCondition
from mendflow.stores.fields import field_of, rank_of, text_of

KNOWN = (
    "added_at",
    "at",
    "case",
    "created_at",
    "digest",
    "ended_at",
    "exlet",
    "flow",
    "home",
    "level",
    "name",
    "offered_at",
    "owner",
    "pilot",
    "place",
    "raised_at",
    "result",
    "server",
    "signature",
    "site",
    "spec.owner",
    "started_at",
    "state",
    "status",
    "task",
)
"""Documents that were written before a name was added here lack it, and are read to be counted by it: with a new name,
add a step to the mapping."""

TOKENS_MAX = 1000
"""Only the first so many values of a document are searchable, those near its root first."""

PATH_MAX = 500
"""Longer paths are not indexed: nobody searches for them, and the length of a token is limited."""

TEXT_BYTES_MAX = 1000
"""A longer text is indexed by its beginning and its digest: equality is exact, ordering uses the beginning."""

TOO_LONG = "\x00long"
"""Stands in the field to count by for a name that is too long for it."""

_NAME = re.compile(r"[A-Za-z0-9_]+\Z")
_NUMBER, _TEXT, _TRUTH, _OTHER = "n", "t", "b", "x"

Json = dict[str, Any]


def index_terms(data: Value) -> Json:
    """The index fields of a document besides its body."""
    tokens, paths = _walk(data)
    by = {field: key for field in KNOWN if (key := sort_key(field_of(data, field))) is not None}
    names = {field: _short_name(value) for field in KNOWN if (value := field_of(data, field)) is not None}
    return {"tokens": tokens, "has": paths, "by": by, "as": names}


def sort_key(value: Value) -> str | None:
    """A text that sorts as the value does: null, then numbers, then texts, then everything else as equal."""
    rank, comparable = rank_of(value)
    if rank == 0:
        return None
    return f"{rank}{_number(comparable)}" if rank == 1 else f"{rank}{_short(comparable) if rank == 2 else ''}"


def query(kind: str, where: Sequence[FieldCondition], prefix: str = "") -> Json:
    """The query for documents of a kind that satisfy every condition."""
    wanted: list[Json] = [{"term": {"kind": kind}}, *map(_condition, where)]
    if prefix:
        wanted.append({"prefix": {"id": prefix}})
    return {"bool": {"filter": wanted}}


def unindexed(kind: str, where: Sequence[FieldCondition], field: str) -> Json:
    """The query for those of them that have the field, and were written before it was one of KNOWN."""
    found = query(kind, where)
    found["bool"] |= {"must_not": [{"exists": {"field": f"as.{field}"}}]}
    found["bool"]["filter"].append({"term": {"has": field}})
    return found


def _condition(where: FieldCondition) -> Json:
    field, value = where.field, where.value
    match where.op:
        case "eq":
            return _any_of(field, [value])
        case "ne":
            return _not(_any_of(field, [value]))
        case "in":
            return _any_of(field, value)
    sort, text = (_TEXT, _short(value)) if isinstance(value, str) else (_NUMBER, _number(value))
    first, behind = f"{field}={sort}", f"{field}={chr(ord(sort) + 1)}"
    wanted = first + text
    if isinstance(value, float) and math.isnan(value):
        return _not({"match_all": {}})
    bounds = {"lt": (first, wanted), "le": (first, wanted), "gt": (wanted, behind), "ge": (wanted, behind)}[where.op]
    low, high = ("gt" if where.op == "gt" else "gte"), ("lte" if where.op == "le" else "lt")
    return {"range": {"tokens": {low: bounds[0], high: bounds[1]}}}


def _any_of(field: str, values: Sequence[Value]) -> Json:
    tokens = [token for value in values if value is not None for token in _equal(field, value)]
    found: Json = {"terms": {"tokens": tokens}}
    if None not in values:
        return found
    absent = _not({"term": {"has": field}})
    return {"bool": {"should": [found, absent], "minimum_should_match": 1}}


def _not(condition: Json) -> Json:
    return {"bool": {"must_not": [condition]}}


def _equal(field: str, value: Value) -> list[str]:
    """The tokens of values that equal this one; true equals 1, and false 0."""
    if isinstance(value, str):
        return [f"{field}={_TEXT}{_short(value)}"]
    same = [f"{field}={_NUMBER}{_number(value)}"]
    return [*same, f"{field}={_TRUTH}{int(value)}"] if value in (0, 1) else same


def _walk(data: Value) -> tuple[list[str], list[str]]:
    tokens: list[str] = []
    paths: list[str] = []
    waiting: deque[tuple[str, Value]] = deque([("", data)])
    while waiting and len(paths) < TOKENS_MAX:
        path, value = waiting.popleft()
        if len(path) > PATH_MAX:
            continue
        if path and value is not None:
            tokens.append(f"{path}={_token(value)}")
            paths.append(path)
        if isinstance(value, dict):
            # Names with other characters cannot be searched for.
            waiting.extend(
                (f"{path}.{name}" if path else name, each) for name, each in value.items() if _NAME.match(name)
            )
    return tokens, paths


def _token(value: Value) -> str:
    if isinstance(value, str):
        return _TEXT + _short(value)
    if isinstance(value, bool):
        return f"{_TRUTH}{int(value)}"
    return _NUMBER + _number(value) if isinstance(value, (int, float)) else _OTHER


def _number(value: float) -> str:
    """The nearest float that is not greater, as bits that sort as text; then the rest of an integer."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if math.isinf(near) or math.isnan(near):
        return _bits(near)
    near = math.nextafter(near, -math.inf) if near > value else near
    more = min(int(value) - int(near), 2**64 - 1) if isinstance(value, int) else 0
    return _bits(near) + (f"{more:016x}" if more else "")


def _bits(number: float) -> str:
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # + 0.0 turns -0.0 into 0.0
    return f"{(~bits if bits >> 63 else bits | 1 << 63) & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def _short(text: str) -> str:
    raw = text.encode()
    if len(raw) <= TEXT_BYTES_MAX:
        return text
    return f"{raw[:TEXT_BYTES_MAX].decode(errors='ignore')}\x00{hashlib.sha256(raw).hexdigest()}"


def _short_name(value: Value) -> str:
    name = text_of(value)
    return name if len(name.encode()) <= TEXT_BYTES_MAX else TOO_LONG
