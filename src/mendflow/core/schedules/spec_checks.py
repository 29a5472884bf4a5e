"""Validates schedules, and says in words when they are due."""

from collections.abc import Collection, Iterator
from datetime import UTC
from difflib import get_close_matches
from typing import Final

from mendflow.core.data.set_specs import name_flaw
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.model.flow_triggers import CATCH_UPS, OVERLAPS
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.schedules.cron import parse_cron
from mendflow.core.schedules.cron_hints import CronError
from mendflow.core.schedules.due_times import DueTimes

EVERY_MS_MIN: Final = 1_000
_SHORT: Final = {"CEST", "PST", "PDT", "CST", "CDT", "EDT", "BST", "IST", "JST", "AEST"}
_UNITS: Final = (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def spec_flaws(spec: ScheduleSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with a schedule, as far as it tells itself: the field, and a sentence."""
    if flaw := name_flaw(spec.name, "schedule"):
        yield "name", flaw
    if not spec.flow:
        yield "flow", "say which flow is started"
    yield from time_flaws(spec)
    if spec.catch_up not in CATCH_UPS:
        yield "catch_up", f"`{spec.catch_up:.40}` is not one of {', '.join(CATCH_UPS)}"
    if spec.overlap not in OVERLAPS:
        yield "overlap", f"`{spec.overlap:.40}` is not one of {', '.join(OVERLAPS)}"
    if spec.catch_up == "all" and spec.overlap in ("skip", "replace"):
        yield (
            "overlap",
            f"catching up with all times and `{spec.overlap}` contradict each other: the times that are caught up with"
            " would overlap; take `wait`, one case after the other, or `allow`",
        )
    yield from _input_flaws(spec)


def time_flaws(spec: ScheduleSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with when a schedule is due."""
    if bool(spec.cron) == bool(spec.every_ms):
        yield "cron", "say when: either cron, such as `30 2 * * *`, or every, such as `10 min`"
    elif spec.cron:
        try:
            parse_cron(spec.cron)
        except CronError as error:
            yield "cron", error.message
            return
    elif spec.every_ms < EVERY_MS_MIN:
        yield "every", f"every {spec.every_ms} ms is too often; a case is started every {EVERY_MS_MIN} ms at most"
        return
    if spec.ends_at and spec.starts_at and spec.ends_at < spec.starts_at:
        yield "until", "it ends before it begins"
    elif spec.ends_at and (spec.cron or spec.every_ms) and DueTimes(spec, UTC).next(spec.starts_at - 1) is None:
        yield "until", "it ends before the first time that is due"


def _input_flaws(spec: ScheduleSpec) -> Iterator[tuple[str, str]]:
    try:
        unknown = references(spec.inputs) - {"schedule"}
    except ExpressionError as error:
        yield "inputs", error.message
        return
    if unknown:
        yield (
            "inputs",
            f"they ask for `{min(unknown)}`; known here is `schedule`, with `schedule.time`, `schedule.date`,"
            " `schedule.previous` and `schedule.name`",
        )


def zone_flaw(name: str, known: Collection[str]) -> str:
    """What to say of a time zone that is not there."""
    if name.upper() in _SHORT or name.upper().startswith(("UTC+", "UTC-", "GMT+", "GMT-")):
        return f"`{name:.60}` is not the name of a time zone; name a place, such as Europe/Berlin, or UTC"
    folded = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), list(folded), n=1) or [
        each for each in folded if each.rpartition("/")[2] == name.lower().replace(" ", "_")
    ]
    meant = f"; did you mean {folded[close[0]]}?" if close else ", such as Europe/Berlin or UTC"
    return f"there is no time zone `{name:.60}`{meant}"


def when_text(spec: ScheduleSpec) -> str:
    """When a schedule is due, in a few words."""
    if spec.cron:
        return spec.cron
    for unit, length in _UNITS:
        if spec.every_ms % length == 0:
            count = spec.every_ms // length
            return f"every {count} {unit}{'s' if unit == 'day' and count > 1 else ''}"
    return f"every {spec.every_ms} ms"
