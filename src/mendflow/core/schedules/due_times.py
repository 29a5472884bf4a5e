"""The due times of a schedule: after an instant, between two, and the last one before."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.schedules.cron import Cron, parse_cron

MONDAY_MS: Final = 4 * 86_400_000
"""Intervals are counted from a Monday at midnight in UTC: so an hour begins on the hour, and a week on a Monday."""
HOUR_MS: Final = 3_600_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class DueTimes:
    """Those of one schedule; `zone` is its time zone. Raises CronError for a bad expression."""

    def __init__(self, spec: ScheduleSpec, zone: tzinfo) -> None:
        self._spec = spec
        self._zone = zone
        self._cron: Cron | None = parse_cron(spec.cron) if spec.cron else None

    def after(self, instant: Instant) -> Iterator[Instant]:
        """All that come after, in order."""
        start = max(instant, self._spec.starts_at - 1)
        for at in self._cron.after(start, self._zone) if self._cron is not None else self._intervals(start):
            if self._spec.ends_at and at > self._spec.ends_at:
                return
            yield at

    def next(self, instant: Instant) -> Instant | None:
        """The first one after, if there is one."""
        return next(self.after(instant), None)

    def between(self, after: Instant, until: Instant, limit: int) -> list[Instant]:
        """The first ones after the one instant and not after the other."""
        found: list[Instant] = []
        for at in islice(self.after(after), limit):
            if at > until:
                break
            found.append(at)
        return found

    def latest(self, after: Instant, until: Instant) -> Instant | None:
        """The last one after the one instant and not after the other: looked for in longer and longer spans before."""
        span = HOUR_MS
        while True:
            start = max(after, until - span)
            last = None
            for at in self.after(start):
                if at > until:
                    break
                last = at
            if last is not None or start <= after:
                return last
            span *= 24

    def text(self, at: Instant) -> str:
        """A time as ISO 8601, in the zone of the schedule."""
        return self.local(at).isoformat(timespec="seconds")

    def local(self, at: Instant) -> datetime:
        return (_EPOCH + timedelta(milliseconds=at)).astimezone(self._zone)

    def _intervals(self, after: Instant) -> Iterator[Instant]:
        every, anchor = self._spec.every_ms, self._spec.starts_at or MONDAY_MS
        at = anchor + ((after - anchor) // every + 1) * every
        while True:
            yield at
            at += every


def utc_text(at: Instant) -> str:
    """The same instant has the same text, whatever zone a schedule has."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="seconds")


def instant_of(text: str, zone: tzinfo, *, end: bool = False) -> Instant | None:
    """The instant of a date or a time in ISO 8601, in this zone if it names none; None if it is neither. A date is the
    begin of the day, or with `end` its last millisecond."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    is_date = len(text.strip()) <= len("2026-01-01")
    at = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=zone)
    if is_date and end:
        return _ms(at + timedelta(days=1)) - 1
    return _ms(at)


def _ms(at: datetime) -> Instant:
    return (at.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
