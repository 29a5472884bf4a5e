"""How much attempts of each name used: a box plot for each measure, so that one look shows what varies and what stands
out. Attempts that failed are left out: they say little about what the work needs."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from mendflow.core.model.views import AttemptView, ItemView
from mendflow.pages.charts.model import Unit
from mendflow.pages.charts.scales import Axis, axis, value_text
from mendflow.pages.formatting import count_text, escape_html, one_line

NAMES_MAX: Final = 60
LABEL_WIDTH, CHART_WIDTH, AXIS_HEIGHT, ROW_HEIGHT, END_WIDTH = 210.0, 860.0, 26.0, 22.0, 40.0


class BoxValues(msgspec.Struct, frozen=True):
    """The five values of a box plot, and of how many values they are."""

    low: float
    lower_quarter: float
    median: float
    upper_quarter: float
    high: float
    count: int


class _Measure(msgspec.Struct, frozen=True):
    title: str
    unit: Unit
    of: Callable[[AttemptView], float]


_MEASURES: Final = (
    _Measure("Run time", "time", lambda attempt: _ran_s(attempt)),
    _Measure("Processors in use", "number", lambda attempt: _busy_processors(attempt)),
    _Measure("Peak memory", "bytes", lambda attempt: attempt.peak_bytes),
    _Measure("Read from disk", "bytes", lambda attempt: attempt.read_bytes),
    _Measure("Written to disk", "bytes", lambda attempt: attempt.written_bytes),
)


def spread(values: Sequence[float]) -> BoxValues:
    """The quartiles lie between values where no value is there, as is usual."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

    return BoxValues(ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1], len(ordered))


def distributions(items: list[ItemView]) -> str:
    """A drawing for each measure that was taken; empty if no name has two completed attempts."""
    by_name: dict[str, list[AttemptView]] = defaultdict(list)
    for item in items:
        by_name[item.name] += [attempt for attempt in item.attempts if attempt.end == "completed"]
    shown = {name: attempts for name, attempts in by_name.items() if attempts}
    if not any(len(attempts) > 1 for attempts in shown.values()):
        return ""
    names = list(shown)[:NAMES_MAX]
    more = f" The first {NAMES_MAX} names are drawn." if len(shown) > NAMES_MAX else ""
    note = (
        '<p class="quiet">Each box holds the middle half of the completed attempts of a name, the mark in it is the '
        f"median, and the line reaches from the least to the most.{more}</p>"
    )
    return note + "".join(_panel(measure, {name: shown[name] for name in names}) for measure in _MEASURES)


def _panel(measure: _Measure, by_name: dict[str, list[AttemptView]]) -> str:
    values = {name: [measure.of(attempt) for attempt in attempts] for name, attempts in by_name.items()}
    highest = max(max(each) for each in values.values())
    if not highest:
        return ""
    along, height = axis(highest, measure.unit), AXIS_HEIGHT + ROW_HEIGHT * len(values) + 6
    rows = [
        _row(name, spread(each), AXIS_HEIGHT + ROW_HEIGHT * (index + 0.5), along, measure.unit)
        for index, (name, each) in enumerate(values.items())
    ]
    width = LABEL_WIDTH + CHART_WIDTH + END_WIDTH
    return (
        f'<h3>{measure.title}</h3><div class="scroll"><svg class="boxes" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{measure.title} by name">'
        f"{_marks(along, height)}{''.join(rows)}</svg></div>"
    )


def _x(along: Axis, value: float) -> float:
    return LABEL_WIDTH + along.share(value) * CHART_WIDTH


def _marks(along: Axis, height: float) -> str:
    parts = []
    for tick, words in zip(along.ticks, along.words(), strict=True):
        x = _x(along, tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{AXIS_HEIGHT - 4}" y2="{height:.0f}"/>')
        parts.append(f'<text class="small" x="{x:.1f}" y="14" text-anchor="middle">{escape_html(words)}</text>')
    return "".join(parts)


def _row(name: str, spread: BoxValues, middle: float, along: Axis, unit: Unit) -> str:
    low, left, median, right, high = (
        _x(along, value)
        for value in (spread.low, spread.lower_quarter, spread.median, spread.upper_quarter, spread.high)
    )
    tooltip = (
        f"{name}: median {value_text(spread.median, unit)}, half of them from {value_text(spread.lower_quarter, unit)} "
        f"to {value_text(spread.upper_quarter, unit)}, all from {value_text(spread.low, unit)} to "
        f"{value_text(spread.high, unit)}, {count_text(spread.count, 'attempt')}"
    )
    top, thick = middle - 6, 12
    return (
        f'<g class="box"><title>{escape_html(tooltip)}</title>'
        f'<text class="small" x="{LABEL_WIDTH - 8}" y="{middle + 3.5:.1f}" text-anchor="end">'
        f"{escape_html(one_line(name, 31))}</text>"
        f'<line class="reach" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
        f'<rect class="half" x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 2):.1f}" height="{thick}" rx="2"/>'
        f'<line class="median" x1="{median:.1f}" x2="{median:.1f}" y1="{top - 2:.1f}" y2="{top + thick + 2:.1f}"/></g>'
    )


def _ran_s(attempt: AttemptView) -> float:
    return max(attempt.ended_at - (attempt.started_at or attempt.granted_at), 0) / 1000


def _busy_processors(attempt: AttemptView) -> float:
    """How many processors were busy for it, on average."""
    ran_s = _ran_s(attempt)
    return attempt.cpu_ms / 1000 / ran_s if ran_s > 0 else 0.0
