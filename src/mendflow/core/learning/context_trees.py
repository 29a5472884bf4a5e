"""Decision trees over the paths of contexts: which conditions tell some failures from others.

A test is a condition as rules have them, made from a value that a context has, and it is evaluated exactly as a rule
would evaluate it. A tree is grown greedily: at each node the test that separates best, by the impurity that it leaves;
of equally good ones, the one that says most about the cause. What a person reads is the conjunction on the way to a
leaf."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.expressions.conditions import KnownValues, condition_flaw, condition_of
from mendflow.core.model.values import Value
from mendflow.core.rules.candidates import Candidate, OwnValues, conditions_for, leaves, root_weight
from mendflow.core.rules.evaluation import context_lookup

DEPTH_MAX: Final = 3
TESTS_MAX: Final = 120
CONTEXTS_READ: Final = 12
"""From so many contexts, tests are made; they are evaluated on all."""
GAIN_MIN: Final = 1e-6
READ_ROOTS: Final = frozenset({"fault", "job", "item", "case", "capacity", "site", "pattern"})
"""Roots that say why, where and of what. Counts of the past and the clock are left out: they hold for one moment."""
UNSTABLE: Final = (
    "job.log_tail",
    "case.version",
    "case.depth",
    "fault.retry_",
    "case.age_ms",
    "item.age_ms",
    "job.waiting_ms",
    "job.ran_ms",
    "job.cpu_ms",
    "capacity.",
)
ENVIRONMENT: Final = "item.data"
"""The data of a job has its environment in it, and that may hold secrets: no condition is made from its values."""
STABLE_CAPACITY: Final = ("capacity.domains", "capacity.levels")

Context = Mapping[str, Value]


class ContextSample(msgspec.Struct, frozen=True):
    """A context, and whether it is one of those that are looked for."""

    context: Context
    wanted: bool


class TreeNode(msgspec.Struct):
    """A leaf, or a test with what holds it and what does not. `tests` are the conditions on the way to here."""

    wanted: int
    others: int
    tests: tuple[str, ...] = ()
    test: str = ""
    held: "TreeNode | None" = None
    failed: "TreeNode | None" = None

    def leaves(self) -> "Iterator[TreeNode]":
        if self.held is None or self.failed is None:
            yield self
            return
        yield from self.held.leaves()
        yield from self.failed.leaves()

    @property
    def condition(self) -> str:
        return " && ".join(self.tests)


class _Sample:
    """A sample with the results of the tests that were evaluated on it."""

    def __init__(self, sample: ContextSample) -> None:
        self.wanted = sample.wanted
        self._known = KnownValues(context_lookup(sample.context))
        self._results: dict[str, bool] = {}

    def holds(self, test: str) -> bool:
        if test not in self._results:
            self._results[test] = condition_of(test).holds(self._known)[0]
        return self._results[test]


def grow_tree(samples: Sequence[ContextSample], *, depth: int = DEPTH_MAX, leaf_min: int = 1) -> TreeNode:
    """The tree that separates the wanted samples from the others."""
    tests = tests_from([each.context for each in samples if each.wanted], [each.context for each in samples])
    return _grow([_Sample(each) for each in samples], tests, (), depth, leaf_min)


def _grow(samples: list[_Sample], tests: Sequence[str], path: tuple[str, ...], depth: int, leaf_min: int) -> TreeNode:
    wanted = sum(each.wanted for each in samples)
    node = TreeNode(wanted, len(samples) - wanted, path)
    if not depth or not wanted or not node.others:
        return node
    best, least = "", _impurity(wanted, len(samples)) - GAIN_MIN
    for test in tests:
        held = [each for each in samples if each.holds(test)]
        if min(len(held), len(samples) - len(held)) < leaf_min:
            continue
        left = _impurity(sum(each.wanted for each in held), len(held))
        left += _impurity(wanted - sum(each.wanted for each in held), len(samples) - len(held))
        if left < least - GAIN_MIN:
            best, least = test, left
    if best:
        held = [each for each in samples if each.holds(best)]
        failed = [each for each in samples if not each.holds(best)]
        node.test = best
        node.held = _grow(held, tests, (*path, best), depth - 1, leaf_min)
        node.failed = _grow(failed, tests, (*path, f"!({best})"), depth - 1, leaf_min)
    return node


def _impurity(wanted: int, all: int) -> float:
    """Gini's, times the number of samples."""
    return 2.0 * wanted * (all - wanted) / all if all else 0.0


def tests_from(contexts: Sequence[Context], every: Sequence[Context]) -> list[str]:
    """Conditions that hold for at least one of the contexts, the most telling first."""
    found: dict[str, tuple[int, int, str]] = {}
    flat = [(leaves(context), OwnValues(context)) for context in contexts[:CONTEXTS_READ]]
    numbers = _numbers([leaves(context) for context in every[: 5 * CONTEXTS_READ]])
    for paths, own in flat:
        for path, value in paths.items():
            if not is_telling(path):
                continue
            for rank, test in _tests_on(path, value, numbers.get(path, ()), own.words):
                if own.is_named_by(Candidate(condition=test, path=path)):
                    continue
                if test not in found and condition_flaw(test) is None:
                    found[test] = (root_weight(path), rank, test)
    return sorted(found, key=lambda each: found[each])[:TESTS_MAX]


def _tests_on(path: str, value: Value, numbers: Sequence[float], own: Sequence[str] = ()) -> Iterator[tuple[int, str]]:
    if isinstance(value, list):
        yield 3, f"size({path}) == 0" if not value else f"size({path}) > 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield from conditions_for(path, value, None, own)
        return
    yield from conditions_for(path, value, None)
    for other in numbers:
        if other != value:
            yield from conditions_for(path, value, other)


def _numbers(flat: Sequence[Mapping[str, Value]]) -> dict[str, list[float]]:
    """The values of each path that has numbers: a few of them, from the smallest to the largest."""
    found: dict[str, set[float]] = {}
    for paths in flat:
        for path, value in paths.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and is_telling(path):
                found.setdefault(path, set()).add(value)
    return {path: _few(sorted(values)) for path, values in found.items() if len(values) > 1}


def _few(values: list[float], most: int = 6) -> list[float]:
    step = max(1, len(values) // most)
    return values[::step]


def is_telling(path: str) -> bool:
    """Whether a condition on the path can hold for failures to come."""
    root = path.partition(".")[0].partition("[")[0]
    if path.startswith(STABLE_CAPACITY):
        return True
    return root in READ_ROOTS and not path.startswith((*UNSTABLE, ENVIRONMENT))


def holds_in(condition: str, context: Context) -> bool:
    return condition_of(condition).holds(KnownValues(context_lookup(context)))[0]


def separating_condition(base: str, wanted: Sequence[Context], others: Sequence[Context]) -> str:
    """A condition that holds for all wanted contexts: the base, and as many tests as are needed so that it holds for
    few of the others. The tests are those on the way to the leaf that has most of the wanted."""
    inside = [each for each in wanted if holds_in(base, each)]
    outside = [each for each in others if holds_in(base, each)]
    if not inside or not outside:
        return base
    samples = [*(ContextSample(each, True) for each in inside), *(ContextSample(each, False) for each in outside)]
    best = max(grow_tree(samples).leaves(), key=lambda leaf: (leaf.wanted, -leaf.others))
    if best.wanted < len(inside) or not best.tests:
        return base
    return " && ".join((base, *best.tests))
