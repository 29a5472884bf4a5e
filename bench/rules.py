"""How many conclusions a second a tree of ten thousand rules gives, each with its trail: `python -m bench.rules`.

The shapes are those that trees grow into, and those that they should not: alternatives that an index finds, refinements
that halve what is left, both at once, and rows of which nothing can be told beforehand, so that every rule is asked.
What is measured is a core's time from a context to a conclusion, whoever else has its turn meanwhile; no context is
asked twice in a row."""

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.values import Value
from mendflow.core.rules import compile_rules, context_lookup

RULES = 10_000
WANTED_PER_S = 20_000
CONTEXTS = 1_000
SECONDS = 1.5
TYPE = ExceptionType.ABORT
WORDS = ("memory", "disk", "node", "network", "licence", "queue", "input", "signal")


class RuleTreeShape(NamedTuple):
    """`told` says whether it must be fast: an index or the tree itself spares most rules."""

    make: Callable[[int], RuleTree]
    is_indexed: bool
    about: str


def row(conditions: list[str]) -> RuleTree:
    last = len(conditions) - 1
    rules = {
        id: Rule(id=id, condition=condition, exlet=f"exlet-{id % 50}", on_false=id + 1 if id < last else None)
        for id, condition in enumerate(conditions)
    }
    return RuleTree(rules)


def wide_equal(count: int) -> RuleTree:
    return row([f'fault.type == "type-{id}" && job.attempts < 3' for id in range(count)])


def wide_codes(count: int) -> RuleTree:
    return row([f'job.exit_code == {id % 256} && job.site in ["site-{id // 256}", "site-x"]' for id in range(count)])


def wide_thresholds(count: int) -> RuleTree:
    return row([f"job.memory_bytes >= {(count - id) << 20}" for id in range(count)])


def wide_mixed(count: int) -> RuleTree:
    """Ninety-nine of a hundred can be told from a constant."""
    plain = [f'fault.type == "type-{id}"' for id in range(count)]
    return row([f'fault.message.contains("{id:06}")' if id % 100 == 0 else each for id, each in enumerate(plain)])


def deep(count: int) -> RuleTree:
    """Each rule halves what the one before left; a conclusion asks as many as the tree has levels."""
    rules: dict[int, Rule] = {}

    def grow(low: int, high: int) -> int | None:
        if low >= high or len(rules) >= count:
            return None
        id, middle = len(rules), (low + high) // 2
        rules[id] = Rule(id=id, condition="")
        then, otherwise = grow(middle + 1, high), grow(low, middle)
        condition = f"job.memory_bytes >= {middle << 20}"
        rules[id] = Rule(id=id, condition=condition, exlet=f"exlet-{id % 50}", on_true=then, on_false=otherwise)
        return id

    grow(0, count)
    return RuleTree(rules)


def grown(count: int) -> RuleTree:
    """As trees grow: causes, below each some sites, below each some numbers of attempts and words of messages."""
    rules: dict[int, Rule] = {}

    def add(conditions: list[str], below: Callable[[int], int | None]) -> int:
        first = len(rules)
        ids = []
        for place, condition in enumerate(conditions):
            id = len(rules)
            ids.append(id)
            rules[id] = Rule(id=id, condition=condition, exlet=f"exlet-{id % 50}")
            rules[id] = Rule(id=id, condition=condition, exlet=f"exlet-{id % 50}", on_true=below(place))
        for id, following in pairwise(ids):
            rule = rules[id]
            rules[id] = Rule(
                id=id, condition=rule.condition, exlet=rule.exlet, on_true=rule.on_true, on_false=following
            )
        return first

    def words(_: int) -> int:
        return add([f'fault.message.contains("{word}")' for word in WORDS[:4]] + ["job.attempts > 3"], lambda _: None)

    def sites(_: int) -> int:
        return add([f'job.site == "site-{site}" && job.attempts < {site + 5}' for site in range(4)], words)

    add([f'fault.type == "type-{cause}" && fault.recoverable' for cause in range(count // 25)], sites)
    return RuleTree(rules)


def untold(count: int) -> RuleTree:
    """Nothing in a condition says beforehand that it will not hold."""
    return row([f'fault.message.contains("{id:06}") || job.attempts > {100 + id}' for id in range(count)])


def by_library(count: int) -> RuleTree:
    """What only the library evaluates."""
    return row([f'fault.message.matches("error {id:06}$")' for id in range(count)])


SHAPES: dict[str, RuleTreeShape] = {
    "wide, by cause": RuleTreeShape(wide_equal, True, "10,000 alternatives, each for one type of fault"),
    "wide, by exit code and site": RuleTreeShape(wide_codes, True, "two equalities each, one of them with a list"),
    "wide, by threshold": RuleTreeShape(wide_thresholds, True, "alternatives that ask for ever less memory"),
    "wide, some untold": RuleTreeShape(wide_mixed, True, "one condition in a hundred searches a text"),
    "deep": RuleTreeShape(deep, True, "refinements and alternatives that halve what is left"),
    "grown": RuleTreeShape(grown, True, "causes, then sites, then words and attempts"),
    "wide, nothing told": RuleTreeShape(untold, False, "every alternative is asked"),
    "wide, by the library": RuleTreeShape(by_library, False, "every alternative is asked, by the library"),
}


def contexts(count: int) -> list[dict[str, Value]]:
    dice = random.Random(11)
    found: list[dict[str, Value]] = []
    for _ in range(CONTEXTS):
        cause = dice.randrange(count if dice.random() < 0.5 else max(1, count // 25))
        found.append(
            {
                "fault": {
                    "type": f"type-{cause}",
                    "recoverable": True,
                    "message": f"{dice.choice(WORDS)} went wrong: error {dice.randrange(count):06}",
                },
                "job": {
                    "attempts": dice.randrange(6),
                    "exit_code": dice.randrange(256),
                    "site": f"site-{dice.randrange(4)}",
                    "memory_bytes": dice.randrange(count) << 20,
                },
                "case": {"data": {"samples": dice.randrange(1000)}},
            }
        )
    return found


def shape(tree: RuleTree, count: int) -> dict[str, float]:
    rules = compile_rules(RuleSet(name="bench", trees={TYPE: {DEFAULT_RULES: tree}}))
    began = time.thread_time()
    rules.chain(TYPE, DEFAULT_RULES)
    ready_ms = (time.thread_time() - began) * 1e3
    lookups = [context_lookup(context) for context in contexts(count)]
    verdicts = [rules.judge(TYPE, "task", lookup) for lookup in lookups[:20]]
    gc.collect()
    gc.freeze()
    done, began = 0, time.thread_time()
    while (took := time.thread_time() - began) < SECONDS:
        for lookup in lookups[: 200 if took else 20]:
            rules.judge(TYPE, "task", lookup)
            done += 1
            if done % 20 == 0 and time.thread_time() - began > 2 * SECONDS:
                break
    took = time.thread_time() - began
    gc.unfreeze()
    concluded = [verdict.conclusion for verdict in verdicts if verdict.conclusion is not None]
    return {
        "rules": len(tree.rules),
        "per_s": round(done / took),
        "us": round(took / done * 1e6, 1),
        "ready_ms": round(ready_ms),
        "lines": round(mean(len(each.trail) for each in concluded), 1) if concluded else 0,
        "on_the_way": round(mean(len(each.trail) + each.others for each in concluded)) if concluded else 0,
    }


def measure(count: int = RULES) -> dict[str, object]:
    shapes = {name: shape(each.make(count), count) for name, each in SHAPES.items()}
    return {
        "rules": count,
        "per_s": min(shapes[name]["per_s"] for name, each in SHAPES.items() if each.is_indexed),
        "shapes": shapes,
    }


def table(measured: dict[str, object]) -> str:
    shapes = measured["shapes"]
    assert isinstance(shapes, dict)
    lines = [
        f"{'shape':<29}{'rules':>7}{'conclusions/s':>15}{'us':>10}{'trail':>7}{'on the way':>12}{'compile ms':>13}"
    ]
    for name, found in shapes.items():
        lines.append(
            f"{name:<29}{found['rules']:>7,}{found['per_s']:>15,}{found['us']:>10,}{found['lines']:>7}"
            f"{found['on_the_way']:>12,}{found['ready_ms']:>13,}"
        )
    lines += ["", *(f"{name}: {each.about}" for name, each in SHAPES.items())]
    lines.append(f"slowest of those that need not ask every rule: {measured['per_s']:,}/s (wanted: {WANTED_PER_S:,})")
    return "\n".join(lines)


if __name__ == "__main__":
    figures = measure(int(sys.argv[1]) if len(sys.argv) > 1 else RULES)
    print(json.dumps(figures) if "--json" in sys.argv else table(figures))
