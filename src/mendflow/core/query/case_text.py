"""What people remember of a case, as one text to search in."""

from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import redact

CHARS_MAX: Final = 4_000
"""Long enough for a list of samples; a table that was given as an input is searched at its beginning only."""
WORDS_MAX: Final = 1_000


def case_text(data: Mapping[str, Value]) -> str:
    """In small letters, so that nobody has to know how a name is written. Without secrets."""
    inputs = redact(data.get("inputs") or {})
    parts = [str(data.get(name) or "") for name in ("id", "flow", "owner")]
    chars = sum(map(len, parts))
    for count, word in enumerate(_words(inputs), 1):
        parts.append(word[:CHARS_MAX])
        chars += len(word)
        if chars > CHARS_MAX or count == WORDS_MAX:
            break
    return " ".join(parts).lower()


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
