"""What people remember of a case, as one text to search in."""

from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import redact
from mendflow.core.schedules.planning import schedule_of_key

CHARS_MAX: Final = 4_000
"""Long enough for a list of samples; a table that was given as an input is searched at its beginning only."""
WORDS_MAX: Final = 1_000
ENDED_BY_FAULT: Final = ("failed", "cancelled")
HELD_FAILURES: Final = "held_failures"
"""A field that no document has: the sentences of what failed in a case and waits for a rule or a person. A search for
words finds them out first."""
HELD_CHARS_MAX: Final = 2_000
"""So much of one such sentence."""


def case_text(data: Mapping[str, Value]) -> str:
    """In small letters, so that nobody has to know how a name is written. Without secrets."""
    inputs = redact({**(data.get("defaults") or {}), **(data.get("inputs") or {})})
    parts = [str(data.get(name) or "") for name in ("id", "flow", "owner")]
    parts.append(schedule_of_key(str(data.get("key") or "")))
    chars = sum(map(len, parts))
    for count, word in enumerate(_words(inputs), 1):
        parts.append(word[:CHARS_MAX])
        chars += len(word)
        if chars > CHARS_MAX or count == WORDS_MAX:
            break
    return " ".join([*parts, _failure(data)]).lower()


def _failure(data: Mapping[str, Value]) -> str:
    """By what it failed, or what failed in it and waits, in the sentences that people are shown."""
    held = data.get(HELD_FAILURES)
    if isinstance(held, list):
        return " ".join(held)
    fault = data.get("fault")
    if not isinstance(fault, Mapping) or data.get("status") not in ENDED_BY_FAULT:
        return ""
    return failure_text(str(fault.get("name") or ""), str(fault.get("message") or ""), CHARS_MAX)


def failure_text(name: str, message: str, chars_max: int) -> str:
    return f"{name} {message}"[:chars_max]


def _words(value: Value) -> Iterator[str]:
    """Names and values, whatever they are in."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from _words(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)
    elif value is not None:
        yield str(value)
