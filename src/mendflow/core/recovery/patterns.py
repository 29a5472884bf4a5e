"""Patterns as data: how conversations run, and what can be done when they fail.

A job-flow pattern is a sequence of messages in a small language: words, `?` for optional, `*` for any number, `+` for
at least one, `( a | b )` for alternatives. A running conversation follows a pattern as long as it can still be
completed to a match; this is tracked by a nondeterministic automaton. A fault pattern names a repair that rules can
conclude, and says what it does."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow, Input, PrimitiveStep, Scope
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import Primitive
from mendflow.core.model.values import Value
from mendflow.core.recovery.conversation import REPAIR_MESSAGES, ConversationMessage
from mendflow.lazy import lazy_pattern

WORDS_MAX = 100
_TOKEN: Final = lazy_pattern(r"\s*([a-z][a-z-]*|[()|?*+])")
_ROOTS: Final = ("case", "fault", "item", "job")
_MARKS: Final = frozenset("?*+")
_KNOWN_MESSAGES: Final = frozenset(message.value for message in ConversationMessage if message not in REPAIR_MESSAGES)


class JobPattern(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kind of conversation, as a pattern of messages."""

    name: str
    messages: str
    note: str = ""


class FaultPattern(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named repair: its primitive with settings, and a description. `at` are the phases in which it applies; empty
    means any."""

    name: str
    does: str
    do: Primitive
    settings: dict[str, Value] = {}
    at: tuple[str, ...] = ()


class Patterns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The repository. A new pattern replaces one of the same name."""

    conversations: tuple[JobPattern, ...] = ()
    repairs: tuple[FaultPattern, ...] = ()

    def with_more(self, more: "Patterns") -> "Patterns":
        return Patterns(_merged(self.conversations, more.conversations), _merged(self.repairs, more.repairs))

    def repair(self, name: str) -> FaultPattern | None:
        return next((each for each in self.repairs if each.name == name), None)


NO_PATTERNS: Final = Patterns()


def exlet_of(pattern: FaultPattern) -> Flow:
    """The exlet of a fault pattern: its one primitive, with the data of the failure."""
    step = PrimitiveStep(name=pattern.name, do=pattern.do, settings=pattern.settings)
    seen = {root: f"${{{{ has(inputs.context.{root}) ? inputs.context.{root} : null }}}}" for root in _ROOTS}
    return Flow(
        name=FlowName(pattern.name),
        exlet=True,
        description=pattern.does,
        inputs={"context": Input(type="map", required=True)},
        body=Scope(name=f"{pattern.name}.exlet", variables=seen, body=step) if pattern.settings else step,
    )


def match_pattern(patterns: Patterns, messages: Sequence[ConversationMessage]) -> str:
    """The name of the pattern that a conversation follows: the first that it matches, else the only one that it may
    still match; empty if there is none, or more than one."""
    heard = tuple(message.value for message in messages if message not in REPAIR_MESSAGES)
    possible = []
    for pattern in patterns.conversations:
        places, machine = _follow(pattern.messages, heard)
        if machine.end in places:
            return pattern.name
        if places:
            possible.append(pattern.name)
    return possible[0] if len(possible) == 1 else ""


def check_pattern(messages: str) -> str:
    """Empty, or what is wrong with a pattern."""
    try:
        _machine(messages)
    except InvalidRequest as problem:
        return problem.message
    return ""


class _Machine:
    """An automaton: states and transitions, by a word or empty."""

    def __init__(self) -> None:
        self.words: list[dict[str, set[int]]] = []
        self.empty: list[set[int]] = []
        self.start = self.place()
        self.end = self.start

    def place(self) -> int:
        self.words.append({})
        self.empty.append(set())
        return len(self.words) - 1

    def reached(self, places: Iterable[int]) -> frozenset[int]:
        """All states that are reachable without a word."""
        pending, found = list(places), set(places)
        while pending:
            for each in self.empty[pending.pop()] - found:
                found.add(each)
                pending.append(each)
        return frozenset(found)


class _Reader:
    """Compiles a pattern. Every part becomes a pair of states: its start and its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.machine = _Machine()

    def read(self) -> _Machine:
        machine = self.machine
        first, last = self._either()
        if self.tokens:
            raise InvalidRequest(
                f"the pattern {self.text!r} has {self.tokens[-1]!r} where nothing opens it", field="messages"
            )
        machine.empty[machine.start].add(first)
        machine.end = last
        return machine

    def _either(self) -> tuple[int, int]:
        first, last = self._sequence()
        while self.tokens and self.tokens[-1] == "|":
            self.tokens.pop()
            begin, end, other = self.machine.place(), self.machine.place(), self._sequence()
            self.machine.empty[begin] |= {first, other[0]}
            self.machine.empty[last].add(end)
            self.machine.empty[other[1]].add(end)
            first, last = begin, end
        return first, last

    def _sequence(self) -> tuple[int, int]:
        first = last = self.machine.place()
        while self.tokens and self.tokens[-1] not in "|)":
            begin, end = self._repeated()
            self.machine.empty[last].add(begin)
            last = end
        if first == last:
            raise InvalidRequest(f"the pattern {self.text!r} lacks a message where one must stand", field="messages")
        return first, last

    def _repeated(self) -> tuple[int, int]:
        first, last = self._one()
        while self.tokens and self.tokens[-1] in _MARKS:
            mark = self.tokens.pop()
            if mark in "?*":
                self.machine.empty[first].add(last)
            if mark in "*+":
                self.machine.empty[last].add(first)
        return first, last

    def _one(self) -> tuple[int, int]:
        token = self.tokens.pop()
        if token == "(":
            inner = self._either()
            if not self.tokens or self.tokens.pop() != ")":
                raise InvalidRequest(f"the pattern {self.text!r} lacks a closing bracket", field="messages")
            return inner
        if token not in _KNOWN_MESSAGES:
            known = ", ".join(sorted(_KNOWN_MESSAGES))
            raise InvalidRequest(
                f"{token!r} in the pattern {self.text!r} is no message; they are: {known}", field="messages"
            )
        first, last = self.machine.place(), self.machine.place()
        self.machine.words[first][token] = {last}
        return first, last


@lru_cache(maxsize=256)
def _machine(messages: str) -> _Machine:
    return _Reader(messages).read()


@lru_cache(maxsize=4096)
def _follow(messages: str, heard: tuple[str, ...]) -> tuple[frozenset[int], _Machine]:
    machine = _machine(messages)
    places = machine.reached({machine.start})
    for word in heard:
        places = machine.reached({to for place in places for to in machine.words[place].get(word, ())})
    return places, machine


def _tokens(text: str) -> list[str]:
    """The tokens of a pattern, the last first."""
    tokens, at, text = [], 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidRequest(
                f"the pattern {text!r} cannot be read from {text[at : at + 20]!r} on", field="messages"
            )
        tokens.append(found[1])
        at = found.end()
    if len(tokens) > WORDS_MAX:
        raise InvalidRequest(f"a pattern has at most {WORDS_MAX} words and marks", field="messages")
    return tokens[::-1]


def _merged(before: tuple[Value, ...], more: tuple[Value, ...]) -> tuple[Value, ...]:
    by_name = {each.name: each for each in before}
    by_name.update({each.name: each for each in more})
    return tuple(by_name.values())
