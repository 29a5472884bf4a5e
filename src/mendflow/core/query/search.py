"""A search: a condition in CEL, and the part of it that a store can answer.

The conjuncts that compare a stored field with a constant become requirements: every document that satisfies the
condition satisfies them too. A store returns the documents that satisfy the requirements, and the condition is
evaluated on each. So the answer is CEL's own on every store, however little of it the store supports; the requirements
only save work."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mendflow.core.expressions.cel import closest_name
from mendflow.core.expressions.cel_parser import (
    Constant,
    ListLiteral,
    MemberPath,
    Operator,
    Tree,
    conjuncts,
    parse,
    parts_in,
)
from mendflow.core.expressions.conditions import Condition, KnownValues, compares_exactly, condition_flaw
from mendflow.core.expressions.kinds import kind_of
from mendflow.core.expressions.scanner import Reference, scan
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value
from mendflow.core.query.literals import refuse, replace_amounts
from mendflow.core.query.search_fields import KIND_WORDS, Kind, SearchField, SearchFields

OPS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
REVERSED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
RELATIONS: Final = frozenset(REVERSED)
NO_ANSWER: Final = frozenset({"+", "-", "*", "/", "%", "negative", "size", "lowerAscii", "upperAscii"})
REQUIREMENT_LEVELS: Final = 2
"""Deeper fields are not sent to a store: some index only the part of a document near its root."""


class Requirement(NamedTuple):
    """What a document must have to be found. `op` is one of eq ne lt le gt ge in."""

    field: str
    op: str
    value: Value


class Search:
    """`text` may be empty, and then finds everything. `ago` counts from `now`."""

    def __init__(self, words: SearchFields, text: str, now: Instant) -> None:
        self.words = words
        self.text = text
        self.needs: tuple[Requirement, ...] = ()
        self._condition: Condition | None = None
        if not text.strip():
            return
        plain = _Reader(words, text, now).plain()
        self._condition = Condition(plain)
        tree = parse(plain)
        self.needs = tuple(_requirements(words, tree)) if tree is not None else ()

    def holds(self, data: Mapping[str, Value]) -> bool:
        """Whether a document satisfies the condition. What cannot be evaluated for it, such as the order of null and a
        number, counts as false; a condition that is not a boolean is an error."""
        if self._condition is None:
            return True
        held, why = self._condition.holds(KnownValues(lambda root: self.words.value(data, root)))
        if why.endswith("a condition must give true or false"):
            refuse(f"{why}, such as attempts > 2")
        return held


class _Reader:
    """Parses the text of a search, and refuses invalid ones."""

    def __init__(self, words: SearchFields, text: str, now: Instant) -> None:
        self._words = words
        self._text = text
        self._now = now

    def plain(self) -> str:
        """The same condition in plain CEL."""
        read = replace_amounts(self._words, self._text, self._now)
        written = read.text
        if (flaw := condition_flaw(written)) is not None:
            refuse(flaw.message, None if flaw.offset is None else read.original(flaw.offset) + 1)
        for reference in scan(self._text).references:
            self._demand_known(reference)
        tree = parse(written)
        if tree is not None:
            self._demand_kinds(tree)
        return written

    # Names

    def _demand_known(self, reference: Reference) -> None:
        root, members, place = reference.name, reference.members, reference.offset + 1
        if root in self._words.groups:
            known = [each.name for each in self._words.groups[root]]
            if members and f"{root}.{members[0]}" not in known:
                name = f"{root}.{members[0]}"
                refuse(f"there is no name `{name}`{_suggestion(name, known)}", place)
        elif root not in self._words.names:
            refuse(f"there is no name `{root}`{_suggestion(root, list(self._words.names))}", place)
        elif members and self._words.names[root].kind != "data":
            refuse(f"`{root}` is {KIND_WORDS[self._words.names[root].kind]}, and has no `{members[0]}`", place)

    def _place(self, name: str) -> int | None:
        at = self._text.find(name)
        return at + 1 if at >= 0 else None

    # Kinds

    def _demand_kinds(self, tree: Tree) -> None:
        name = self._name(tree)
        if isinstance(tree, ListLiteral) or (isinstance(tree, Operator) and tree.do in NO_ANSWER):
            refuse("it does not give true or false; compare it with something, such as attempts > 2")
        if name is not None and name.kind not in ("truth", "data"):
            refuse(
                f"`{name.name}` is {KIND_WORDS[name.kind]}, which is neither true nor false; compare it with something",
                self._place(name.name),
            )
        for each in parts_in(tree):
            if isinstance(each, Operator) and len(each.parts) == 2:
                self._demand_alike(each.do, *each.parts)

    def _demand_alike(self, do: str, first: Tree, second: Tree) -> None:
        name = self._name(first) or self._name(second)
        others: list[Tree] = [second if self._name(first) is not None else first]
        if do == "in" and isinstance(second, ListLiteral):
            others = list(second.parts)
        elif do not in RELATIONS:
            return
        for other in others:
            if name is None or not isinstance(other, Constant):
                continue
            fits = _fits(name.kind, other.value) or (other.value is None and do in ("==", "!=", "in"))
            if not fits:
                shown = repr(other.value) if isinstance(other.value, str) else kind_of(other.value)
                wanted = KIND_WORDS[name.kind]
                refuse(f"`{name.name}` is {wanted}, and cannot be compared with {shown}", self._place(name.name))

    def _name(self, tree: Tree) -> SearchField | None:
        if isinstance(tree, Operator) and tree.do == "()":
            return self._name(tree.parts[0])
        return self._words.names.get(tree.name) if isinstance(tree, MemberPath) else None


def _suggestion(name: str, known: list[str]) -> str:
    return closest_name(name, known) or f"; known are {', '.join(known)}"


def _fits(kind: Kind, value: Value) -> bool:
    if kind == "data":
        return True
    if kind == "truth":
        return isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _requirements(words: SearchFields, tree: Tree) -> list[Requirement]:
    found: list[Requirement] = []
    for each in conjuncts(tree):
        match each:
            case Operator("==" | "!=" | "<" | "<=" | ">" | ">=" as do, (MemberPath() as path, Constant(value))):
                found += _requirements_of_test(words, path, do, [value])
            case Operator("==" | "!=" | "<" | "<=" | ">" | ">=" as do, (Constant(value), MemberPath() as path)):
                found += _requirements_of_test(words, path, REVERSED[do], [value])
            case Operator("in", (MemberPath() as path, ListLiteral(listed))) if all(
                isinstance(part, Constant) for part in listed
            ):
                found += _requirements_of_test(
                    words, path, "==", [part.value for part in listed if isinstance(part, Constant)]
                )
    return found


def _requirements_of_test(words: SearchFields, path: MemberPath, do: str, constants: list[Value]) -> list[Requirement]:
    name = words.names.get(path.name)
    if name is None or not all(map(compares_exactly, constants)):
        return []
    if do == "==" and name.only and None not in constants:
        return [Requirement(words.state, "in", list(name.only))]
    if not name.field or name.kind in ("data", "truth") or len(name.field.split(".")) > REQUIREMENT_LEVELS:
        return []
    if do == "==":
        return [_equality_requirement(name, constants)]
    if do == "!=":
        return (
            []
            if name.indexed_as or name.default is not None or name.kind == "time"
            else [Requirement(name.field, "ne", *constants)]
        )
    return _order_requirements(name, do, constants[0])


def _equality_requirement(name: SearchField, constants: list[Value]) -> Requirement:
    """Also searches for what documents omit, or store as 0 for none."""
    wanted = [
        *constants,
        *(more for each in constants if isinstance(each, str) for more in name.indexed_as.get(each, ())),
    ]
    if name.default in constants:
        wanted += [None, *([0] if name.kind == "time" else [])]
    unique = [each for place, each in enumerate(wanted) if each not in wanted[:place]]
    return Requirement(name.field, "eq", unique[0]) if len(unique) == 1 else Requirement(name.field, "in", unique)


def _order_requirements(name: SearchField, do: str, value: Value) -> list[Requirement]:
    """Numbers only: some stores order long texts by their beginning. Omitted values must be found too, which an order
    of stored values does not do."""
    if isinstance(value, str) or value is None:
        return []
    usual = name.default
    if isinstance(usual, int | float) and {"<": usual < value, "<=": usual <= value, ">": usual > value}.get(
        do, usual >= value
    ):
        return []
    return [Requirement(name.field, OPS[do], value)]
