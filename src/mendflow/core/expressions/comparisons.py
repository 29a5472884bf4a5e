"""Comparisons that can never hold, because a text is compared with a number or with true or false.

Scripts leave `found=true` as true and `count=3` as 3, so `found == 'true'` is false whatever the script found. It is no
error, as a value may be a number once and a text another time; so it is told where somebody asks why."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from mendflow.core.expressions.cel import compile_expression, gather
from mendflow.core.expressions.cel_evaluator import NeedsLibrary, evaluator_of
from mendflow.core.expressions.cel_parser import Constant, MemberPath, Operator, Tree, parse, parts_in
from mendflow.core.expressions.contract import ExpressionError, Lookup
from mendflow.core.expressions.kinds import NUMBER, TEXT, YES_OR_NO, kind_of
from mendflow.core.expressions.scanner import RESERVED, quote_family_members, tokenize
from mendflow.core.model.text_data import data_or_text
from mendflow.core.model.values import Value

COMPARED: Final = frozenset({NUMBER, TEXT, YES_OR_NO})
COMPARING: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
NOT_PATHS: Final = RESERVED - {"jobs"}


class TextComparison(NamedTuple):
    """A path that is compared with a constant text, and the data that a script would leave for that text."""

    path: MemberPath
    do: str
    text: str
    data: Value


def tree_of(text: str) -> Tree | None:
    """The tree of an expression of a flow, where names after `jobs.` may have hyphens."""
    quoted, _ = quote_family_members(text)
    pieces = list[str]()
    for token in tokenize(quoted):
        if token.kind == "quoted" and pieces and pieces[-1] == ".":
            pieces[-1] = f"['{token.text.strip('`')}']"
        else:
            pieces.append(token.text)
    return parse("".join(pieces), NOT_PATHS)


def text_comparisons(text: str) -> Iterator[TextComparison]:
    """Where a path is compared with a text that, left by a script, would be a number or true or false."""
    for do, first, second in _equalities(text):
        for path, other in ((first, second), (second, first)):
            if isinstance(path, MemberPath) and isinstance(other, Constant) and isinstance(other.value, str):
                data = data_or_text(other.value)
                if kind_of(data) in (NUMBER, YES_OR_NO):
                    yield TextComparison(path, do, other.value, data)


def compared_with_decimals(text: str) -> Iterator[tuple[MemberPath, float]]:
    """Where a path is compared with a number that has decimals."""
    tree = tree_of(text)
    for part in parts_in(tree) if tree is not None else ():
        if isinstance(part, Operator) and part.do in COMPARING and len(part.parts) == 2:
            for path, other in (part.parts, part.parts[::-1]):
                if isinstance(path, MemberPath) and isinstance(other, Constant) and isinstance(other.value, float):
                    yield path, other.value


def shown(path: MemberPath) -> str:
    """A path as it stands in a flow, where names after `jobs.` need no brackets."""
    return path.name.replace(f"jobs['{path.members[0]}']", f"jobs.{path.members[0]}") if path.members else path.name


def never_equal(text: str, lookup: Lookup) -> list[str]:
    """What is compared in an expression and can never be equal, a sentence each."""
    try:
        data, _ = gather(compile_expression(text).references, lookup)
    except ExpressionError:
        return []
    found = []
    for _, first, second in _equalities(text):
        try:
            values = _PathValues(data)
            a, b = evaluator_of(first)(values), evaluator_of(second)(values)
        except (KeyError, NeedsLibrary):
            continue
        if kind_of(a) != kind_of(b) and {kind_of(a), kind_of(b)} <= COMPARED:
            found.append(f"{_told(first, a)} and is compared with {_compared(second, b)}, so they are never equal")
    return found


def _equalities(text: str) -> Iterator[tuple[str, Tree, Tree]]:
    tree = tree_of(text)
    for part in parts_in(tree) if tree is not None else ():
        if isinstance(part, Operator) and part.do in ("==", "!="):
            first, second = part.parts
            yield (part.do, second, first) if isinstance(first, Constant) else (part.do, first, second)


class _PathValues(dict[str, Value]):
    """The values of paths, read from nested data when they are asked for."""

    def __init__(self, data: Value) -> None:
        self._data = data

    def __missing__(self, name: str) -> Value:
        path = parse(name, NOT_PATHS)
        if not isinstance(path, MemberPath):
            raise KeyError(name)
        value = self._data
        for member in (path.root, *path.members):
            if not isinstance(value, dict) or member not in value:
                raise KeyError(name)
            value = value[member]
        return value


def _told(tree: Tree, value: Value) -> str:
    name = f"`{shown(tree)}`" if isinstance(tree, MemberPath) else "what stands before `==`"
    return f"{name} is {_with_kind(value)}"


def _compared(tree: Tree, value: Value) -> str:
    return f"`{shown(tree)}`, {_with_kind(value)}" if isinstance(tree, MemberPath) else _with_kind(value)


def _with_kind(value: Value) -> str:
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    return f"the number {value}" if kind_of(value) == NUMBER else str(value).lower()
