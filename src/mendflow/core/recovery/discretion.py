"""What sounds like a secret by its name is not kept with decisions.

A context is kept, shown, proposed as a condition, and goes into rule files as a cornerstone. So the text under such a
name is hidden where contexts are made, once, and nothing after it has to think of secrets. A number is never hidden:
`max_tokens` is none."""

import re
from itertools import pairwise
from typing import Final

from mendflow.core.model.values import Value

HIDDEN: Final = "(hidden)"
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET: Final = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"})
_KEYS: Final = frozenset({"api", "access", "private", "secret", "auth", "encryption", "signing"})
_DEPTH_MAX: Final = 20


def sounds_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    keys = any(first in _KEYS and second == "key" for first, second in pairwise(words))
    return keys or "apikey" in words or not _SECRET.isdisjoint(words)


def discreet(data: dict[str, Value]) -> dict[str, Value]:
    """The same data, with the texts of secrets hidden, also those in maps within it."""
    return {name: _shown(name, value, _DEPTH_MAX) for name, value in data.items()}


def _shown(name: str, value: Value, levels: int) -> Value:
    if isinstance(value, str) and sounds_secret(name):
        return HIDDEN
    if isinstance(value, dict) and levels:
        return {inner: _shown(inner, each, levels - 1) for inner, each in value.items()}
    return value
