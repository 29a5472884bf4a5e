"""Hides values whose names suggest a secret before a context is stored with a decision.

A context is stored, shown, proposed as a condition, and exported in rule files as a cornerstone. So it is redacted
once, where contexts are made. A number is never hidden: `max_tokens` is not a secret."""

from functools import lru_cache
from itertools import pairwise
from typing import Final

from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

REDACTED: Final = "(hidden)"
_WORDS: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET: Final = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"})
_SECRET_ENDS: Final = ("password", "passwd", "passphrase", "secret", "apikey")
"""Ends of names that are written as one word, such as `PGPASSWORD`."""
_KEYS: Final = frozenset({"api", "access", "private", "secret", "auth", "encryption", "signing"})
_PASSWORD_IN_URL: Final = lazy_pattern(r"://[^/\s:@]*:[^/\s@]+@")
_NAMES_MAX: Final = 100_000
"""More than a case has items, whose names come again with each context."""


@lru_cache(_NAMES_MAX)
def is_secret_name(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    keys = any(first in _KEYS and second == "key" for first, second in pairwise(words))
    return keys or not _SECRET.isdisjoint(words) or any(word.endswith(_SECRET_ENDS) for word in words)


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of an environment may be a secret: by its name, or because it is an address with a password
    in it."""
    return is_secret_name(name) or _PASSWORD_IN_URL.search(value) is not None


def redact(data: dict[str, Value]) -> dict[str, Value]:
    """The data with secret texts hidden, also in nested maps and lists."""
    return {name: _redacted_value(name, value) for name, value in data.items()}


def _redacted_value(name: str, value: Value) -> Value:
    if isinstance(value, str):
        return REDACTED if is_secret_name(name) else value
    if isinstance(value, dict):
        return redact(value)
    return [_redacted_value(name, each) for each in value] if isinstance(value, list) else value
