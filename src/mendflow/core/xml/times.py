"""Durations and deadlines, as XML Schema writes them, in milliseconds.

How long a month is depends on when it begins, so a duration is counted from an instant. What names no time zone is
taken as UTC."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.lazy import lazy_pattern

_N: Final = r"([0-9]{1,9})"
DURATION: Final = lazy_pattern(
    rf"(-)?P(?=[0-9T])(?:{_N}Y)?(?:{_N}M)?(?:{_N}D)?(?:T(?=[0-9])(?:{_N}H)?(?:{_N}M)?(?:{_N}(?:\.([0-9]{{1,20}}))?S)?)?",
    re.ASCII,
)
DEADLINE: Final = lazy_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,20}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def duration_ms(text: str, since: Instant) -> int | None:
    """How long an xsd:duration lasts that begins at an instant; None if the text is none, or lasts beyond all time."""
    found = DURATION.fullmatch(text.strip())
    if found is None:
        return None
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:7])
    ms = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + _fraction_ms(found.group(8))
    count = years * 12 + months
    sign = -1 if found.group(1) else 1
    try:
        end = _months_later(EPOCH + timedelta(milliseconds=since), sign * count) if count else None
    except (ValueError, OverflowError):
        return None
    return (_instant(end) - since if end is not None else 0) + sign * ms


def deadline_ms(text: str) -> Instant | None:
    """The instant of an xsd:dateTime or an xsd:date; None if the text is neither."""
    found = DEADLINE.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    midnight = hour == 24 and not (minute or second)
    try:
        at = datetime(year, month, day, 0 if midnight else hour, minute, second, tzinfo=_zone(found.group(8)))
        return _instant(at + timedelta(days=1) if midnight else at) + _fraction_ms(found.group(7))
    except (ValueError, OverflowError):
        return None


def _months_later(start: datetime, months: int) -> datetime:
    """The same day of another month, or its last one if it has no such day."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    after = start.replace(day=1, year=year + month // 11, month=(month + 1) % 12 + 1)
    last = (after - timedelta(days=1)).day
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _instant(at: datetime) -> Instant:
    return (at - EPOCH) // timedelta(milliseconds=1)


def _fraction_ms(digits: str | None) -> int:
    return int((digits or "0")[:3].ljust(3, "0"))
