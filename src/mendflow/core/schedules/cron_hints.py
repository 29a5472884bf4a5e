"""Other ways to say when, which people bring along: each is answered with the form that is right here."""

from collections.abc import Container
from typing import Final

from mendflow.core.model.units import duration_ms
from mendflow.lazy import lazy_pattern

_AWS: Final = lazy_pattern(r"cron\s*\((.*)\)")
_RATE: Final = lazy_pattern(r"rate\s*\((.*)\)")
_EVERY: Final = lazy_pattern(r"@?every\s+(?:(an?|other)\s+)?(.+)")
_ZONE: Final = lazy_pattern(r"(?:CRON_)?TZ=(\S+)\s+(.+)")
_UNITS: Final = {"minute": "* * * * *", "hour": "0 * * * *", "day": "0 0 * * *", "week": "0 0 * * 1"}
_LAST_DAY: Final = (
    "there is no `L` for the last day of a month; start on the first day of the next, `0 2 1 * *`, or on days 28-31 and"
    " have the flow look whether the next day is a first"
)


class CronError(Exception):
    """An expression that cannot be read. The message says which part, why, and what to write instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def other_dialect(text: str, aliases: Container[str]) -> str:
    """Why this is no cron expression of five fields, if another tool would understand it; empty if none would."""
    if not text:
        return "the expression is empty; write five fields, such as `30 2 * * *` for every day at 2:30"
    if found := _ZONE.fullmatch(text):
        return f"the time zone stands beside the expression: cron `{found.group(2)}`, timezone {found.group(1)}"
    if found := _RATE.fullmatch(text):
        return f"`{text}` is an interval: write it as `every`, such as every {found.group(1).strip()}"
    if found := _AWS.fullmatch(text):
        return _amazon(text, found.group(1).split())
    if text.startswith("@") and text.lower() not in aliases and not text.lower().startswith("@every"):
        return f"there is no `{text:.40}`; there are @hourly, @daily, @weekly, @monthly and @yearly"
    if (found := _EVERY.fullmatch(text.lower())) or duration_ms(text) is not None:
        return _interval(text, found.group(2) if found else text)
    return _fields(text.split())


def _interval(text: str, period: str) -> str:
    if period in _UNITS:
        return f"`{text:.40}` is cron `{_UNITS[period]}`, or the interval `1 {period}` under `every`"
    return f"`{text:.40}` is an interval: write it as `every`, not as `cron`: every {period:.40}"


def _amazon(text: str, parts: list[str]) -> str:
    if len(parts) != 6:
        return f"`{text:.100}` is of another tool; write five fields: minute, hour, day, month, day of the week"
    return f"`{text:.100}` has a year and days of the week from 1; write `{_plain(parts[:5], from_one=True)}`"


def _fields(parts: list[str]) -> str:
    quartz = any(part == "?" for part in parts)
    if len(parts) in (6, 7):
        right = _plain(parts[1:6], from_one=quartz)
        year = " and a year" if len(parts) == 7 else ""
        return f"{len(parts)} fields are cron with seconds{year}; there are five here, without these: `{right}`"
    if quartz and len(parts) == 5:
        return f"`?` is of another tool; write `*` for any day: `{_plain(parts, from_one=False)}`"
    for part in parts if len(parts) == 5 else ():
        if part.upper() in ("L", "LW") or part.upper().startswith("L-"):
            return _LAST_DAY
        if "#" in part:
            return (
                f"there is no `{part:.20}` for a certain week of the month; name days of the month, such as 1-7, and"
                " have the flow look which day of the week it is"
            )
        if part.upper() == "H" or part.upper().startswith(("H/", "H(")):
            return f"`{part:.20}` stands for some number elsewhere; write the number, such as 17"
        if part[:-1].isdecimal() and part[-1:].upper() in ("W", "L"):
            return f"there is no `{part:.20}`; name the days themselves, such as 1-3 or fri"
    return ""


def _plain(parts: list[str], *, from_one: bool) -> str:
    """The five fields as cron has them; `from_one`: days of the week were counted from Sunday as 1."""
    plain = ["*" if part == "?" else part for part in parts]
    if from_one and plain[4] != "*":
        plain[4] = "".join(
            str((int(each) + 6) % 7) if each.isdecimal() and each in "1234567" else each for each in plain[4]
        )
    return " ".join(plain)
