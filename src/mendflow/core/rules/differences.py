"""What distinguishes the case at hand from another one: every value that differs, the most telling first.

A value comes with conditions that hold for the case at hand and not for the other, so that a rule can be made by
choosing one. Each is evaluated on both before it is shown."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mendflow.core.expressions.cel_parser import Operator, parse
from mendflow.core.expressions.conditions import shorten_value
from mendflow.core.model.values import Value
from mendflow.core.rules.candidates import candidates, distinguishes, leaves, root_weight

DIFFERENCES_MAX: Final = 100
CONDITIONS_MAX: Final = 200
SHOWN_IN_ERROR: Final = 5
VALUE_CHARS_MAX: Final = 60


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that differs. `missing` says on which side there is none; `conditions` hold here and not there."""

    path: str
    here: Value = None
    there: Value = None
    missing: str = ""  # here, there, or empty
    conditions: list[str] = []


def differences(
    context: Mapping[str, Value], other: Mapping[str, Value], most: int = DIFFERENCES_MAX
) -> list[Difference]:
    """The values that differ. Those that a condition can be made of come first, in the order of their use."""
    here, there = leaves(context), leaves(other)
    conditions: dict[str, list[str]] = {}
    for candidate in candidates(context, other, CONDITIONS_MAX):
        conditions.setdefault(candidate.path, []).append(candidate.condition)
    gone = [path for path in there if path not in here]
    for path in gone:
        if "." in path and distinguishes(f"!has({path})", context, other):
            conditions[path] = [f"!has({path})"]
    differing = [path for path, value in here.items() if path not in there or not _is_same(value, there[path])]
    rest = sorted((path for path in (*differing, *gone) if path not in conditions), key=_order)
    return [_difference(path, here, there, conditions.get(path, [])) for path in [*conditions, *rest][:most]]


def _difference(path: str, here: Mapping[str, Value], there: Mapping[str, Value], conditions: list[str]) -> Difference:
    return Difference(
        path=path,
        here=shorten_value(here.get(path)),
        there=shorten_value(there.get(path)),
        missing="here" if path not in here else "there" if path not in there else "",
        conditions=conditions,
    )


def _is_same(value: Value, other: Value) -> bool:
    return type(value) is type(other) and value == other


def _order(path: str) -> tuple[int, str]:
    return root_weight(path), path


def narrowed(condition: str, further: str) -> str:
    """Both conditions, as one."""
    tree = parse(condition)
    plain = tree is not None and not (isinstance(tree, Operator) and tree.do in ("||", "?:"))
    return f"{condition if plain else f'({condition})'} && {further}" if condition != "true" else further


def differences_text(found: Iterable[Difference], condition: str = "") -> str:
    """For people: the most telling differences line by line, each with a condition that can be pasted."""
    lines = []
    for each in [each for each in found if each.conditions][:SHOWN_IN_ERROR]:
        offered = narrowed(condition, each.conditions[0]) if condition else each.conditions[0]
        lines.append(f"  {each.path}: {sides_text(each)}    --if {quoted(offered)}")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """The text as one word of a shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def sides_text(each: Difference) -> str:
    """7 here, 3 there."""
    here = "none" if each.missing == "here" else _value_text(each.here)
    there = "none" if each.missing == "there" else _value_text(each.there)
    return f"{here} here, {there} there"


def _value_text(value: Value) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}..."
