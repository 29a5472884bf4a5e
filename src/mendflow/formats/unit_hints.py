"""What was probably meant by a text that is no size and no duration, such as `1:30`, `1h30` or `2,5 GB`."""

import re
from typing import Final

from mendflow.core.model.units import PART, duration_ms, size_bytes
from mendflow.lazy import lazy_pattern

NO_BOUND: Final = ("unlimited", "infinite", "infinity", "forever", "none", "max", "never")
LONGER_UNITS: Final = {"month": 30, "months": 30, "mon": 30, "year": 365, "years": 365, "y": 365}
BYTES_MIN: Final = 1_000_000
"""A number without a unit from here on is more likely bytes than megabytes."""

GIGABYTES_MAX: Final = 64
"""Below this, a number without a unit is more likely gigabytes than megabytes."""

_HOURS_OR_MINUTES: Final = lazy_pattern(r"\s*(\d{1,4}):(\d\d)\s*")
_DAYS_AND_HOURS: Final = lazy_pattern(r"\s*(\d{1,4})-(\d{1,2})\s*")


def likely_measure(text: str, kind: str) -> str:
    """How it is written here, in backquotes, or empty if that is anybody's guess."""
    read = duration_ms if kind == "duration" else size_bytes
    tries = [text.replace(",", "."), text.replace("_", ""), f"{text}m", f"{text}s"] if text[:1].isdigit() else []
    if kind == "duration" and (found := _HOURS_OR_MINUTES.fullmatch(text)):
        return f"`{found[1]} h {found[2]} min`, or `{found[1]} min {found[2]} s`"
    if kind == "duration" and (found := _DAYS_AND_HOURS.fullmatch(text)):
        return f"`{found[1]} d {found[2]} h`"
    for each in tries:
        if re.search("[a-zA-Z]", text) and read(each) is not None:
            return f"`{each}`"
    start = PART.match(text)
    if start is None:
        return ""
    if kind == "duration" and (days := LONGER_UNITS.get(start[2].lower())):
        return f"`{float(start[1]) * days:g} days`"
    return f"`{start[0].strip()}`" if read(start[0]) is not None else ""


def with_unit(value: float, kind: str) -> str:
    """A number with the unit that it probably lacks, in backquotes."""
    if kind == "duration":
        return f"`{value:g} s`"
    if value < BYTES_MIN:
        return f"`{value:g} {'GB' if value < GIGABYTES_MAX else 'MB'}`"
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if value >= factor:
            return f"`{value / factor:g} {unit}`"
    return f"`{value:g} B`"


def is_no_bound(text: str) -> bool:
    """Whether the text says that there is none."""
    return text.strip().lower() in NO_BOUND
