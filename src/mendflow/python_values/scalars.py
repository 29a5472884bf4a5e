"""Single values that JSON has no form for: dates and times with their zones, bytes, numbers beyond JSON's."""

import base64
import binascii
import math
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mendflow.core.model.values import INT_MAX, INT_MIN, Value
from mendflow.python_values.errors import BadPythonValue, name_of
from mendflow.python_values.tags import VALUE, tagged

Writer = Callable[[Any], Value]
Reader = Callable[[dict[str, Value]], Any]
_MICROSECOND: Final = timedelta(microseconds=1)


def number(value: int | float) -> Value:
    """A number as it is, or by its digits where JSON has none such."""
    if type(value) is int:
        return value if INT_MIN <= value <= INT_MAX else tagged("int", hex(value))
    return value if math.isfinite(value) else tagged("float", repr(float(value)))


def _write_zone(zone: tzinfo | None) -> dict[str, Value]:
    if zone is None or zone is UTC:
        return {}
    if type(zone) is ZoneInfo and zone.key is not None:
        return {"zone": zone.key}
    if type(zone) is timezone:
        offset = zone.utcoffset(None)
        name = {} if timezone(offset).tzname(None) == zone.tzname(None) else {"name": zone.tzname(None)}
        return {"offset": offset // _MICROSECOND, **name}
    raise BadPythonValue(
        f"has the time zone {zone!r:.60}, a {name_of(type(zone))}; use zoneinfo.ZoneInfo or datetime.timezone"
    )


def _read_zone(value: dict[str, Value]) -> tzinfo | None:
    """The zone that is named, in place of the mere offset that a text has."""
    if "zone" in value:
        try:
            return ZoneInfo(str(value["zone"]))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadPythonValue(
                f"is in the time zone {value['zone']!r:.60}, which this machine does not know; install tzdata there"
            ) from None
    if "offset" in value:
        offset = timedelta(microseconds=value["offset"])
        return timezone(offset, value["name"]) if "name" in value else timezone(offset)
    return None


def _write_datetime(value: datetime) -> Value:
    zone = _write_zone(value.tzinfo)
    bare = value.replace(tzinfo=None, fold=0).isoformat() + ("Z" if value.tzinfo is UTC else "")
    return tagged("datetime", bare, **zone, **({"fold": 1} if value.fold else {}))


def _read_datetime(value: dict[str, Value]) -> datetime:
    found = datetime.fromisoformat(value[VALUE])
    return found.replace(tzinfo=_read_zone(value) or found.tzinfo, fold=1 if value.get("fold") else 0)


def _write_time(value: time) -> Value:
    zone = _write_zone(value.tzinfo)
    bare = value.replace(tzinfo=None, fold=0).isoformat() + ("Z" if value.tzinfo is UTC else "")
    return tagged("time", bare, **zone, **({"fold": 1} if value.fold else {}))


def _read_time(value: dict[str, Value]) -> time:
    found = time.fromisoformat(value[VALUE])
    return found.replace(tzinfo=_read_zone(value) or found.tzinfo, fold=1 if value.get("fold") else 0)


def _write_timedelta(value: timedelta) -> Value:
    return tagged("timedelta", [value.days, value.seconds, value.microseconds])


def _write_complex(value: complex) -> Value:
    return tagged("complex", [repr(value.real), repr(value.imag)])


def _write_bytes(value: bytes | bytearray) -> Value:
    return tagged(type(value).__name__, base64.b64encode(value).decode())


def _read_bytes(value: dict[str, Value]) -> bytes:
    return base64.b64decode(value[VALUE], validate=True)


WRITERS: Final[dict[type, Writer]] = {
    datetime: _write_datetime,
    date: lambda value: tagged("date", value.isoformat()),
    time: _write_time,
    timedelta: _write_timedelta,
    bytes: _write_bytes,
    bytearray: _write_bytes,
    complex: _write_complex,
    Decimal: lambda value: tagged("decimal", str(value)),
    uuid.UUID: lambda value: tagged("uuid", str(value)),
    ZoneInfo: lambda value: tagged("zone", value.key),
    PurePosixPath: lambda value: tagged("purePosixPath", str(value)),
    PureWindowsPath: lambda value: tagged("pureWindowsPath", str(value)),
}
"""By the exact class: a class that is made from one of these may mean more than it says."""

READERS: Final[dict[str, Reader]] = {
    "datetime": _read_datetime,
    "date": lambda value: date.fromisoformat(value[VALUE]),
    "time": _read_time,
    "timedelta": lambda value: timedelta(*value[VALUE]),
    "bytes": _read_bytes,
    "bytearray": lambda value: bytearray(_read_bytes(value)),
    "complex": lambda value: complex(*(float(part) for part in value[VALUE])),
    "decimal": lambda value: Decimal(value[VALUE]),
    "uuid": lambda value: uuid.UUID(value[VALUE]),
    "zone": lambda value: _read_zone({"zone": value[VALUE]}),
    "purePosixPath": lambda value: PurePosixPath(value[VALUE]),
    "pureWindowsPath": lambda value: PureWindowsPath(value[VALUE]),
    "int": lambda value: int(value[VALUE], 16),
    "float": lambda value: float(value[VALUE]),
}
MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, OverflowError, binascii.Error, InvalidOperation)
"""What readers raise when something only looks like a value of their kind."""


def from_text(text: str, kind: type) -> Any:
    """The value of this class that a text means, as flows in YAML and people give it. Raises one of `MALFORMED`."""
    return _FROM_TEXT[kind](text)


_FROM_TEXT: Final[dict[type, Callable[[str], Any]]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    Decimal: Decimal,
    uuid.UUID: uuid.UUID,
    ZoneInfo: ZoneInfo,
    complex: complex,
}
HAS_TEXT: Final = frozenset(_FROM_TEXT)
