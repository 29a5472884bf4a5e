"""The four types of XPath 1.0, their conversions and comparisons.

Comparing two node-sets asks whether any pair matches. That is answered from the sets of their values, or their
extremes, so it costs the sum of their sizes and not the product."""

import math
import re
from collections.abc import Callable
from typing import Final

from mendflow.core.expressions.text_values import too_large
from mendflow.core.expressions.xpath.evaluation import Evaluation, FlowValue, XPathError
from mendflow.core.model.values import is_spilled
from mendflow.core.model.xml import element_text
from mendflow.core.xml import BadXml
from mendflow.core.xml.reader import read_shared
from mendflow.core.xml.simple_values import number_text
from mendflow.core.xml.tree import Node
from mendflow.lazy import lazy_pattern

XValue = bool | float | str | list[Node]
"""A node-set is a list without repetitions, in document order."""

SPACE: Final = " \t\r\n"
NUMBER: Final = lazy_pattern(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))", re.ASCII)
NUMBER_CHARS: Final = 50
"""So many characters of a text are read as a number for one unit of work."""
COMPARED_CHARS: Final = 1000
ORDERS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
SWAPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def to_xpath_value(value: FlowValue, what: str) -> XValue:
    """A value of the flow as XPath sees it. An element is a node-set of it."""
    if isinstance(value, Node):
        return [value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return as_float(value)
    if (text := element_text(value)) is not None:
        return [_root(text, what)]
    if is_spilled(value):
        raise XPathError(too_large(what, value).message)
    if isinstance(value, dict):
        raise XPathError(f"{what} is a message; name the part that is meant: `$name.part`")
    raise XPathError(f"{what} is nothing that XPath can look at")


def _root(text: str, what: str) -> Node:
    try:
        return read_shared(text)
    except BadXml as error:
        raise XPathError(f"{what} is no XML that can be read: {error}") from None


def as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_string(value: XValue, run: Evaluation) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return run.string(value[0]) if value else ""
    return number_text(value)


def to_number(value: XValue, run: Evaluation) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, bool):
        return float(value)
    text = to_string(value, run)
    run.spend(len(text) // NUMBER_CHARS)
    return text_number(text)


def text_number(text: str) -> float:
    if text.isdecimal() and text.isascii():
        return float(text)
    found = NUMBER.fullmatch(text.strip(SPACE))
    return float(found.group(1)) if found else math.nan


def to_boolean(value: XValue) -> bool:
    if isinstance(value, float):
        return not (value == 0 or math.isnan(value))
    return bool(value)


def compare(operator: str, left: XValue, right: XValue, run: Evaluation) -> bool:
    if isinstance(left, list):
        if isinstance(right, list):
            return _of_sets(operator, left, right, run)
        return _of_set(operator, left, right, run)
    if isinstance(right, list):
        return _of_set(SWAPPED[operator], right, left, run)
    if operator in ORDERS:
        return ORDERS[operator](to_number(left, run), to_number(right, run))
    if isinstance(left, bool) or isinstance(right, bool):
        equal = to_boolean(left) == to_boolean(right)
    elif isinstance(left, float) or isinstance(right, float):
        equal = to_number(left, run) == to_number(right, run)
    else:
        run.spend(min(len(left), len(right)) // COMPARED_CHARS)
        equal = left == right
    return equal == (operator == "=")


def _of_set(operator: str, nodes: list[Node], other: bool | float | str, run: Evaluation) -> bool:
    """Whether any node compares so with a value that is no node-set."""
    if isinstance(other, bool):
        return compare(operator, bool(nodes), other, run)
    if isinstance(other, float) or operator in ORDERS:
        number = to_number(other, run)
        return any(compare(operator, text_number(run.string(node)), number, run) for node in nodes)
    return any((run.string(node) == other) == (operator == "=") for node in nodes)


def _of_sets(operator: str, left: list[Node], right: list[Node], run: Evaluation) -> bool:
    if operator in ORDERS:
        return _some_ordered(operator, _numbers(left, run), _numbers(right, run))
    ours, theirs = {run.string(node) for node in left}, {run.string(node) for node in right}
    if operator == "=":
        return not ours.isdisjoint(theirs)
    return bool(ours and theirs) and not (len(ours) == len(theirs) == 1 and ours == theirs)


def _numbers(nodes: list[Node], run: Evaluation) -> list[float]:
    return [number for node in nodes if not math.isnan(number := text_number(run.string(node)))]


def _some_ordered(operator: str, left: list[float], right: list[float]) -> bool:
    """If any pair is in order, then so is the pair that lies furthest apart that way."""
    if not left or not right:
        return False
    if operator in ("<", "<="):
        return ORDERS[operator](min(left), max(right))
    return ORDERS[operator](max(left), min(right))
