"""Division in expressions: `3 / 20` is 0.15, as a person expects who knows 3 and 20 only as numbers.

CEL divides two integers without the rest. In JSON, where our values come from, 20 and 20.0 are one number, so a
quotient must not depend on which of them was written. The library cannot be given another division of two integers, so
the text that it compiles has a mark in each division: `a / b` becomes `a /b''/ b`. Dividing a number by the mark puts
it into a list, and the list is divided by functions of ours."""

import math
from typing import Final, NamedTuple

from mendflow.core.expressions.scanner import tokenize

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
MARK: Final = "b''/"


class Marked(NamedTuple):
    """A text with the mark in each division, and where the marks begin."""

    text: str
    marks: tuple[int, ...] = ()

    def original_offset(self, offset: int) -> int:
        """Where a place in `text` was before the marks came in."""
        return offset - sum(min(len(MARK), max(0, offset - mark)) for mark in self.marks)


def marked(text: str) -> Marked:
    """`/` binds to the left: what stands before it is divided by the mark, and the result by what stands behind it."""
    if "/" not in text:
        return Marked(text)
    pieces: list[str] = []
    marks: list[int] = []
    for token in tokenize(text):
        pieces.append(token.text)
        if (token.kind, token.text) == ("mark", "/"):
            pieces.append(MARK)
            marks.append(token.end + len(MARK) * len(marks))
    return Marked("".join(pieces), tuple(marks))


def quotient(a: float, b: float) -> float:
    """A whole number if both are whole and nothing is left over, else a fraction."""
    if type(a) is not int or type(b) is not int:
        return _of_fractions(a, b)
    if b == 0:
        raise ZeroDivisionError("divide by zero")
    if a % b:
        return a / b
    if not INT_MIN <= a // b <= INT_MAX:
        raise OverflowError("integer overflow")
    return a // b


def _of_fractions(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
