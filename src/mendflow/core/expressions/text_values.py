"""Values as text, and spilled values, which no expression can read.

A spilled value is a reference to a file. Passing it on is fine; reading a member of it, computing with it or putting it
into a text would silently use the reference as the value, and is refused."""

import json
from typing import Final

from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.model.text_data import number_text
from mendflow.core.model.values import Value, is_size, is_spilled

SEAL: Final = "$too-large"
"""Inside the data that CEL is given, a spilled value is closed up under this key: it can be handed on, not read."""


def too_large(name: str, value: Value) -> ExpressionError:
    given = value.get("bytes", 0)
    size = given if is_size(given) else 0
    shown = f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    return ExpressionError(
        f"{name} is {shown}, too large for an expression; pass it to a job as an argument, or as a file"
    )


def find_spilled(value: Value) -> Value:
    """The first spilled value in a value, open or sealed, or None."""
    if isinstance(value, dict):
        if is_spilled(value):
            return value
        return next((found for part in value.values() if (found := find_spilled(part)) is not None), None)
    if isinstance(value, list):
        return next((found for part in value if (found := find_spilled(part)) is not None), None)
    return None


def demand_whole_texts(name: str, value: Value) -> None:
    """Refuse a text with a NUL character: CEL's library would take what stands before it, and no more."""
    if isinstance(value, str):
        if "\0" in value:
            raise ExpressionError(
                f"a text in {name} has a NUL character (of code 0), which expressions cannot take;"
                " leave it out where the text is made"
            )
    elif isinstance(value, dict):
        for key, part in value.items():
            demand_whole_texts(name, key)
            demand_whole_texts(name, part)
    elif isinstance(value, list):
        for part in value:
            demand_whole_texts(name, part)


def seal(value: Value) -> Value:
    """The same data with its spilled values closed up."""
    if is_spilled(value):
        return {SEAL: value}
    if isinstance(value, dict):
        return {key: seal(part) for key, part in value.items()}
    return [seal(part) for part in value] if isinstance(value, list) else value


def as_text(value: Value, name: str = "a value in the text") -> str:
    """How a value stands in a text: as people write it. Null is nothing; lists and maps are JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    if value is None:
        return ""
    if isinstance(value, float):
        return number_text(value)
    return as_json(value, name)


def as_json(value: Value, name: str = "a value in it") -> str:
    """Keys are sorted: the evaluator's maps have no order, and the same data must give the same text every time."""
    if (found := find_spilled(value)) is not None:
        raise too_large(name, found)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def shell_quote(value: Value) -> str:
    """The text as one word of a POSIX shell, whatever is in it."""
    return "'" + as_text(value).replace("'", "'\"'\"'") + "'"
