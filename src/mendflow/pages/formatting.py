"""Formats figures for people: sizes, durations, times, and sanitized text from jobs.

A job may print anything, terminal escapes included; everything shown from a job goes through `plain_text` first."""

import re
from datetime import datetime
from typing import TYPE_CHECKING

from mendflow.core.model.ids import Instant
from mendflow.lazy import LazyModule, lazy_pattern

if TYPE_CHECKING:
    import html
else:
    html = LazyModule("html")

_ESCAPES = lazy_pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # strings to the terminal: titles, links
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROLS = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")


def plain_text(text: str) -> str:
    """The text without terminal escapes, direction overrides and control characters; lines and tabs stay. A carriage
    return overwrites its line, as progress bars mean it to."""
    if not _ESCAPES.search(text) and not _CONTROLS.search(text) and "\r" not in text:
        return text
    text = _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\r\n", "\n"))
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def escape_html(text: str) -> str:
    """The text, sanitized and escaped for HTML."""
    return html.escape(plain_text(text))


def one_line(text: str, width: int = 0) -> str:
    """The text as one sanitized line, cut to the width if one is given."""
    line = " ".join(plain_text(text).split())
    return line if not width or len(line) <= width else line[: max(width - 1, 0)] + "…"


def size_text(size_bytes: float) -> str:
    """1.2 GB."""
    if abs(size_bytes) < 999.5:
        return f"{size_bytes:.0f} B"
    power = 0
    while abs(size_bytes) >= 999.5 and power < len(_UNITS):
        size_bytes, power = size_bytes / 1000, power + 1
    unit = _UNITS[power - 1]
    return f"{size_bytes:.1f} {unit}" if abs(size_bytes) < 99.95 else f"{size_bytes:.0f} {unit}"


def duration_text(ms: float) -> str:
    """3 m 12 s."""
    if ms < 0:
        return f"-{duration_text(-ms)}"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours == 0:
        return f"{minutes} m {seconds % 60} s"
    if days == 0:
        return f"{hours} h {minutes % 60} m"
    return f"{days} d {hours % 24} h"


def memory_time_text(gb_hours: float) -> str:
    """1.2 GB h, 3.4 GB min or 5.6 GB s: memory times the time for which it was had."""
    for unit, per_hour in (("GB h", 1), ("GB min", 60)):
        if abs(gb_hours) * per_hour >= 1:
            return f"{gb_hours * per_hour:,.1f} {unit}"
    return f"{gb_hours * 3600:,.1f} GB s"


def time_text(at: Instant) -> str:
    """Local time with the zone's name, as 2026-10-09 10:53:20 CEST; a dash for never."""
    if at <= 0:
        return "-"
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z").rstrip()


def short_time_text(at: Instant) -> str:
    """The same without the zone, for tables."""
    return time_text(at)[:19]


def count_text(number: int, one: str, many: str = "") -> str:
    """1 job, 2 jobs, 10,000 jobs."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
