"""Formats amounts for sentences."""

from mendflow.core.model.ids import Instant
from mendflow.core.scheduling.offer import FOREVER_MS

ROUND_MAX = 10_000
"""A whole number with more digits than this is no better than a decimal one."""


def size(count: float) -> str:
    """Bytes for people: `64 GB`; in powers of two only if that is the rounder number, `512 MiB`."""
    whole = int(count)
    for base, mark in ((1000, "B"), (1024, "iB")):
        for power, letter in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "k")):
            number, rest = divmod(whole, base**power)
            if 0 < number < ROUND_MAX and rest == 0:
                return f"{number} {letter}{mark}"
    for power, letter in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "k")):
        if whole >= 1000**power:
            return f"{whole / 1000**power:.1f} {letter}B"
    return f"{whole} B"


def duration(ms: float) -> str:
    """Milliseconds for people: `2 h 30 min`, `1.5 s`."""
    if ms >= FOREVER_MS:
        return "no end"
    if ms < 1000:
        return f"{int(ms)} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join([f"{number} {unit}" for number, unit in parts if number][:2])


def clock(at: Instant) -> str:
    """The time of day, without the date: for something near."""
    seconds = at // 1000 % 86_400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} UTC"
