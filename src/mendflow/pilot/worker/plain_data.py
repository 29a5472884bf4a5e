"""Checks that the result of a function is plain data, so that a reader gets the same value.

The encoder would silently write dates, bytes and sets as something else. So the decoded text is compared with the
original; only if they differ is the place searched."""

import math
import os

import msgspec

from mendflow.core.model.values import PARTS_MAX, Value

_SCALARS = (bool, int, str, type(None))
_SHOWN = 60


class NotPlainData(ValueError):
    """The message names the place and the value."""


def to_plain_data(value: Value) -> tuple[bytes, Value]:
    """The value's JSON, and the value as it will be read; tuples become lists. Raises `NotPlainData`, or the encoder's
    exception."""
    try:
        encoded = msgspec.json.encode(value)
        plain = msgspec.json.decode(encoded)
    except TypeError:
        if strange := _first_not_plain(value):
            raise NotPlainData(strange) from None
        raise
    if plain != value and (strange := _first_not_plain(value)):
        raise NotPlainData(strange)
    return encoded, plain


def _first_not_plain(value: Value) -> str:
    """The first part that is not plain data, and where. Iterative, because a value may be nested deeper than the
    recursion limit."""
    pending: list[tuple[str, Value]] = [("", value)]
    for _ in range(PARTS_MAX):  # it may contain itself
        if not pending:
            break
        place, each = pending.pop()
        if isinstance(each, _SCALARS):
            continue
        if isinstance(each, float):
            if not math.isfinite(each):
                return f"{_at(place)} is {each}, which JSON cannot represent: use None or a string"
        elif isinstance(each, list | tuple):
            pending += reversed([(f"{place}[{number}]", part) for number, part in enumerate(each)])
        elif isinstance(each, dict):
            for key in each:
                if not isinstance(key, str):
                    return f"{_at(place)} has the key {key!r:.{_SHOWN}}, which is not a string: write it as a string"
            pending += reversed([(f"{place}[{key!r:.{_SHOWN}}]", part) for key, part in each.items()])
        else:
            told = "; name the file in the job's `files`, and return None" if isinstance(each, os.PathLike) else ""
            return f"{_at(place)} is a {type(each).__name__}{told}"
    return ""


def _at(place: str) -> str:
    return f"its {place}" if place else "it"
