"""Cron expressions: five fields, as in a crontab, read into the minutes, hours and days on which they fire.

Daylight saving is what makes it hard. An expression that names hours means the clock on the wall: a time that the clock
skips fires once when it has skipped it, and one that the clock shows twice fires the first time. An expression for
every hour means that time passes: it fires evenly, through an hour that is shown twice, too."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.schedules.cron_hints import CronError, other_dialect

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY: Final = timedelta(days=1)
YEARS_AHEAD: Final = 40
"""Any expression that fires at all does so within so many years: the 29th of February on a given day of the week."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.first} to {self.last}{named}"


FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


class Cron(msgspec.Struct, frozen=True):
    """`either`: both kinds of days are named, and a day that is of one of them will do, as cron has it."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool = False

    @property
    def every_hour(self) -> bool:
        return len(self.hours) == 24

    def fires_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_number, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number or by_name if self.either else by_number and by_name

    def after(self, instant: Instant, zone: tzinfo) -> Iterator[Instant]:
        """All times after an instant, in order, as far as anybody would ask."""
        day = _local(instant, zone).date() - DAY
        last, end = instant, date(min(day.year + YEARS_AHEAD, date.max.year - 1), 12, 31)
        while day <= end:
            if day.month not in self.months:
                day = _first_of_next_month(day)
                continue
            if self.fires_on(day):
                for at in self.on(day, zone, last):
                    if at > last:
                        last = at
                        yield at
            day += DAY

    def on(self, day: date, zone: tzinfo, after: Instant) -> Iterable[Instant]:
        """The times of a day on which it fires, in order; those of hours that end before an instant may be left out."""
        start = datetime(day.year, day.month, day.day, tzinfo=zone)
        if start.utcoffset() == (start + DAY).utcoffset():
            begin = _instant(start)
            hours = (hour for hour in self.hours if begin + (hour + 1) * HOUR_MS > after)
            return (begin + hour * HOUR_MS + minute * MINUTE_MS for hour in hours for minute in self.minutes)
        times = [start.replace(hour=hour, minute=minute) for hour in self.hours for minute in self.minutes]
        if self.every_hour:
            both = (time.replace(fold=fold) for time in times for fold in (0, 1))
            return sorted({_instant(time) for time in both if _exists(time)})
        return sorted({_instant(time) if _exists(time) else _end_of_gap(time) for time in times})


@lru_cache(maxsize=512)
def parse_cron(text: str) -> Cron:
    """Raises CronError, which says which field is wrong, why, and what to write."""
    given = " ".join(text.split())
    plain = ALIASES.get(given.lower(), given)
    if flaw := other_dialect(plain, ALIASES):
        raise CronError(flaw)
    parts = plain.split()
    if len(parts) != len(FIELDS):
        raise CronError(
            f"`{given:.100}` has {len(parts)} of the five fields of cron: minute, hour, day of the month, month, day of"
            " the week; every day at 2:30 is `30 2 * * *`"
        )
    minutes, hours, days, months, weekdays = (_numbers(field, part) for field, part in zip(FIELDS, parts, strict=True))
    named = not parts[2].startswith("*") and not parts[4].startswith("*")
    if not named and min(days) > max(_LONGEST[month - 1] for month in months):
        raise CronError(f"`{given:.100}` never fires: no month that it names has a day {min(days)}")
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(each % 7 for each in weekdays),
        either=named,
    )


def _numbers(field: _Field, text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        found |= _part_numbers(field, part, text)
    return found


def _part_numbers(field: _Field, part: str, whole: str) -> set[int]:
    """Of `*`, `7`, `1-5`, or one of these with a step, `*/15`; `7/2` is from 7 to the end."""
    span, slash, step_text = part.partition("/")
    first_text, dash, last_text = span.partition("-")
    step = 1
    if slash:
        if not step_text.isdecimal() or int(step_text) < 1:
            raise _flaw(field, whole, f"the step of `{part}` is a number from 1, such as `*/15`")
        step = int(step_text)
        if step > field.last:
            raise _flaw(field, whole, f"the step {step} is larger than the field, which goes from {field.bounds}")
    if span == "*":
        return set(range(field.first, field.last + 1, step))
    first = _number(field, first_text, whole)
    last = _number(field, last_text, whole) if dash else (field.last if slash else first)
    if dash and last < first and field.names and last == 0:
        last = 7  # from a day to Sunday
    if last < first:
        raise _flaw(
            field, whole, f"`{span}` runs backwards; write `{first_text}-{field.last},{field.first}-{last_text}`"
        )
    return set(range(first, last + 1, step))


def _number(field: _Field, text: str, whole: str) -> int:
    name = text.lower()
    if name[:3] in field.names and (len(name) == 3 or name in _FULL_NAMES):
        place = field.names.index(name[:3])
        return place + field.first
    if text.isdecimal() and len(text) <= 4 and field.first <= int(text) <= field.last:
        return int(text)
    given = f"`{text}`" if text else "nothing"
    raise _flaw(field, whole, f"{given} stands where a number from {field.bounds} should")


_FULL_NAMES: Final = frozenset(
    {
        *("january", "february", "march", "april", "june", "july", "august", "september", "october", "november"),
        *("december", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"),
    }
)


def _flaw(field: _Field, text: str, why: str) -> CronError:
    return CronError(f"the {field.name}, `{text:.100}`: {why}")


# Local times and instants


def _first_of_next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _local(instant: Instant, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=instant)).astimezone(zone)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(time: datetime) -> Instant:
    return (time.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def _exists(time: datetime) -> bool:
    """Whether the clock on the wall ever shows this time; with `fold`, whether it does so again."""
    there = time.astimezone(UTC).astimezone(time.tzinfo)
    return there.replace(tzinfo=None, fold=0) == time.replace(tzinfo=None, fold=0) and there.fold == time.fold


def _end_of_gap(time: datetime) -> Instant:
    """When the clock goes on after it skipped this time. The offset before the gap makes an instant after it, and the
    offset after the gap one before it; the clock was changed between the two."""
    early, late = _instant(time.replace(fold=1)), _instant(time.replace(fold=0))
    zone = time.tzinfo
    assert zone is not None
    after = _local(late, zone).utcoffset()
    while late - early > 1:
        middle = (early + late) // 2
        if _local(middle, zone).utcoffset() == after:
            late = middle
        else:
            early = middle
    return late
