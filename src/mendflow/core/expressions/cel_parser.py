"""Parses the common part of CEL into a small tree: paths, constants, comparisons, logic, arithmetic.

A rule's condition is mostly `fault.type == "oom" && job.attempts < 3`. Passing data to the library costs many times
such a comparison. What this parser does not support is not an error: it returns None, and the library decides."""

import math
import re
from typing import Final, NamedTuple, Union

from mendflow.core.expressions.scanner import RESERVED
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

NODES_MAX: Final = 200
"""Bounds how deep the functions made of a tree can call each other."""

BRACKETS_MAX: Final = 20

CEL_INT_MAX: Final = 2**63 - 1
TOKEN: Final = lazy_pattern(
    r"""\s+
      | (?P<string>"[^"\\\n]*"|'[^'\\\n]*')
      | (?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<int>\d+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>==|!=|<=|>=|&&|\|\||[-<>!+*/%()\[\],.?:])""",
    re.VERBOSE | re.ASCII,
)
IDENTIFIER: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
METHODS: Final = {"startsWith": 1, "endsWith": 1, "contains": 1, "size": 0, "lowerAscii": 0, "upperAscii": 0}
RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
PRECEDENCE: Final = (frozenset({"+", "-"}), frozenset({"*", "/", "%"}))


class Constant(NamedTuple):
    value: Value


class MemberPath(NamedTuple):
    """A root and its members; `name` is how it is written."""

    name: str
    root: str
    members: tuple[str, ...]


class HasTest(NamedTuple):
    """Whether `path` exists. Its parent must exist."""

    path: MemberPath
    parent: MemberPath


class ListLiteral(NamedTuple):
    """A list that is written out."""

    parts: tuple["Tree", ...]


class Operator(NamedTuple):
    """An operator or a function, and what it is applied to."""

    do: str
    parts: tuple["Tree", ...]


Tree = Union[Constant, MemberPath, HasTest, ListLiteral, Operator]


class Unsupported(Exception):
    """The library has to do it."""


def path_of(root: str, members: tuple[str, ...]) -> MemberPath:
    shown = "".join(f".{each}" if IDENTIFIER.fullmatch(each) else f"[{each!r}]" for each in members)
    return MemberPath(root + shown, root, members)


def parse(text: str, reserved: frozenset[str] = RESERVED) -> Tree | None:
    """The tree of an expression, or None if it needs the library. Paths do not begin with reserved words."""
    try:
        parser = CelParser(tokens_of(text), reserved)
        tree = parser.expression()
        return tree if parser.at == len(parser.tokens) else None
    except Unsupported:
        return None


def tokens_of(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise Unsupported
        at = token.end()
        if token.lastgroup:
            found.append((token.lastgroup, token.group()))
            # `1u`, `0x1`, `"""` and `r"a"` are other tokens that begin alike.
            if token.lastgroup != "mark" and text[at : at + 1].strip() and (text[at].isalnum() or text[at] in "_\"'"):
                raise Unsupported
        if len(found) > 4 * NODES_MAX:
            raise Unsupported
    return found


class CelParser:
    """Recursive descent over CEL's own grammar, as far as it goes. Nodes and open brackets are counted."""

    def __init__(self, tokens: list[tuple[str, str]], reserved: frozenset[str]) -> None:
        self.tokens = tokens
        self.reserved = reserved
        self.at = 0
        self.made = 0
        self.brackets = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (wanted and self.tokens[self.at] != ("mark", wanted)):
            raise Unsupported
        self.at += 1
        return self.tokens[self.at - 1]

    def is_mark(self, *texts: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0] == "mark" and self.peek() in texts

    def node(self, do: str, *parts: Tree) -> Tree:
        self.count()
        return Operator(do, parts)

    def count(self) -> None:
        self.made += 1
        if self.made > NODES_MAX:
            raise Unsupported

    def expression(self) -> Tree:
        self.count()
        self.brackets += 1
        if self.brackets > BRACKETS_MAX:
            raise Unsupported
        tree = self.either()
        if self.is_mark("?"):
            self.take()
            then = self.either()
            self.take(":")
            tree = self.node("?:", tree, then, self.expression())
        self.brackets -= 1
        return tree

    def either(self) -> Tree:
        tree = self.both()
        while self.is_mark("||"):
            self.take()
            tree = self.node("||", tree, self.both())
        return tree

    def both(self) -> Tree:
        tree = self.relation()
        while self.is_mark("&&"):
            self.take()
            tree = self.node("&&", tree, self.relation())
        return tree

    def relation(self) -> Tree:
        tree = self.sum(0)
        while self.peek() in RELATIONS and self.tokens[self.at][0] in ("mark", "name"):
            do = self.take()[1]
            tree = self.node(do, tree, self.sum(0))
        return tree

    def sum(self, level: int) -> Tree:
        """Sums, and with the next level products."""
        if level == len(PRECEDENCE):
            return self.unary()
        tree = self.sum(level + 1)
        while self.is_mark(*PRECEDENCE[level]):
            do = self.take()[1]
            tree = self.node(do, tree, self.sum(level + 1))
        return tree

    def unary(self) -> Tree:
        if not self.is_mark("!", "-"):
            return self.member()
        do = self.take()[1]
        if self.is_mark("!", "-"):
            raise Unsupported
        tree = self.member()
        if do == "-" and isinstance(tree, Constant) and type(tree.value) in (int, float):
            return Constant(-tree.value)
        return self.node("negative" if do == "-" else "!", tree)

    def member(self) -> Tree:
        tree = self.primary()
        while self.is_mark(".", "["):
            tree = self.dotted(tree) if self.take()[1] == "." else self.indexed(tree)
        return tree

    def dotted(self, tree: Tree) -> Tree:
        kind, name = self.take()
        if kind != "name":
            raise Unsupported
        if not self.is_mark("("):
            return self.longer(tree, name)
        arguments = self.arguments()
        if METHODS.get(name) != len(arguments):
            raise Unsupported
        return self.node(name, tree, *arguments)

    def indexed(self, tree: Tree) -> Tree:
        kind, text = self.take()
        self.take("]")
        if kind != "string":
            raise Unsupported
        return self.longer(tree, text[1:-1])

    def longer(self, tree: Tree, member: str) -> Tree:
        if not isinstance(tree, MemberPath):
            raise Unsupported
        self.count()
        return path_of(tree.root, (*tree.members, member))

    def arguments(self) -> list[Tree]:
        self.take("(")
        found: list[Tree] = []
        while not self.is_mark(")"):
            if found:
                self.take(",")
            found.append(self.expression())
        self.take(")")
        return found

    def primary(self) -> Tree:
        self.count()
        kind, text = self.take()
        match kind:
            case "string":
                return Constant(text[1:-1])
            case "int" if int(text) <= CEL_INT_MAX:
                return Constant(int(text))
            case "double" if math.isfinite(float(text)):
                return Constant(float(text))
            case "name":
                return self.named(text)
            case "mark" if text == "(":
                tree = self.expression()
                self.take(")")
                # A path in brackets is no longer the same reference to the library: `(a).b` asks for all of `a`.
                return self.node("()", tree) if isinstance(tree, MemberPath) else tree
            case "mark" if text == "[":
                return self.listed()
        raise Unsupported

    def listed(self) -> Tree:
        found: list[Tree] = []
        while not self.is_mark("]"):
            if found:
                self.take(",")
            found.append(self.expression())
        self.take("]")
        return ListLiteral(tuple(found))

    def named(self, text: str) -> Tree:
        if text in ("true", "false", "null"):
            return Constant({"true": True, "false": False}.get(text))
        if self.is_mark("("):
            return self.called(text)
        if text in self.reserved:
            raise Unsupported
        return path_of(text, ())

    def called(self, name: str) -> Tree:
        arguments = self.arguments()
        if len(arguments) != 1:
            raise Unsupported
        [argument] = arguments
        if name == "size":
            return self.node("size", argument)
        if name == "has" and isinstance(argument, MemberPath) and argument.members:
            return HasTest(argument, path_of(argument.root, argument.members[:-1]))
        raise Unsupported


def conjuncts(tree: Tree) -> list[Tree]:
    """The parts that must all hold for the whole to hold."""
    pending, found = [tree], []
    while pending:
        each = pending.pop()
        if isinstance(each, Operator) and each.do == "&&":
            pending.extend(reversed(each.parts))
        else:
            found.append(each)
    return found


def paths_in(tree: Tree) -> list[MemberPath]:
    """All paths that the tree may come to read, those that `has` asks for and their parents among them."""
    pending: list[Tree] = [tree]
    found: dict[str, MemberPath] = {}
    while pending:
        each = pending.pop()
        match each:
            case MemberPath():
                found[each.name] = each
            case HasTest():
                found[each.path.name], found[each.parent.name] = each.path, each.parent
            case ListLiteral() | Operator():
                pending.extend(reversed(each.parts))
    return list(found.values())


def parts_in(tree: Tree) -> list[Tree]:
    """Every node of a tree."""
    found = [tree]
    for each in found:
        if isinstance(each, Operator | ListLiteral):
            found.extend(each.parts)
    return found
