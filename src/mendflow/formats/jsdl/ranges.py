"""JSDL ranges: alternatives of exact numbers, numbers with a tolerance, and intervals. A job gets one amount: the
smallest that all its ranges allow."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.reader import JsdlReader, local

PARTS = {"UpperBoundedRange": 1, "LowerBoundedRange": 1, "Exact": 1 << 30, "Range": 1 << 30}


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """From `low` to `high`, with or without the ends. `best` is what was named, if one number was."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    best: float | None = None

    def __contains__(self, number: float) -> bool:
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return above and below

    def whole(self) -> Iterator[int]:
        """Whole numbers worth trying, the one that is wanted most first."""
        if self.best is not None and self.best == int(self.best):
            yield int(self.best)
        if math.isfinite(self.low):
            least = math.ceil(self.low)
            yield least + 1 if self.low_open and least == self.low else least
        if math.isfinite(self.high):
            most = math.floor(self.high)
            yield most - 1 if self.high_open and most == self.high else most


Range = tuple[Interval, ...]
"""The alternatives: any of them will do."""


def contains(ranges: Sequence[Range], number: float) -> bool:
    """Whether a number is in all ranges."""
    return all(any(number in each for each in alternatives) for alternatives in ranges)


def choose_amount(ranges: Sequence[Range], usual: int | None = None) -> int | None:
    """The amount that a job gets: the usual one if it will do, else the least of those that were named; None if no
    number from 1 on will do."""
    if usual is not None and contains(ranges, usual):
        return usual
    candidates = []
    for alternatives in ranges:
        for interval in alternatives:
            fitting = (each for each in interval.whole() if each >= 1 and contains(ranges, each))
            candidates += [first] if (first := next(fitting, None)) is not None else []
    return min(candidates, default=None)


def range_of(reader: JsdlReader, at: ParsedElement) -> Range | None:
    """What an element says; None if it says nothing that can be."""
    reader.attributes(at)
    before = len(reader.problems)
    parts = reader.parts(at, PARTS)
    found = [interval for name in PARTS for part in parts.get(name, []) if (interval := _interval(reader, part))]
    if not found and len(reader.problems) == before:
        reader.problem(at, f"<{local(at)}> says no amount: give it an <Exact>, a <LowerBoundedRange> or a <Range>")
    return tuple(found) if found and len(reader.problems) == before else None


def _interval(reader: JsdlReader, at: ParsedElement) -> Interval | None:
    match local(at):
        case "Exact":
            return _exact(reader, at)
        case "UpperBoundedRange":
            high, high_open = _bound(reader, at)
            return Interval(high=high, high_open=high_open) if high is not None else None
        case "LowerBoundedRange":
            low, low_open = _bound(reader, at)
            return Interval(low=low, low_open=low_open) if low is not None else None
        case _:
            return _between(reader, at)


def _exact(reader: JsdlReader, at: ParsedElement) -> Interval | None:
    number = reader.number(at, "epsilon")
    text = reader.attributes(at, "epsilon").get("epsilon", "0")
    epsilon = reader.as_number(at, text)
    if number is None or epsilon is None:
        return None
    if epsilon < 0 or not math.isfinite(number):
        reader.problem(at, "<Exact> is a number, and its epsilon one from 0 on")
        return None
    return Interval(low=number - epsilon, high=number + epsilon, best=number)


def _between(reader: JsdlReader, at: ParsedElement) -> Interval | None:
    reader.attributes(at)
    parts = reader.parts(at, {"LowerBound": 1, "UpperBound": 1})
    if set(parts) != {"LowerBound", "UpperBound"}:
        reader.problem(at, "a <Range> has a <LowerBound> and an <UpperBound>")
        return None
    low, low_open = _bound(reader, parts["LowerBound"][0])
    high, high_open = _bound(reader, parts["UpperBound"][0])
    if low is None or high is None:
        return None
    if low > high or (low == high and (low_open or high_open)):
        reader.problem(at, "nothing lies in this <Range>: its lower bound is above its upper one")
        return None
    return Interval(low=low, high=high, low_open=low_open, high_open=high_open)


def _bound(reader: JsdlReader, at: ParsedElement) -> tuple[float | None, bool]:
    number = reader.number(at, "exclusiveBound")
    text = reader.attributes(at, "exclusiveBound").get("exclusiveBound", "false").strip()
    if text not in ("true", "false", "0", "1"):
        reader.problem(at, "exclusiveBound is true or false")
    return number, text in ("true", "1")
