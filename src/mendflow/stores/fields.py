"""The meaning of search conditions, the same for every store: which fields are allowed, and what a comparison means.

A field is a dotted path into the document's JSON. A missing field is null. `eq` and `in` find equal values, null
included; `ne` is exactly the opposite of `eq`; the four orderings hold only between two numbers or two texts. Each
store translates this into its own query language, and the contract suite checks that the answers agree."""

from collections.abc import Iterable, Sequence

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern
from mendflow.stores.contract import FieldCondition, StoredDocument

OPS = ("eq", "ne", "lt", "le", "gt", "ge", "in")
ORDERINGS = ("lt", "le", "gt", "ge")
_PATH = lazy_pattern(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*\Z")


class BadQuery(RequestError):
    """A search that no store can answer."""

    code = "bad-query"


class BadDocument(RequestError):
    """Something that no store can hold, such as a body that is not JSON. The whole call is refused."""

    code = "bad-document"


def check_field(field: str) -> str:
    """The field, if it is a dotted path of plain names."""
    if _PATH.match(field) is None:
        raise BadQuery(
            f"{field!r} is not a field path: use names of letters, digits and _ joined by dots, such as spec.owner",
            field=field,
        )
    return field


def check(where: Sequence[FieldCondition], *more: str) -> None:
    """Refuse a search with invalid fields, operators or values."""
    for field in more:
        if field:
            check_field(field)
    for condition in where:
        check_field(condition.field)
        if condition.op not in OPS:
            raise BadQuery(f"{condition.op!r} is not a comparison: use one of {', '.join(OPS)}", op=condition.op)
        _check_value(condition)


def _check_value(condition: FieldCondition) -> None:
    value = condition.value
    if condition.op == "in":
        if isinstance(value, (list, tuple)) and all(_scalar(each) for each in value):
            return
        raise BadQuery(f"{condition.field} in ...: give a list of numbers, texts, booleans or null")
    if condition.op in ORDERINGS and not (is_number(value) or isinstance(value, str)):
        raise BadQuery(f"{condition.field} {condition.op} ...: only numbers and texts have an order")
    if not _scalar(value):
        raise BadQuery(f"{condition.field} {condition.op} ...: give a number, a text, a boolean or null")


def _scalar(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def statuses_in(documents: Iterable[StoredDocument]) -> dict[str, str]:
    """The `status` of each, by id, where it is a text."""
    found = {each.id: field_of(msgspec.json.decode(each.body), "status") for each in documents}
    return {id: status for id, status in found.items() if isinstance(status, str)}


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def field_of(data: Value, path: str) -> Value:
    """The value at a dotted path; null if there is none."""
    for name in path.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def rank_of(value: Value) -> tuple[int, Value]:
    """The sort position of a value: null before numbers before texts; values without an order come last, as equal. True
    and false are numbers here."""
    if value is None:
        return (0, 0)
    if isinstance(value, (int, float)):
        return (1, value)
    return (2, value) if isinstance(value, str) else (3, 0)


def text_of(value: Value) -> str:
    """The name under which a value is counted; null has the empty one."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
