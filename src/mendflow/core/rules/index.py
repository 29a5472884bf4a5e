"""Finds which rules of a long row can hold, without evaluating each.

Most conditions of a wide tree compare a path with a constant. A rule is indexed by one such comparison: equalities by
hash, thresholds in a tree of minima. A rule that is not found cannot hold, because one false part makes a conjunction
false, and an error never makes it true. The order of the rules is kept."""

import heapq
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mendflow.core.expressions.cel_evaluator import NeedsLibrary
from mendflow.core.expressions.cel_parser import MemberPath
from mendflow.core.expressions.conditions import KnownValues, PathTest
from mendflow.core.model.values import Value

INDEX_MIN: Final = 8
"""A shorter row is evaluated rule by rule."""

PATHS_MAX: Final = 16
"""Each indexed path costs a lookup in every evaluation."""

COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def key(value: Value) -> Value:
    """True equals 1 in Python, and not in CEL."""
    return (value,) if type(value) is bool else value


class EqualityIndex:
    """Positions by the constant that the path must equal."""

    def __init__(self, path: MemberPath) -> None:
        self.path = path
        self.places: dict[Value, list[int]] = defaultdict(list)
        self.first = -1

    def add(self, place: int, constants: Sequence[Value]) -> None:
        self.first = place if self.first < 0 else self.first
        for constant in dict.fromkeys(map(key, constants)):
            self.places[constant].append(place)

    def ready(self) -> None:
        self.places = dict(self.places)

    def matching(self, value: Value) -> Sequence[int]:
        return self.places.get(key(value), ()) if type(value) not in (list, dict) else ()


class ThresholdIndex:
    """Positions by the number that the path must be above or below. `least` is a heap-shaped tree: each node holds the
    threshold below it that is easiest to meet, so the next match is found in a few steps."""

    def __init__(self, path: MemberPath, do: str) -> None:
        self.path = path
        self.met = COMPARE[do]
        self.easier: Callable[[float, float], float] = max if do.startswith("<") else min
        self.places: list[int] = []
        self.limits: list[float] = []
        self.least: list[float | None] = []
        self.first = -1

    def add(self, place: int, constants: Sequence[Value]) -> None:
        self.first = place if self.first < 0 else self.first
        self.places.append(place)
        self.limits.append(constants[0])

    def ready(self) -> None:
        size = 1
        while size < len(self.limits):
            size *= 2
        tree: list[float | None] = [None] * size + [*self.limits] + [None] * (size - len(self.limits))
        for node in range(size - 1, 0, -1):
            left, right = tree[2 * node], tree[2 * node + 1]
            tree[node] = left if right is None or left is None else self.easier(left, right)
        self.least = tree

    def matching(self, value: Value) -> Iterator[int]:
        if type(value) is not int and type(value) is not float:
            return
        pending, size = [1], len(self.least) // 2
        while pending:
            node = pending.pop()
            limit = self.least[node]
            if limit is None or not self.met(value, limit):
                continue
            if node >= size:
                yield self.places[node - size]
            else:
                pending += (2 * node + 1, 2 * node)


class RuleIndex:
    """Built from a necessary test of each rule of a row. `always` are the rules without one."""

    def __init__(self, rows: Sequence[Sequence[PathTest]]) -> None:
        groups: dict[tuple[str, str], EqualityIndex | ThresholdIndex] = {}
        self.always: list[int] = []
        for place, test in enumerate(choose_tests(rows)):
            if test is None:
                self.always.append(place)
                continue
            name = (test.path.name, test.do)
            if name not in groups:
                groups[name] = EqualityIndex(test.path) if test.do == "==" else ThresholdIndex(test.path, test.do)
            groups[name].add(place, test.constants)
        self.groups = list(groups.values())
        for group in self.groups:
            group.ready()

    def places(self, known: KnownValues) -> Iterator[int]:
        """The positions of the rules that may hold, in order; and for each group whose path is missing its first rule,
        so that the missing path is reported."""
        found: list[Sequence[int] | Iterator[int]] = [self.always] if self.always else []
        for group in self.groups:
            name = group.path.name
            try:
                if name not in known.read:
                    known.look(group.path)
            except NeedsLibrary:
                found.append((group.first,))
                continue
            if name in known.values:
                matching = group.matching(known.values[name])
                if matching:
                    found.append(matching)
            else:
                found.append((group.first,))
        return iter(found[0]) if len(found) == 1 else heapq.merge(*found)


def choose_tests(rows: Sequence[Sequence[PathTest]]) -> list[PathTest | None]:
    """The test that each rule is indexed by: an equality that few others share, else a threshold."""
    shared = Counter(
        (test.path.name, key(one)) for tests in rows for test in tests if test.do == "==" for one in test.constants
    )
    asked = Counter(name for tests in rows for name in {(test.path.name, test.do) for test in tests})
    common = {name for name, _ in asked.most_common(PATHS_MAX)}

    def cost(test: PathTest) -> tuple[float, int]:
        many = sum(shared[test.path.name, key(one)] for one in test.constants) if test.do == "==" else len(rows) / 2
        return many, -asked[test.path.name, test.do]

    usable = ([test for test in tests if (test.path.name, test.do) in common] for tests in rows)
    return [min(tests, key=cost) if tests else None for tests in usable]
