"""What a text means where data may be written as text: a flow file, a table, an output of a script, a value on the
command line; and how a number stands in a text.

Nothing of what was written may be lost: `1.10` is a version and `1234567e8` a commit, and as numbers they would be
others. So a number is one only if a command that gets it would get the same characters."""

import re
from decimal import Decimal
from typing import Final

import msgspec

from mendflow.core.model.values import Value, check_value
from mendflow.lazy import lazy_pattern

WORDS: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}
NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
DIGITS_MAX: Final = 40
"""No number that is kept exactly has more characters."""

POSITIONAL_MIN, POSITIONAL_MAX = 1e-7, 1e21
"""Between these, numbers are written without an exponent."""


def data_or_text(text: str) -> Value:
    """A list, a map, or a string in quotation marks that reads as JSON is that JSON; a number, `true`, `false` and
    `null` are data if they are written as JSON writes them; all else is the text itself. What is nested too deep raises
    RecursionError."""
    first = text.lstrip()[:1]
    if first == "[" or first == "{" or (first == '"' and text[0] == '"' and text[-1] == '"'):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    if text in WORDS:
        return WORDS[text]
    return number_or_text(text)


def number_or_text(text: str) -> Value:
    """The number, or the text itself where something of it would be lost: written otherwise, or too large."""
    if not NUMBER.fullmatch(text) or len(text) > DIGITS_MAX:
        return text
    number = float(text) if "." in text else int(text)
    return number if number_text(number) == text and not check_value(number) else text


def declared_number(text: str) -> int | float:
    """The number that a text means where a number is declared, also if it is written as `1.10` or `1e3`. Raises
    ValueError with a sentence."""
    try:
        number = msgspec.json.decode(text)
    except msgspec.DecodeError:
        number = None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ValueError(f"{text[:60]!r} is not a number")
    if check_value(number):
        raise ValueError(f"{text[:60]} has more digits than a number keeps; declare it as a string")
    return number


def number_text(number: float) -> str:
    """A number as it stands in a text: a fraction always has its point, so that `1.0` stays `1.0`, and an exponent only
    if it is very large or very small."""
    text = repr(number)
    if "e" not in text or not POSITIONAL_MIN <= abs(number) < POSITIONAL_MAX:
        return text
    digits = format(Decimal(text), "f")
    return digits if "." in digits else f"{digits}.0"
