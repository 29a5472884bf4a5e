"""The timeline: a row per item with its attempts, or, if there are too many, a band per name.

A band shows how many attempts of the name ran at once, and its size does not depend on their number."""

from collections import defaultdict

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.views import AttemptView, CaseView, ItemView
from mendflow.pages.attempts import is_mended, started_attempts, times_of
from mendflow.pages.formatting import count_text, duration_text, escape_html, one_line, short_time_text
from mendflow.pages.ticks import time_step_ms, time_tick_text

ROWS_MAX = 500
BANDS_MAX = 60
BINS = 240
LABEL_WIDTH, CHART_WIDTH, AXIS_HEIGHT = 210.0, 860.0, 26.0
BAND_HEIGHT = 44.0
TICKS_MAX = 8
LEGEND = '<p class="legend quiet">' + "".join(
    f'<span class="key {css}"></span>{word}'
    for css, word in (
        ("good", "completed"),
        ("bad", "failed or lost"),
        ("run", "running"),
        ("wait", "waiting"),
        ("cached", "cached"),
    )
) + '<span class="cross">✚</span>mended: a later attempt made it good</p>'  # fmt: skip


class TimeRange(msgspec.Struct):
    """The time that the drawing covers."""

    start: Instant
    end: Instant

    def x(self, at: Instant) -> float:
        share = (min(max(at, self.start), self.end) - self.start) / (self.end - self.start)
        return LABEL_WIDTH + share * CHART_WIDTH


def timeline(case: CaseView, items: list[ItemView], now: Instant) -> str:
    shown = [item for item in items if item.attempts or (_start_time(item) and item.state != "skipped")]
    if not shown:
        return f'<p class="quiet">Nothing has run{"" if case.ended_at else " yet"}.</p>'
    span = _time_range(case, shown, now)
    if len(shown) > ROWS_MAX:
        return _bands(shown, span, now)
    shown.sort(key=lambda item: (_start_time(item), item.serial))
    row = 20.0 if len(shown) <= 120 else 12.0
    height = AXIS_HEIGHT + row * len(shown) + 6
    rows = [_row(item, AXIS_HEIGHT + row * index, row, span, now) for index, item in enumerate(shown)]
    return LEGEND + _svg(height, _axis(span, height) + "".join(rows))


def _start_time(item: ItemView) -> Instant:
    """When it started; for a message that was taken, and a partner that answered, only that moment is known."""
    granted = item.attempts[0].granted_at if item.attempts else 0
    return item.created_at or granted or item.ended_at


def _time_range(case: CaseView, items: list[ItemView], now: Instant) -> TimeRange:
    starts = [_start_time(item) for item in items]
    ends = [times_of(attempt, now)[1] for item in items for attempt in item.attempts[-1:]]
    start = min([case.started_at or min(starts), *starts])
    return TimeRange(start=start, end=max([case.ended_at or now, *ends, *(item.ended_at for item in items), start + 1]))


def _svg(height: float, content: str) -> str:
    width = LABEL_WIDTH + CHART_WIDTH + 40
    return (
        f'<div class="scroll tall"><svg class="timeline" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Timeline">{content}</svg></div>'
    )


def _axis(span: TimeRange, height: float) -> str:
    total = span.end - span.start
    parts = []
    for tick in range(0, total + 1, time_step_ms(total, TICKS_MAX)):
        x = span.x(span.start + tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{AXIS_HEIGHT - 4}" y2="{height:.0f}"/>')
        parts.append(f'<text class="small" x="{x:.1f}" y="14" text-anchor="middle">{time_tick_text(tick)}</text>')
    return "".join(parts)


def _row(item: ItemView, top: float, row: float, span: TimeRange, now: Instant) -> str:
    middle, thick = top + row / 2, row - 6 if row > 15 else row - 3
    began = _start_time(item)
    ended = item.ended_at or (times_of(item.attempts[-1], now)[1] if item.attempts else now)
    css, mark = ("small mended", " ✚") if is_mended(item) else ("small", "")
    parts = [
        f'<g class="row"><text class="{css}" x="{LABEL_WIDTH - 8}" y="{middle + 3.5:.1f}" '
        f'text-anchor="end">{escape_html(one_line(item.shown, 31))}{mark}</text>',
        f'<line class="wait" x1="{span.x(began):.1f}" x2="{span.x(ended):.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
    ]
    if not started_attempts(item):
        x, width = span.x(began), max(span.x(ended) - span.x(began), 2)
        tooltip = escape_html(f"{item.shown}: {item.state}, {duration_text(ended - began)}")
        parts.append(_rect(f"a-{item.state}", x, middle, width, thick / 2, tooltip))
    for attempt in started_attempts(item):
        started, over = times_of(attempt, now)
        x, width = span.x(started), max(span.x(over) - span.x(started), 2)
        tooltip = escape_html(_attempt_text(item, attempt, over - started))
        parts.append(_rect(f"a-{attempt.end or item.state}", x, middle, width, thick, tooltip))
    return "".join(parts) + "</g>"


def _rect(css: str, x: float, middle: float, width: float, thick: float, title: str) -> str:
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{middle - thick / 2:.1f}" width="{width:.1f}" height="{thick:.1f}" rx="2">'
        f"<title>{title}</title></rect>"
    )


def _attempt_text(item: ItemView, attempt: AttemptView, took_ms: int) -> str:
    text = f"{item.shown}, attempt {attempt.number}: {attempt.end or 'running'} after {duration_text(took_ms)}"
    text += f"\non {attempt.pilot}, from {short_time_text(attempt.started_at or attempt.granted_at)}"
    return text + (f"\n{one_line(attempt.fault.message, 200)}" if attempt.fault else "")


def _bands(items: list[ItemView], span: TimeRange, now: Instant) -> str:
    by_name: dict[str, list[ItemView]] = defaultdict(list)
    for item in items:
        by_name[item.name].append(item)
    names = list(by_name)[:BANDS_MAX]
    height = AXIS_HEIGHT + BAND_HEIGHT * len(names) + 6
    bands = [_band(name, by_name[name], AXIS_HEIGHT + BAND_HEIGHT * row, span, now) for row, name in enumerate(names)]
    more = f" The first {BANDS_MAX} names are drawn." if len(by_name) > BANDS_MAX else ""
    note = f"{count_text(len(items), 'item')}: each band shows how many attempts ran at once.{more}"
    return f'<p class="quiet">{note}</p>' + _svg(height, _axis(span, height) + "".join(bands))


def _band(name: str, items: list[ItemView], top: float, span: TimeRange, now: Instant) -> str:
    changes, bad = [0] * (BINS + 1), [0] * BINS
    for item in items:
        for attempt in started_attempts(item):
            started, ended = times_of(attempt, now)
            changes[_bin(started, span)] += 1
            changes[_bin(ended, span) + 1] -= 1
            if attempt.fault or attempt.end in ("failed", "lost"):
                bad[_bin(ended, span)] += 1
    running, heights = 0, []
    for change in changes[:BINS]:
        running += change
        heights.append(running)
    peak = max([*heights, 1])
    base, scale, step = top + BAND_HEIGHT - 8, (BAND_HEIGHT - 14) / peak, CHART_WIDTH / BINS
    path = f"M{LABEL_WIDTH:.1f} {base:.1f}" + "".join(
        f"V{base - high * scale:.1f}h{step:.2f}" for high in heights
    ) + f"V{base:.1f}z"  # fmt: skip
    marks = "".join(
        f'<rect class="a-failed" x="{LABEL_WIDTH + index * step:.1f}" y="{base + 1:.1f}" width="{step:.1f}" height="4">'
        f"<title>{count_text(number, 'failed attempt')}</title></rect>"
        for index, number in enumerate(bad)
        if number
    )
    label = escape_html(one_line(name, 31))
    return (
        f'<text class="small" x="{LABEL_WIDTH - 8}" y="{base - 10:.1f}" text-anchor="end">{label}</text>'
        f'<text class="small faint" x="{LABEL_WIDTH - 8}" y="{base + 3:.1f}" text-anchor="end">'
        f"{count_text(len(items), 'item')}, at most {peak:,} at once</text>"
        f'<path class="band" d="{path}"/>{marks}'
    )


def _bin(at: Instant, span: TimeRange) -> int:
    share = (min(max(at, span.start), span.end) - span.start) / (span.end - span.start)
    return min(int(share * BINS), BINS - 1)
