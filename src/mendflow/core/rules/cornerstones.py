"""Cornerstones: the context of the case that a rule was made for, stored with the rule, and bounded.

What the conditions on the path read is kept in full, because a cornerstone that no longer gives its case's conclusion
would protect nothing. The rest is cut to what a person wants to see."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mendflow.core.model.values import Value

BYTES_MAX: Final = 32 * 1024


class CutBounds(msgspec.Struct, frozen=True):
    chars: int
    parts: int
    levels: int


WIDE: Final = CutBounds(chars=1000, parts=50, levels=8)
NARROW: Final = CutBounds(chars=120, parts=10, levels=4)


def cornerstone(context: Mapping[str, Value], names: Iterable[str] = ()) -> dict[str, Value]:
    """The context to store; `names` are the paths that must not be cut."""
    whole = {name: paths_below(name) for name in names}
    for bounds in (WIDE, NARROW):
        kept = {root: truncate(value, root, frozenset(whole), bounds, 0) for root, value in context.items()}
        if len(msgspec.json.encode(kept)) <= BYTES_MAX:
            break
    return kept


def paths_below(name: str) -> tuple[str, ...]:
    return (f"{name}.", f"{name}[")


def truncate(value: Value, path: str, whole: frozenset[str], bounds: CutBounds, level: int) -> Value:
    if path in whole and not isinstance(value, dict | list):
        return value
    if isinstance(value, str):
        return value if len(value) <= bounds.chars else value[-bounds.chars :]
    asked = path in whole or any(name.startswith(paths_below(path)) for name in whole)
    if level >= bounds.levels and not asked:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, list):
        kept = value if path in whole else value[: bounds.parts]
        return [truncate(part, f"{path}[]", whole, bounds, level + 1) for part in kept]
    if isinstance(value, dict):
        inner = {key: f"{path}.{key}" for key in value}
        first = [
            key for key in value if inner[key] in whole or any(n.startswith(paths_below(inner[key])) for n in whole)
        ]
        keys = dict.fromkeys([*first, *list(value)[: bounds.parts]])
        return {key: truncate(value[key], inner[key], whole, bounds, level + 1) for key in value if key in keys}
    return value
