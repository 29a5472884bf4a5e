"""What is done about the due times of a schedule: which are started, which wait, and which are left out.

`plan` is the decision. It is written down before anything is started, so it is made once for each due time, by
whichever server is the first to write it. `noted` adds what became of a start."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from mendflow.core.expressions import ExpressionError, resolve
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.references import made_up_reference
from mendflow.core.model.schedules import (
    BackfillRange,
    DueStart,
    DueWord,
    ScheduleDocument,
    ScheduleEvent,
    ScheduleSpec,
)
from mendflow.core.model.values import Value
from mendflow.core.schedules.due_times import DueTimes, utc_text

LATE_MS: Final = 30_000
"""A time that passed so long ago was not missed: its start is late, whatever the schedule says about catching up."""
FRESH_MAX: Final = LATE_MS // 1000 + 1
STARTS_AT_ONCE: Final = 20
COUNTED_MAX: Final = 10_000
HISTORY: Final = 30
PREFIX: Final = "schedule"


class StartResult(NamedTuple):
    """What became of a start: the case, and whether that was there before; or why there is none."""

    start: DueStart
    case: CaseId = CaseId("")
    known: bool = False
    refused: str = ""


def due_key(schedule: str, due: Instant) -> str:
    """The key of the case of a due time, so that it is started once, also if the schedule got another zone meanwhile.
    Names have no slash."""
    return f"{PREFIX}/{schedule}/{utc_text(due)}"


def trigger_key(schedule: str, key: str) -> str:
    """The key of a case that somebody starts by hand."""
    return f"{PREFIX}/{schedule}/now-{key}"


def schedule_of_key(key: str) -> str:
    """The schedule that started the case with this key, if any."""
    parts = key.split("/")
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else ""


def known_values(spec: ScheduleSpec, times: DueTimes, due: Instant) -> dict[str, Value]:
    """What expressions in the inputs of a schedule see."""
    before = times.latest(max(0, spec.starts_at - 1), due - 1)
    return {
        "time": times.text(due),
        "date": times.local(due).date().isoformat(),
        "previous": times.text(before) if before is not None else "",
        "name": spec.name,
    }


def inputs_for(document: ScheduleDocument, times: DueTimes, due: Instant) -> dict[str, Value]:
    """The inputs of the case of a due time. Raises ExpressionError."""
    resolved = resolve(document.spec.inputs, {"schedule": known_values(document.spec, times, due)}.__getitem__)
    assert isinstance(resolved, dict)
    if flaw := made_up_reference(resolved, document.spec.inputs):
        raise ExpressionError(flaw)
    return resolved


def plan(document: ScheduleDocument, times: DueTimes, *, now: Instant, live: Collection[CaseId]) -> ScheduleDocument:
    """The schedule with the decision about all times that are due. `live` are those of its running cases that are not
    over."""
    document = replace(document, running=tuple(case for case in document.running if case in live))
    if not document.spec.paused:
        document = _plan_due(document, times, now)
    return _plan_backfill(document, times, now)


def _is_blocked(document: ScheduleDocument) -> bool:
    return document.spec.overlap != "allow" and bool(document.running or document.starting)


def _plan_due(document: ScheduleDocument, times: DueTimes, now: Instant) -> ScheduleDocument:
    if (newest := times.latest(document.cursor, now)) is None:
        return document
    if not _is_blocked(document):
        return _start_due(document, times, newest, now)
    if document.spec.overlap == "skip":
        return _leave_out(document, times, newest, now, "overlapped", 0)
    return document if document.held else replace(document, held=True)


def _start_due(document: ScheduleDocument, times: DueTimes, newest: Instant, now: Instant) -> ScheduleDocument:
    """Start what is to be started of the times up to the newest one."""
    one = document.spec.overlap != "allow"
    if document.spec.catch_up == "all":
        chosen = times.between(document.cursor, now, 1 if one else STARTS_AT_ONCE)
        return replace(_with_starts(document, times, chosen, now), cursor=chosen[-1], held=False)
    fresh = times.between(max(document.cursor, now - LATE_MS - 1), now, FRESH_MAX)
    chosen = fresh[-1:] if one else fresh
    if not chosen and (document.held or document.spec.catch_up == "latest"):
        chosen = [newest]
    left_out: DueWord = "overlapped" if document.held else "missed"
    document = _leave_out(document, times, newest, now, left_out, len(chosen))
    return replace(_with_starts(document, times, chosen, now), held=False)


def _leave_out(
    document: ScheduleDocument, times: DueTimes, newest: Instant, now: Instant, what: DueWord, chosen: int
) -> ScheduleDocument:
    """Nothing is started for the times up to the newest one, but for the last ones that were chosen."""
    due = times.between(document.cursor, newest, COUNTED_MAX)
    left_out = due[: len(due) - chosen]
    document = replace(document, cursor=newest)
    if not left_out:
        return document
    case = document.running[0] if document.running else CaseId("")
    return with_event(
        document, ScheduleEvent(at=now, due=left_out[-1], what=what, case=case, count=len(left_out), reason="")
    )


def _plan_backfill(document: ScheduleDocument, times: DueTimes, now: Instant) -> ScheduleDocument:
    """Start the next times of the oldest backfill. Of a schedule whose cases must not overlap one is started at a time,
    and due times come first."""
    if not document.backfills or document.held or document.starting or _is_blocked(document):
        return document
    first, *rest = document.backfills
    count = STARTS_AT_ONCE if document.spec.overlap == "allow" else 1
    chosen = times.between(first.done, first.until, count)
    ranges: Sequence[BackfillRange] = (replace(first, done=chosen[-1]), *rest) if chosen else rest
    document = replace(document, backfills=tuple(ranges))
    return _with_starts(document, times, chosen, now, backfill=first)


def _with_starts(
    document: ScheduleDocument,
    times: DueTimes,
    chosen: Iterable[Instant],
    now: Instant,
    backfill: BackfillRange | None = None,
) -> ScheduleDocument:
    for due in chosen:
        try:
            inputs = inputs_for(document, times, due)
        except ExpressionError as error:
            reason = f"its inputs: {error.message}"
            document = _with_refusal(document, due, now, reason)
            continue
        start = DueStart(
            due=due,
            key=due_key(document.spec.name, due),
            flow=document.spec.flow,
            inputs=inputs,
            owner=backfill.by if backfill is not None else document.owner,
            planned_at=now,
            backfill=backfill is not None,
        )
        document = replace(document, starting=(*document.starting, start))
    return document


def noted(document: ScheduleDocument, results: Iterable[StartResult], now: Instant) -> ScheduleDocument:
    """The schedule with what became of starts that it had decided."""
    for result in results:
        if result.start not in document.starting:
            continue  # another server has noted it
        left = tuple(each for each in document.starting if each != result.start)
        document = replace(document, starting=left)
        due = result.start.due
        if result.refused:
            document = _with_refusal(document, due, now, result.refused)
            continue
        document = replace(document, running=(*document.running, result.case), refused_since=0)
        what: DueWord = "known" if result.known and result.start.backfill else "started"
        document = with_event(document, ScheduleEvent(at=now, due=due, what=what, case=result.case))
    return document


def _with_refusal(document: ScheduleDocument, due: Instant, now: Instant, reason: str) -> ScheduleDocument:
    document = replace(document, refused_since=document.refused_since or due)
    return with_event(document, ScheduleEvent(at=now, due=due, what="refused", reason=reason))


def with_event(document: ScheduleDocument, event: ScheduleEvent) -> ScheduleDocument:
    """Events of one kind that follow each other and started nothing are one, with a count."""
    last = document.history[-1] if document.history else None
    if last is not None and last.what == event.what == "overlapped" and last.case == event.case:
        event = replace(event, count=last.count + event.count)
        return replace(document, history=(*document.history[:-1], event))
    return replace(document, history=(*document.history, event)[-HISTORY:])


def resumed(document: ScheduleDocument, times: DueTimes, now: Instant) -> ScheduleDocument:
    """From now on: the times that passed while it was paused are left out, and so are none that come."""
    spec = replace(document.spec, paused=False)
    passed = times.between(document.cursor, now, COUNTED_MAX) if document.spec.paused else []
    document = replace(document, spec=spec, cursor=now, held=False, paused_at=0, paused_by="")
    if not passed:
        return document
    event = ScheduleEvent(at=now, due=passed[-1], what="paused", count=len(passed))
    return with_event(document, event)
