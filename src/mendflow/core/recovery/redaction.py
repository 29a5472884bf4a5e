"""What sounds like a secret by its name is not kept with decisions.

A context is kept, shown, proposed as a condition, and goes into rule files as a cornerstone. So the text under such a
name is hidden in all of it where contexts are made, once, and nothing after it has to think of secrets. A number is
never hidden: `max_tokens` is none."""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from mendflow.core.model.values import Value

REDACTED: Final = "(hidden)"
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET: Final = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"})
_KEYS: Final = frozenset({"api", "access", "private", "secret", "auth", "encryption", "signing"})
_NAMES_MAX: Final = 10_000


@lru_cache(_NAMES_MAX)
def is_secret_name(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    keys = any(first in _KEYS and second == "key" for first, second in pairwise(words))
    return keys or "apikey" in words or not _SECRET.isdisjoint(words)


def redact(data: dict[str, Value]) -> dict[str, Value]:
    """The same data, with the texts of secrets hidden, also those in maps and lists within it."""
    return {name: _redacted_value(name, value) for name, value in data.items()}


def _redacted_value(name: str, value: Value) -> Value:
    if isinstance(value, str):
        return REDACTED if is_secret_name(name) else value
    if isinstance(value, dict):
        return redact(value)
    return [_redacted_value(name, each) for each in value] if isinstance(value, list) else value
