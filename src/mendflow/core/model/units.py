"""Durations and sizes as people write them: `90 s`, `1h30m`, `2 GB`, `512 MiB`; and as other tools do, where that has
one meaning: `2G`, `2Gi`, `01:00:00`, `1-12:00:00`, `PT1H30M`. `1:30` has two."""

from typing import Final

from mendflow.lazy import lazy_pattern

SECOND_MS: Final = 1000
DURATION_UNITS: Final[dict[str, int]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_MS),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND_MS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600 * SECOND_MS),
    **dict.fromkeys(("d", "day", "days"), 86_400 * SECOND_MS),
    **dict.fromkeys(("w", "week", "weeks"), 604_800 * SECOND_MS),
}
SIZE_UNITS: Final[dict[str, int]] = {
    "b": 1,
    **{f"{letter}{b}": 1000**power for power, letter in enumerate("kmgtp", 1) for b in ("", "b")},
    **{f"{letter}i{b}": 1024**power for power, letter in enumerate("kmgtp", 1) for b in ("", "b")},
}
PART: Final = lazy_pattern(r"\s*(\d{1,15}(?:\.\d{1,9})?)\.?\s*([a-zA-Z]+)\s*")
CLOCK: Final = lazy_pattern(r"\s*(?:(\d{1,4})-)?(\d{1,4}):([0-5]\d)(?::([0-5]\d))?\s*")
ISO: Final = lazy_pattern(r"P(?=\d|T\d)(?:(\d{1,4})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?")
DURATION_EXAMPLES: Final = "90 s, 10 min, 1h30m, 2 days"
SIZE_EXAMPLES: Final = "512 MiB, 2 GB"
LARGEST: Final = 2**62


def duration_ms(text: str) -> int | None:
    """Milliseconds, or None if the text is not a duration."""
    found = _total(text, DURATION_UNITS, parts_max=6)
    return _clock_ms(text) if found is None else found


def size_bytes(text: str) -> int | None:
    """Bytes, or None if the text is not a size."""
    return _total(text, SIZE_UNITS, parts_max=1)


AUTO: Final = "auto"
AUTO_UP_TO: Final = "auto up to "


def is_auto(given: object) -> bool:
    """Whether a size or a duration is to be learned: `auto`, or `auto up to 16 GB`."""
    return isinstance(given, str) and (given.strip() == AUTO or given.strip().startswith(AUTO_UP_TO))


def auto_bound(text: str) -> str:
    """Behind `auto up to`; empty if there is no bound."""
    return text.strip().removeprefix(AUTO).strip().removeprefix("up to ").strip()


def _clock_ms(text: str) -> int | None:
    """Days, hours, minutes and seconds, as batch systems and ISO 8601 write them. Of `1:30` nobody knows whether it is
    hours or minutes, unless days stand before it."""
    clock, iso = CLOCK.fullmatch(text), ISO.fullmatch(text.strip())
    if clock is not None and clock.group(1) is None and clock.group(4) is None:
        return None
    if (found := clock or iso) is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND_MS


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
