"""Bounds the work of one evaluation, in a count and never in seconds: an expression that is too much work on one
machine is too much on every other, and again when its case is replayed.

The library bounds how often it goes around a loop, but not what a function does with one long list or text. So each
function declares its work before it begins: ours themselves, those of the library by the calls that metering.py puts
into the expression. One unit is about a microsecond."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
PARTS_FREE: Final = 10_000
PARTS_MAX: Final = WORK_MAX
NO_END: Final = 1 << 60


class LongWork(Exception):
    """Whoever evaluates, or checks, wants to be interrupted by now. It is no error of the expression, which has to be
    evaluated again, by somebody with more time."""


class WorkBudget:
    """What is left for the evaluation that is under way. There is one at a time: expressions are not evaluated in
    several threads."""

    def __init__(self) -> None:
        self._left = WORK_MAX
        self.small: int | None = None
        """What an evaluation may take by now, if that is less than usual."""
        self._stop_at: int | None = None
        self.spent_in_all = 0
        """Since the process began: who wants to know what something took asks before and after it."""
        self.lists: list[list[Value]] = []
        """The lists that loops of this evaluation are making, by their number."""

    def begin(self, given: int = 0) -> None:
        """Another evaluation, on data that it takes so much work to hand over. Whoever waits for it is interrupted by
        that as by any other work. The budget of a flow's expressions is for what they do with the data: how much of it
        there is decides nothing. Only an evaluation that may take less pays for its data too."""
        self.spent_in_all += given
        self._left = min(WORK_MAX if self.small is None else self.small - given, self.room)
        self.lists = []

    @property
    def _most(self) -> int:
        return WORK_MAX if self.small is None else self.small

    @property
    def room(self) -> int:
        """What may be done before it is to be interrupted; negative if it should have been already."""
        return self._stop_at - self.spent_in_all if self._stop_at is not None else NO_END

    @property
    def is_spent(self) -> bool:
        return self._left < 0

    def spend(self, amount: int) -> None:
        self._left -= amount
        self.spent_in_all += amount
        if self._left < 0:
            raise too_much_work(self._most)

    def spent_elsewhere(self, amount: int) -> None:
        """Count the work of an evaluation that has a budget of its own."""
        self.spent_in_all += amount

    def demand_time(self, units: int) -> None:
        """Something has to be done first that takes so long and is no work of any evaluation: whoever wants to be
        interrupted is. Where nobody does, it counts for nothing."""
        if self._stop_at is not None:
            self._stop_at -= units
            if self.room < 0:
                raise LongWork

    def ended(self, text: str) -> Exception:
        """Why an evaluation that has spent its budget gives nothing."""
        if self._stop_at is not None and self.spent_in_all > self._stop_at:
            return LongWork()
        return ExpressionError(f"`{text:.200}`: {too_much_work(self._most).message}")

    @contextmanager
    def of_at_most(self, units: int) -> Iterator[None]:
        """Each evaluation, of XPath too, may take so much at most. What is replayed from a journal is never bounded by
        this: it would give something else than it gave."""
        before, self.small = self.small, min(units, WORK_MAX)
        try:
            yield
        finally:
            self.small = before

    def interrupted_after(self, units: int) -> AbstractContextManager[None]:
        """Raise LongWork in the evaluation in which so much work has been done, all of them taken together."""
        return _Interruption(self, units)


class _Interruption:
    """A class, not a generator: each event of a case is applied within one."""

    __slots__ = ("_before", "_budget", "_units")

    def __init__(self, budget: WorkBudget, units: int) -> None:
        self._budget = budget
        self._units = units
        self._before: int | None = None

    def __enter__(self) -> None:
        budget = self._budget
        self._before, budget._stop_at = budget._stop_at, budget.spent_in_all + self._units

    def __exit__(self, *raised: object) -> None:
        self._budget._stop_at = self._before


def too_much_work(most: int = WORK_MAX) -> ExpressionError:
    return ExpressionError(
        f"it takes too much work: more than {most:,} units, where one is an element that is looked at or made, or"
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


def handed_over(data: Value) -> int:
    """The work of giving data to the library, which takes a copy. Most is small, and counts for nothing."""
    parts, waiting = 0, [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (list, dict)):
            parts += len(part)
            if parts > PARTS_MAX:
                break
            waiting += part.values() if isinstance(part, dict) else part
    return parts if parts > PARTS_FREE else 0


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
