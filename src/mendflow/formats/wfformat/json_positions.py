"""Finds positions in a JSON text.

A fast decoder without positions reads the text. Only if something is wrong is it scanned once more, token by token, for
the wanted positions. It does not recurse, and the text is known to be valid JSON."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from mendflow.lazy import lazy_pattern

JsonPath = tuple[str | int, ...]
"""Keys and numbers from the root down: ("workflow", "specification", "tasks", 3)."""

TOKEN: Final = lazy_pattern(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
"""A number, or what some writers take for one."""


def path_text(path: JsonPath) -> str:
    """A path as people write it: workflow.specification.tasks[3]."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def positions_of(text: str, wanted: Iterable[JsonPath]) -> dict[JsonPath, tuple[int, int]]:
    """Line and column of each path, counted from 1. What is not there has the place of the nearest around it."""
    asked = list(wanted)
    needed = {path[:length] for path in asked for length in range(len(path) + 1)}
    found = {path: at for path, at in _values(text) if path in needed}
    places = {}
    for path in asked:
        nearest = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in found)
        places[path] = _place(text, found[nearest])
    return places


def invalid_number_in(text: str) -> tuple[str, tuple[int, int]]:
    """The first NaN, Infinity, or number out of range, and its place; nothing if there is none."""
    for token in TOKEN.finditer(text):
        word = token.group()
        if NUMBER.fullmatch(word) and not math.isfinite(float(word)):
            return word, _place(text, token.start())
    return "", (0, 0)


def _values(text: str) -> Iterator[tuple[JsonPath, int]]:
    """Every value with its path and its offset, in the order of the text. A map's member stands where its key does."""
    path: list[str | int] = []
    key_at = -1
    for token in TOKEN.finditer(text):
        first = token.group()[0]
        in_map = bool(path) and isinstance(path[-1], str)
        if first == ",":
            if in_map:
                path[-1] = ""
            else:
                path[-1] = int(path[-1]) + 1
            key_at = -1
        elif first == ":":
            continue
        elif first in "}]":
            path.pop()
            key_at = 0  # the value that ends here had its place already
        elif in_map and key_at < 0 and first == '"':
            path[-1] = _plain(token.group())
            key_at = token.start()
            yield tuple(path), key_at
        else:
            if not in_map:
                yield tuple(path), token.start()
            if first in "{[":
                path.append("" if first == "{" else 0)
                key_at = -1


def _plain(token: str) -> str:
    """The text of a key; one with escapes is no key of this format, and is left as it stands."""
    return token[1:-1]


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
