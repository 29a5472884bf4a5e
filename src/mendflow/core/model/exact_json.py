"""JSON that people hand over, read so that nothing of it changes quietly.

A number in JSON is a number, with or without an exponent. But one that could have been meant as a text, `1.10`, and one
that no number keeps, a whole number of more than 64 bits, are refused; so is a key that stands twice in a map."""

import json
import math
from typing import Any, NamedTuple

from mendflow.core.model.text_data import number_text
from mendflow.core.model.values import INT_MAX, INT_MIN, Value


class InexactJson(ValueError):
    """Something of the text would change; the sentence says what to write."""


class NotJson(InexactJson):
    """The text is not JSON; the sentence says where."""


class InexactNumber(NamedTuple):
    """A number of which something would change, as it is written, and why it is refused as data."""

    text: str
    flaw: str


def decode_exactly(text: str) -> Value:
    """The data. Raises InexactJson, and NotJson."""
    return exact_value(decode_as_written(text))


def decode_as_written(text: str) -> Value:
    """The data, with InexactNumber in place of numbers that are none. Raises InexactJson, and NotJson."""
    try:
        return json.loads(
            text, parse_float=_fraction, parse_int=_whole, parse_constant=_constant, object_pairs_hook=_map
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise InexactJson("it is nested too deep") from None


def exact_value(value: Value) -> Value:
    """The value itself. Raises InexactJson if it has an InexactNumber in it."""
    pending = [value]
    while pending:
        match pending.pop():
            case InexactNumber(flaw=flaw):
                raise InexactJson(flaw)
            case list() as parts:
                pending.extend(parts)
            case dict() as members:
                pending.extend(members.values())
    return value


def _whole(text: str) -> int | InexactNumber:
    if len(text) > len(str(INT_MAX)) or not INT_MIN <= int(text) <= INT_MAX:
        flaw = f'{text:.40} has more than 64 bits; write "{text:.40}", in quotes, to have it as a text'
        return InexactNumber(text, flaw)
    return int(text)


def _fraction(text: str) -> float | InexactNumber:
    number, digits = float(text), text.lower().partition("e")[0]
    if math.isinf(number):
        return _constant(text)
    if digits.endswith("0") and "." in digits and not digits.endswith(".0"):
        flaw = f'{text:.40} could be meant as a text; write {number_text(number)} for the number, or "{text:.40}"'
        return InexactNumber(text, flaw)
    return number


def _constant(word: str) -> InexactNumber:
    return InexactNumber(word, f'{word:.40} is no number of JSON; write "{word:.40}", in quotes, to have it as a text')


def _map(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InexactJson(f"`{twice}` is given twice in one map; which one counts is not clear")
    return found
