"""Division in expressions: `3 / 20` is 0.15, as a person expects who knows 3 and 20 only as numbers.

CEL divides two integers without the rest. In JSON, where our values come from, 20 and 20.0 are one number, so a
quotient must not depend on which of them was written."""

import math
from typing import Final

INT_MIN: Final = -(2**63)
CEL_INT_MAX: Final = 2**63 - 1


def quotient(a: float, b: float) -> float:
    """A whole number if both are whole and nothing is left over, else a fraction."""
    if type(a) is not int or type(b) is not int:
        return _of_fractions(a, b)
    if b == 0:
        raise ZeroDivisionError("divide by zero")
    if a % b:
        return a / b
    if not INT_MIN <= a // b <= CEL_INT_MAX:
        raise OverflowError("integer overflow")
    return a // b


def _of_fractions(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
