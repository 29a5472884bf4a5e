"""The paths of contexts that conditions can read, with the types of their values and samples, for completion."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mendflow.core.expressions.conditions import shorten_value
from mendflow.core.model.values import Value
from mendflow.core.rules.candidates import member_path, root_weight
from mendflow.core.rules.evaluation import ROOTS

LEVELS_MAX: Final = 8
PATHS_MAX: Final = 2_000
SAMPLES_MAX: Final = 5


class KnownPath(msgspec.Struct):
    """What is known of a path: the types that its value had, samples, and in how many contexts it was."""

    types: dict[str, None] = {}
    samples: dict[str, Value] = {}
    count: int = 0

    def take(self, value: Value) -> None:
        self.count += 1
        self.types[type_name(value)] = None
        if len(self.samples) < SAMPLES_MAX and value is not None and not isinstance(value, dict):
            short = shorten_value(value)
            self.samples[msgspec.json.encode(short).decode()] = short


def context_paths(contexts: Iterable[Mapping[str, Value]]) -> dict[str, KnownPath]:
    """Every path of these contexts, in the order of their use for conditions. The roots are always among them."""
    found: dict[str, KnownPath] = {}
    for context in contexts:
        pending: list[tuple[str, Value, int]] = [(root, value, 1) for root, value in context.items()]
        while pending:
            path, value, level = pending.pop()
            if not path or (path not in found and len(found) >= PATHS_MAX):
                continue
            found.setdefault(path, KnownPath()).take(value)
            if isinstance(value, dict) and level < LEVELS_MAX:
                pending += [(member_path(path, key), part, level + 1) for key, part in value.items()]
    for root in ROOTS:
        found.setdefault(root, KnownPath())
    return dict(sorted(found.items(), key=lambda pair: (root_weight(pair[0]), pair[0])))


def type_name(value: Value) -> str:
    """The type in the words of the expression language."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case list():
            return "list"
    return "map"
