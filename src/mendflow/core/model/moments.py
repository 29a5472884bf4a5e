"""Inputs that are moments, as flows in Python declare them: which texts stand for one."""

from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any, Final

from mendflow.core.model.values import Value

MOMENTS: Final[dict[str, str]] = {
    "datetime": "a date and a time such as 2026-03-01T08:30:00+01:00, or a date",
    "date": "a date such as 2026-03-01",
    "time": "a time of the day such as 08:30:00",
}
"""The types, each with what is expected of a text."""

_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def is_moment(type: str, value: Value) -> bool:
    """Whether the value is a text for one, or one that a program has written."""
    if not isinstance(value, str):
        return isinstance(value, dict)
    try:
        _READERS[type](value)
    except ValueError:
        return False
    return True
