"""Bounds the work of our own functions within one evaluation.

The library bounds its own steps, but not what a function does with one long list or text. So each of ours first
declares its work, and an expression that needs too much fails like any other error."""

from typing import Final

from mendflow.core.expressions.contract import ExpressionError

WORK_MAX: Final = 200_000
"""Elements looked at, or hundreds of characters written, by all calls of one evaluation."""

TEXT_CHARS_MAX: Final = 1 << 20


class WorkBudget:
    def __init__(self) -> None:
        self._left = WORK_MAX

    def begin(self) -> None:
        """Another evaluation."""
        self._left = WORK_MAX

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ExpressionError("it takes too much work; use less data, or evaluate it less often")


WORK: Final = WorkBudget()


def bounded_replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The text with `old` replaced by `new`, if what comes of it is of a bearable length."""
    times = text.count(old) if limit < 0 else min(text.count(old), limit)
    length = len(text) + times * max(0, len(new) - len(old))
    if length > TEXT_CHARS_MAX:
        raise ExpressionError(
            f"`replace` would make a text of {length:,} characters; at most {TEXT_CHARS_MAX:,} are made"
        )
    WORK.spend(length // 100)
    return text.replace(old, new, limit)
