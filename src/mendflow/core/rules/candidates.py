"""Proposes conditions that distinguish the case at hand from its neighbour, the most useful first.

Both contexts are flattened to paths with plain values. Where they differ, a condition is proposed that holds here and
not there: an equality, a threshold between two numbers, words that only one text has. Every proposal is evaluated on
both before it is shown."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from mendflow.core.expressions.cel_parser import IDENTIFIER
from mendflow.core.expressions.conditions import KnownValues, condition_flaw, condition_of, shorten_value
from mendflow.core.expressions.scanner import RESERVED_WORDS, WORDS
from mendflow.core.model.values import Value
from mendflow.core.recovery.own_words import has_word, own_places, without_words, words_of_element
from mendflow.core.rules.evaluation import context_lookup
from mendflow.lazy import lazy_pattern

PATHS_MAX: Final = 500
LEVELS_MAX: Final = 6
EVALUATED_MAX: Final = 60
WORD_CHARS_MAX: Final = 60
PHRASE_WORDS_MAX: Final = 4
TEXT_READ_MAX: Final = 5_000
ROOTS_BY_WEIGHT: Final = ("trigger", "fault", "job", "pattern", "data", "item", "case", "site", "history", "capacity")
TELLING_PATHS: Final = frozenset(
    {
        "type",
        "name",
        "category",
        "exit_code",
        "signal",
        "stage",
        "file",
        "recoverable",
        "host",
        "site",
        "domain",
        "task",
    }
)
CODES: Final = frozenset({"exit_code", "signal", "status", "code"})
"""Numbers that are names: a threshold between two of them is meaningless."""

VOLATILE: Final = frozenset(
    {"id", "case", "serial", "now", "at", "age_ms", "sha256", "fence", "pilot", "real", "cursor"}
)
OWN_WEIGHT: Final = 20
"""What is one item's own comes after all else: a rule on it would hold for no other."""

WRITTEN_BY_US: Final = (
    "it ended with exit code",
    "it was ended by signal",
    "its last line",
)
"""Words that a message has because mendflow says how a job ended, whatever the cause."""

WORD: Final = lazy_pattern(r"[^\W_][\w.-]*[^\W_]|[^\W_]")


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition that holds here and not there, and the values that make it so."""

    condition: str
    path: str
    here: Value = None
    there: Value = None


def candidates(context: Mapping[str, Value], neighbour: Mapping[str, Value] | None, most: int = 20) -> list[Candidate]:
    """Conditions that distinguish a case from its neighbour; without a neighbour, characteristic conditions of the case
    itself."""
    here, there = leaves(context), leaves(neighbour) if neighbour is not None else {}
    own = OwnValues(context)
    proposed = sorted(
        proposals(here, there, own.words),
        key=lambda each: (own.is_named_by(each[1]) * OWN_WEIGHT + each[0][0], *each[0][1:]),
    )
    found: dict[str, Candidate] = {}
    for _, candidate in proposed[:EVALUATED_MAX]:
        if candidate.condition not in found and distinguishes(candidate.condition, context, neighbour):
            found[candidate.condition] = candidate
    return list(found.values())[:most]


class OwnValues:
    """What of a context is the item's own: the element of its loop and its place in the list."""

    def __init__(self, context: Mapping[str, Value]) -> None:
        job = context.get("job")
        element = job.get("element") if isinstance(job, dict) else None
        shown = element if isinstance(element, str) else ""
        self.words = words_of_element(shown)
        self._places = own_places(context, shown)

    def is_named_by(self, candidate: Candidate) -> bool:
        """Whether the condition is on a value that no other item has."""
        own = any(candidate.path == each or candidate.path.startswith(f"{each}.name") for each in self._places)
        return own or has_word(candidate.condition.removeprefix(candidate.path), self.words)


def distinguishes(condition: str, context: Mapping[str, Value], neighbour: Mapping[str, Value] | None) -> bool:
    if (
        condition_flaw(condition) is not None
        or not condition_of(condition).holds(KnownValues(context_lookup(context)))[0]
    ):
        return False
    return neighbour is None or not condition_of(condition).holds(KnownValues(context_lookup(neighbour)))[0]


def leaves(context: Mapping[str, Value]) -> dict[str, Value]:
    """Plain values, and lists of them, by path. Unique ones are left out: a condition on the id of a case would hold
    for no other."""
    found: dict[str, Value] = {}
    pending: list[tuple[str, Value, int]] = [(root, value, 1) for root, value in reversed(list(context.items()))]
    while pending and len(found) < PATHS_MAX:
        path, value, level = pending.pop()
        last = path.rpartition(".")[2]
        if isinstance(value, dict):
            if level <= LEVELS_MAX:
                pending += [(member_path(path, key), part, level + 1) for key, part in reversed(list(value.items()))]
        elif last not in VOLATILE and not last.endswith(("_at", "_id")):
            found[path] = value
    return {path: value for path, value in found.items() if path}


def member_path(path: str, key: str) -> str:
    """The path to a member; None if it cannot be written plainly."""
    if not path:
        return ""
    if IDENTIFIER.fullmatch(key) and key not in WORDS | RESERVED_WORDS:
        return f"{path}.{key}"
    return f"{path}['{key}']" if not set(key) & set("'\\\n") else ""


def proposals(
    here: Mapping[str, Value], there: Mapping[str, Value], own: Collection[str] = ()
) -> Iterator[tuple[tuple[int, int, str], Candidate]]:
    for path, value in here.items():
        other = there.get(path)
        if path in there and type(other) is type(value) and other == value:
            continue
        for weight, condition in conditions_for(path, value, other, own):
            shown = Candidate(condition=condition, path=path, here=shorten_value(value), there=shorten_value(other))
            yield (weight + exlet_depth(path), root_weight(path), condition), shown
        if there and path not in there and "." in path:
            yield (
                (6 + exlet_depth(path), root_weight(path), path),
                Candidate(condition=f"has({path})", path=path, here=shorten_value(value)),
            )


def conditions_for(path: str, value: Value, other: Value, own: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Conditions that hold for the value, each with a rank: lower is more useful."""
    last = path.rpartition(".")[2]
    match value:
        case bool() | None:
            yield (1 if value is not None else 5), f"{path} == {json.dumps(value)}"
        case int() | float():
            if last in CODES or not isinstance(other, int | float) or isinstance(other, bool):
                yield (0 if last in TELLING_PATHS else 4), f"{path} == {json.dumps(value)}"
            else:
                yield 2, threshold(path, value, other)
        case str() if value:
            if len(value) <= WORD_CHARS_MAX and "\n" not in value:
                yield (
                    (0 if last in TELLING_PATHS else 2 if len(value.split()) == 1 else 4),
                    f"{path} == {quote_literal(value)}",
                )
            if len(value.split()) > 1 or len(value) > WORD_CHARS_MAX:
                for phrase in phrases(value, other if isinstance(other, str) else "", own):
                    yield 3, f"{path}.contains({quote_literal(phrase)})"
        case list():
            known = other if isinstance(other, list) else []
            for part in value[:5]:
                if isinstance(part, str) and part not in known and len(part) <= WORD_CHARS_MAX:
                    yield 4, f"{quote_literal(part)} in {path}"


def threshold(path: str, value: float, other: float) -> str:
    """A round number between the two values."""
    if value > other:
        return f"{path} >= {json.dumps(between(other, value))}"
    return f"{path} < {json.dumps(between(value, other))}"


def between(low: float, high: float) -> float:
    """The number with the fewest digits that is above `low` and not above `high`."""
    for digits in range(1, 18):
        for number in (rounded(high, digits), rounded((low + high) / 2, digits)):
            if low < number <= high:
                whole = isinstance(low, int) and isinstance(high, int)
                return int(number) if whole and number == int(number) else number
    return high


def rounded(number: float, digits: int) -> float:
    return float(f"{number:.{digits - 1}e}")


def phrases(text: str, other: str, own: Collection[str] = ()) -> list[str]:
    """Sequences of words that only this text has: the longest first, a few words each. A word with digits is usually an
    id, and ranks lower; none goes across what is the item's own, or what mendflow writes."""
    text = without_words(text[:TEXT_READ_MAX], (*WRITTEN_BY_US, *own), "\0")
    known = set(WORD.findall(other.lower()))
    runs: list[list[re.Match[str]]] = [[]]
    for word in WORD.finditer(text):
        usable = word.group().lower() not in known and not any(char.isdigit() for char in word.group())
        joined = runs[-1] and text[runs[-1][-1].end() : word.start()].strip(" ") == ""
        if not usable or not joined or len(runs[-1]) >= PHRASE_WORDS_MAX:
            runs.append([])
        if usable:
            runs[-1].append(word)
    found = dict.fromkeys(text[run[0].start() : run[-1].end()] for run in runs if run)
    return sorted((each for each in found if len(each) >= 4), key=len, reverse=True)[:3]


def quote_literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def root_weight(path: str) -> int:
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    return ROOTS_BY_WEIGHT.index(root) if root in ROOTS_BY_WEIGHT else len(ROOTS_BY_WEIGHT)


def exlet_depth(path: str) -> int:
    """Roots that say why rank before those that say where."""
    return root_weight(path) // 3
