"""The time of one item, in bars: waits, staging, attempts, repairs, and waits for people."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import Decision
from mendflow.core.model.timelines import BarKind, TimelineBar, TimelineRow
from mendflow.core.model.views import ITEM_END_STATES, AttemptView, ItemView

_KINDS: Final[dict[str, BarKind]] = {"user-task": "hold", "stage": "stage"}


def row_of(view: ItemView, decisions: Sequence[Decision], now: Instant) -> TimelineRow:
    bars = [*_work(view, now), *_repairs(decisions, now)]
    return TimelineRow(
        item=view.item,
        name=view.name,
        kind=view.kind,
        state=view.state,
        job=view.job,
        element=view.element,
        bars=sorted(bars, key=lambda bar: (bar.start, bar.end)),
    )


def _work(view: ItemView, now: Instant) -> Iterator[TimelineBar]:
    is_over = view.state in ITEM_END_STATES
    end = (view.ended_at or now) if is_over else now
    if view.kind != "job":
        kind = _KINDS.get(view.kind, "wait" if view.state in ("waiting", "suspended") else "run")
        start = view.created_at or view.ended_at or now
        yield TimelineBar(kind=kind, state=view.state, start=start, end=max(start, end))
        return
    at = view.created_at
    for attempt in view.attempts:
        if attempt.end != "returned":
            bars = list(_attempt(attempt, at, now))
            yield from bars
            at = bars[-1].end
    runs = bool(view.attempts) and not view.attempts[-1].end
    if view.state == "cached":
        yield TimelineBar(kind="run", state="cached", start=at, end=max(at, end), note=view.cached_from)
    elif not runs and not is_over:
        yield TimelineBar(kind="wait", state=view.state, start=at, end=max(at, now), note=view.reason)


def _attempt(attempt: AttemptView, before: Instant, now: Instant) -> Iterator[TimelineBar]:
    """What an attempt waited, staged and ran, in this order whatever the pilot's clock says."""
    end = max(attempt.ended_at or now, attempt.granted_at)
    begun = min(max(attempt.started_at or attempt.granted_at, attempt.granted_at), end)
    staged = max(attempt.granted_at, begun - attempt.stage_in_ms)
    state = attempt.end or "running"
    if staged > before:
        yield TimelineBar(kind="wait", state="waiting", start=before, end=staged, attempt=attempt.number)
    if begun > staged and attempt.stage_in_ms:
        yield TimelineBar(
            kind="stage", state=state, start=staged, end=begun, attempt=attempt.number, pilot=attempt.pilot
        )
    note = attempt.fault.message if attempt.fault is not None else ""
    yield TimelineBar(
        kind="run",
        state=state,
        start=begun,
        end=end,
        attempt=attempt.number,
        pilot=attempt.pilot,
        note=note,
        ran_ms=attempt.ran_ms if attempt.end else 0,
    )
    if attempt.stage_out_ms and attempt.ended_at:
        out = end + attempt.stage_out_ms
        yield TimelineBar(kind="stage", state=state, start=end, end=out, attempt=attempt.number, pilot=attempt.pilot)


def _repairs(decisions: Iterable[Decision], now: Instant) -> Iterator[TimelineBar]:
    for each in decisions:
        taken_up = each.taken_up_at or each.at
        is_held = each.state == "waiting"
        if is_held or taken_up > each.at:
            end = now if is_held else taken_up
            yield TimelineBar(kind="hold", state=each.state, start=each.at, end=max(each.at, end))
        if each.exlet and each.state not in ("passive", "ignored", "waiting"):
            end = max(each.ended_at, each.settled_at) or now
            yield TimelineBar(
                kind="repair", state=each.result or each.state, start=taken_up, end=max(taken_up, end), note=each.exlet
            )
