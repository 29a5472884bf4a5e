"""Plain values of simple types, and their XML texts.

A text that is not a value of its type stays a text: nothing is lost, and validation finds it."""

import re
from decimal import Decimal
from math import isinf, isnan
from typing import Final

from mendflow.core.model.values import INT_MAX, INT_MIN, Value
from mendflow.core.model.xml import XmlDefinitions, XmlType
from mendflow.core.xml.declarations import builtin_of
from mendflow.lazy import lazy_pattern

WHOLE: Final = frozenset(
    (
        *("integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger", "positiveInteger"),
        *("long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
PRESERVED: Final = frozenset({"string", "normalizedString", "anySimpleType"})
WHOLE_TEXT: Final = lazy_pattern(r"[+-]?[0-9]{1,30}")
DECIMAL_TEXT: Final = lazy_pattern(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})")
FLOAT_TEXT: Final = lazy_pattern(DECIMAL_TEXT.pattern + r"([eE][+-]?[0-9]{1,4})?")
INFINITY: Final = {"Infinity": "INF", "-Infinity": "-INF"}
"""As XPath writes it, and as XML Schema does. JSON has none, so it is kept as a text."""

BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def text_of(value: Value) -> str:
    """A plain value as XML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    return value if isinstance(value, str) else str(value)


def number_text(number: float) -> str:
    """A number as XPath writes it: never with an exponent, and whole ones without a point."""
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


def plain_value(world: XmlDefinitions, type: XmlType, text: str) -> Value:
    """The value of a simple type that a text stands for."""
    base = builtin_of(world, type) or "string"
    if base in PRESERVED:
        return text
    stripped = text.strip(" \t\r\n")
    if base in WHOLE:
        return _whole(stripped)
    if base == "boolean":
        return BOOLEANS.get(stripped, stripped)
    if base == "decimal":
        return _decimal(stripped)
    if base in ("float", "double"):
        return _number(INFINITY.get(stripped, stripped), FLOAT_TEXT)
    return stripped


def _whole(text: str) -> Value:
    if not WHOLE_TEXT.fullmatch(text):
        return text
    number = int(text)
    return number if INT_MIN <= number <= INT_MAX else text


def _decimal(text: str) -> Value:
    """What a number cannot hold to its last digit stays a text."""
    value = _number(text, DECIMAL_TEXT)
    return text if isinstance(value, float) and Decimal(repr(value)) != Decimal(text) else value


def _number(text: str, pattern: re.Pattern[str]) -> Value:
    if not pattern.fullmatch(text):
        return text
    if WHOLE_TEXT.fullmatch(text):
        return _whole(text)
    number = float(text)
    return text if isinf(number) else number
