"""Kinds of values as people call them, and what is said when an operation is not for the kinds that it got."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

NUMBER: Final = "a number"
TEXT: Final = "text"
YES_OR_NO: Final = "true or false"
LIST, MAP, DURATION, TIMESTAMP = "a list", "a map", "a duration", "a timestamp"
_OF_TYPES: Final = {
    bool: YES_OR_NO,
    int: NUMBER,
    float: NUMBER,
    str: TEXT,
    list: LIST,
    dict: MAP,
    timedelta: DURATION,
    datetime: TIMESTAMP,
}
_OF_NAMES: Final = {
    **dict.fromkeys(("int", "int64", "uint", "uint64", "double"), NUMBER),
    "string": TEXT,
    "bool": YES_OR_NO,
    "list": LIST,
    "map": MAP,
    "null_type": "null",
    "null": "null",
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
}
_OPERATOR: Final = lazy_pattern(r"_(.{1,2})_\((.*), (.*)\)")
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "sort", "sortBy"})


def kind_of(value: Value) -> str:
    return "null" if value is None else _OF_TYPES.get(type(value), type(value).__name__)


def no_overload(call: str) -> str:
    """CEL's `_>_(int64, string)` as a sentence."""
    found = _OPERATOR.fullmatch(call)
    if found is None:
        name, _, kinds = call.removesuffix(")").partition("(")
        return f"`{name}` cannot be done with these kinds of values: {', '.join(map(_named, kinds.split(', ')))}"
    do, first, second = found.groups()
    if do == "/" and second == "bytes":
        return f"{_named(first)} cannot be divided"
    if do == "/" and first.startswith("list"):
        return f"{NUMBER} cannot be divided by {_named(second)}"
    return mismatch(do, (_named(first), _named(second)))


def mismatch(do: str, kinds: Sequence[str]) -> str:
    """What is said of an operator between values of kinds that do not go together."""
    first, second = kinds
    if do in _COMPARISONS:
        return f"`{do}` cannot compare {first} with {second}{_remedy(do, kinds)}"
    if do == "+" and TEXT in kinds:
        return f"`+` cannot put {first} and {second} together; string(x) is a value as a text"
    if do == "/":
        return f"{first} cannot be divided by {second}"
    return f"`{do}` cannot be done with {first} and {second}"


def _remedy(do: str, kinds: Sequence[str]) -> str:
    if do == "sort" and set(kinds) == {MAP}:
        return "; sortBy(x, x.member) sorts by a member"
    if set(kinds) == {NUMBER, TEXT}:
        return "; a number is written without quotes, and int(x) or double(x) is the number in a text"
    return "; true and false are written without quotes" if set(kinds) == {YES_OR_NO, TEXT} else ""


def _named(kind: str) -> str:
    return _OF_NAMES.get(kind.partition("(")[0], kind)
