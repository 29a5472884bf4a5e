"""Bounds the work of one evaluation, in a count and never in seconds: an expression that is too much work on one
machine is too much on every other, and again when its case is replayed.

The library bounds how often it goes around a loop, but not what a function does with one long list or text. So each
function declares its work before it begins: ours themselves, those of the library by the calls that metering.py puts
into the expression. One unit is about a microsecond."""

from typing import Final

from mendflow.core.expressions.contract import ExpressionError
from mendflow.core.model.values import Value

WORK_MAX: Final = 200_000
"""All units of one evaluation."""

CALL_WORK: Final = 2
"""What each counted call costs beside its data."""

SCANNED_CHARS: Final = 50
"""As many characters are scanned or copied for one unit."""

WEIGHED_CHARS: Final = 100
NEEDLE_CHARS: Final = 100
SPLIT_CHARS: Final = 4
COPIED_ELEMENTS: Final = 4
LOOP_STEPS: Final = 8
"""As many steps of the library's, inside a loop, are one unit."""

LOOPS_MAX: Final = 10_000
"""The library goes around loops as often as that, in all."""

TEXT_CHARS_MAX: Final = 1 << 20


class WorkBudget:
    """What is left for the evaluation that is under way. There is one at a time: expressions are not evaluated in
    several threads."""

    def __init__(self) -> None:
        self._left = WORK_MAX
        self.spent_in_all = 0
        """Since the process began: who wants to know what something took asks before and after it."""
        self.lists: list[list[Value]] = []
        """The lists that loops of this evaluation are making, by their number."""

    def begin(self) -> None:
        """Another evaluation."""
        self._left = WORK_MAX
        self.lists = []

    @property
    def is_spent(self) -> bool:
        return self._left < 0

    def spend(self, amount: int) -> None:
        self._left -= amount
        self.spent_in_all += amount
        if self._left < 0:
            raise too_much_work()


def too_much_work() -> ExpressionError:
    return ExpressionError(
        f"it takes too much work: more than {WORK_MAX:,} units, where one is an element that is looked at or made, or"
        f" {SCANNED_CHARS} characters that are read or written; use less data, or do this in a job"
    )


WORK: Final = WorkBudget()


def weight(value: Value) -> int:
    """The work of looking at all of a value."""
    found, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        found += 1
        if isinstance(part, str):
            found += len(part) // WEIGHED_CHARS
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.keys()
            waiting += part.values()
        if found > WORK_MAX:
            break
    return found


def bounded_replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The text with `old` replaced by `new`, if what comes of it is of a bearable length."""
    WORK.spend(CALL_WORK + len(text) // WEIGHED_CHARS)
    times = text.count(old) if limit < 0 else min(text.count(old), limit)
    length = len(text) + times * max(0, len(new) - len(old))
    if length > TEXT_CHARS_MAX:
        raise ExpressionError(
            f"`replace` would make a text of {length:,} characters; at most {TEXT_CHARS_MAX:,} are made"
        )
    WORK.spend(length // WEIGHED_CHARS)
    return text.replace(old, new, limit)
