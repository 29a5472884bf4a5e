"""From values to places and words: where the marks of an axis stand, and how a value of a unit is written.

An axis ends at a mark, so the highest bar always has one above it to be read against."""

import math

import msgspec

from mendflow.pages.charts.model import Unit
from mendflow.pages.formatting import duration_text, size_text
from mendflow.pages.ticks import time_step_ms, time_tick_text

TICKS_MAX = 6
TIME_TICKS_MAX = 8
SMALLEST = 1e-6
"""Values below this look like nothing: marks are rounded to nine digits, and would all be 0."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Axis(msgspec.Struct, frozen=True):
    """The values at the marks, from the lowest to the highest; both ends are marks."""

    ticks: tuple[float, ...]
    unit: Unit
    step: float

    def share(self, value: float) -> float:
        """Where on the axis a value lies, from 0 to 1."""
        low, high = self.ticks[0], self.ticks[-1]
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def words(self) -> list[str]:
        return [tick_text(tick, self.unit, self.step) for tick in self.ticks]


def axis(highest: float, unit: Unit) -> Axis:
    """From 0 to the first mark that is not below the highest value."""
    highest = highest if highest >= SMALLEST else 1.0
    step = _step(highest, unit)
    count = max(math.ceil(highest / step - 1e-9), 1)
    return Axis(tuple(round(step * index, 9) for index in range(count + 1)), unit, step)


def _step(highest: float, unit: Unit) -> float:
    if unit == "time":
        return time_step_ms(math.ceil(highest * 1000), TIME_TICKS_MAX) / 1000
    rough = highest / TICKS_MAX
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in _STEPS if power * step >= rough * (1 - 1e-9))


def tick_text(value: float, unit: Unit, step: float) -> str:
    if unit == "time":
        return time_tick_text(round(value * 1000))
    if unit == "bytes":
        return "0" if value == 0 else size_text(value).replace(".0 ", " ")
    if unit == "share":
        value, step = value * 100, step * 100
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else int(step != round(step))
    return f"{value:,.{decimals}f}" + (" %" if unit == "share" else "")


def value_text(value: float, unit: Unit) -> str:
    """A value for people: three digits that count."""
    if unit == "time":
        return duration_text(value * 1000)
    if unit == "bytes":
        return size_text(value)
    if unit == "share":
        return f"{value * 100:.3g} %" if value < 0.9995 else f"{value * 100:.0f} %"
    return f"{value:,.0f}" if value >= 99.95 or value == round(value) else f"{value:.3g}"


def value_with_error(value: float | None, error: float, unit: Unit) -> str:
    """The value with its deviation, as in 12.3 s ± 0.4 s; a dash where there is none."""
    if value is None:
        return "-"
    end = " s" if unit == "seconds" else ""
    return value_text(value, unit) + end + (f" ± {value_text(error, unit)}{end}" if error > 0 else "")
