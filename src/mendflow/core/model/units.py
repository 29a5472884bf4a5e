"""Durations and sizes as people write them: `90 s`, `1h30m`, `2 GB`, `512 MiB`."""

import re
from typing import Final

SECOND_MS: Final = 1000
DURATION_UNITS: Final[dict[str, int]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_MS),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND_MS),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * SECOND_MS),
    **dict.fromkeys(("d", "day", "days"), 86_400 * SECOND_MS),
    **dict.fromkeys(("w", "week", "weeks"), 604_800 * SECOND_MS),
}
SIZE_UNITS: Final[dict[str, int]] = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
}
PART: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-zA-Z]+)\s*")
DURATION_EXAMPLES: Final = "90 s, 10 min, 1h30m, 2 days"
SIZE_EXAMPLES: Final = "512 MiB, 2 GB"
LARGEST: Final = 2**62


def duration_ms(text: str) -> int | None:
    """Milliseconds, or None if the text is not a duration."""
    return _total(text, DURATION_UNITS, parts_max=6)


def size_bytes(text: str) -> int | None:
    """Bytes, or None if the text is not a size."""
    return _total(text, SIZE_UNITS, parts_max=1)


def _total(text: str, units: dict[str, int], parts_max: int) -> int | None:
    total, at, parts = 0.0, 0, 0
    while at < len(text) and parts < parts_max:
        part = PART.match(text, at)
        unit = units.get(part.group(2).lower()) if part else None
        if part is None or unit is None:
            return None
        total += float(part.group(1)) * unit
        at, parts = part.end(), parts + 1
    return round(total) if parts and at == len(text) and total <= LARGEST else None
