"""Puts the count of work into a compiled expression: before each call of the library that may take long, the sizes of
what it is given are told to the budget, and nothing is called once that is spent.

`s.contains(t)` becomes, in the tree, `bind a = s: bind b = t: @not_strictly_false(mayGoOn() && spendSearch(size(a),
size(b))) ? a.contains(b) : giveUp()`. What has no size (a number) makes the condition an error, which counts as true:
the call itself then says what is wrong with it. So results and errors stay those of the library.

`map` and `filter` of the library copy their list for each element. Here they append to a list in `WORK.lists` instead,
of which the loop passes the number on."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

from mendflow.core.expressions.cel_wire import (
    ACCUMULATOR,
    ARGUMENT,
    CALL,
    CONSTANT,
    FUNCTION,
    LIST,
    LOOP,
    NAME,
    RANGE,
    START,
    STEP,
    STRUCT,
    TARGET,
    WHILE,
    CelNode,
    field,
    fields,
    program_of,
    read_program,
    rewrite,
    varint,
    written,
)
from mendflow.lazy import lazy_pattern

FIRST_ID: Final = 1 << 20
"""Beyond the ids that the parser gives in the longest expression."""

REPETITION: Final = lazy_pattern(r"(\d{1,6})\}")
REPEATED_MAX: Final = 1000
"""The library refuses what is repeated more often."""

PATTERN_WORK, PATTERN_CHARS, UNICODE_WORK, UNKNOWN_PATTERN_WORK = 10, 20, 10, 2000
RESULT_LIST: Final = "@result"
UNSIGNED: Final = 4
AND: Final = "_&&_"
NOT_FALSE: Final = "@not_strictly_false"
MAY_GO_ON: Final = "mayGoOn"
GIVE_UP: Final = "giveUp"
SPEND_SEARCH, SPEND_TEXT, SPEND_SPLIT, SPEND_MATCH = "spendSearch", "spendText", "spendSplit", "spendMatch"
SPEND_MADE, SPEND_WHOLE, SPEND_LOOP = "spendMade", "spendWhole", "spendLoop"
SPEND_JOIN, SPEND_FORMAT = "spendJoin", "spendFormat"
NEW_LIST, APPENDED, MADE_LIST = "newList", "appended", "madeList"

COUNTED: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), (SPEND_SEARCH, (0, 1))),
    **dict.fromkeys(("startsWith", "endsWith"), (SPEND_TEXT, (1,))),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "reverse", "substring", "charAt", "size"), (SPEND_TEXT, (0,))),
    **dict.fromkeys(("strings.quote", "string", "bytes", "int", "uint", "double", "bool"), (SPEND_TEXT, (0,))),
    **dict.fromkeys(("duration", "timestamp"), (SPEND_TEXT, (0,))),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), (SPEND_TEXT, (0,))),
    **dict.fromkeys(("_==_", "_!=_"), (SPEND_WHOLE, (0,))),
    "matches": (SPEND_MATCH, (0, 1)),
    "split": (SPEND_SPLIT, (0,)),
    "_+_": (SPEND_MADE, (0, 1)),
    "_[_]": (SPEND_TEXT, (1,)),
    "@in": (SPEND_WHOLE, (1,)),
    "join": (SPEND_JOIN, (0, 1)),
    "format": (SPEND_FORMAT, (0, 1)),
}
"""What each function of the library is counted by, and by which of its operands (the target is the first)."""

SCALAR_OPERANDS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_"})
"""Compared with a constant they take no longer than that is; and a constant that is no text has nothing added to it."""


def metered(program: bytes) -> bytes:
    """The same program, with its work counted."""
    root, beside = read_program(program)
    return program_of(rewrite(root, Meter(root).change), beside)


class Meter:
    """Changes one tree."""

    def __init__(self, root: CelNode) -> None:
        self._ids = count(FIRST_ID)
        nodes = _all(root)
        self._makes_lists = not any(map(_keeps_type, nodes))
        self._loops = {id(node): _loop_size(node) for node in nodes if node.kind == LOOP}
        self._steps = set[int]()
        self._lists = set[int]()
        for node in nodes:
            if node.kind == LOOP and node.text(ACCUMULATOR) == RESULT_LIST and _is_empty_list(node.inner(START)[0]):
                appending = [each for each in _own(node.inner(STEP)[0]) if _appends(each)]
                self._steps.update(map(id, appending))
                if self._makes_lists and len(appending) == 1:
                    self._lists.add(id(node))
                    self._steps.discard(id(appending[0]))
                    self._lists.add(id(appending[0]))

    def change(self, node: CelNode, inner: list[bytes]) -> bytes:
        if node.kind == LOOP:
            return self._loop(node, inner)
        if node.kind != CALL:
            return written(node, inner)
        if id(node) in self._lists:
            return self._call(APPENDED, inner[0], _only_element(inner[1]))
        function = node.text(FUNCTION)
        if id(node) in self._steps:
            return self._counted(node, SPEND_WHOLE, (1,), inner)
        if function not in COUNTED or _is_cheap(node, function):
            return written(node, inner)
        return self._counted(node, *COUNTED[function], inner)

    def _loop(self, node: CelNode, inner: list[bytes]) -> bytes:
        names = [part.number for part in node.parts if part.inner is not None]
        parts = dict(zip(names, inner, strict=True))
        steps = self._loops[id(node)]
        parts[RANGE] = self._bound(
            [parts[RANGE]],
            lambda name: (SPEND_LOOP, [self._call("size", name()), self._number(steps)]),
            lambda given: given[0](),
        )
        parts[WHILE] = self._call(AND, self._call(MAY_GO_ON), parts[WHILE])
        if id(node) in self._lists:
            parts[START] = self._call(NEW_LIST)
        made = written(node, [parts[number] for number in names])
        return self._call(MADE_LIST, made) if id(node) in self._lists else made

    def _counted(self, node: CelNode, spend: str, places: tuple[int, ...], inner: list[bytes]) -> bytes:
        places = tuple(place for place in places if place < len(inner))

        def charge(*given: Callable[[], bytes]) -> tuple[str, list[bytes]]:
            if spend == SPEND_WHOLE:
                return spend, [given[0]()]
            if spend in (SPEND_JOIN, SPEND_FORMAT):
                return spend, [name() for name in given]
            sizes = [self._call("size", name()) for name in given]
            if spend == SPEND_SEARCH:
                return spend, sizes
            if spend == SPEND_MATCH:
                return spend, [*sizes, self._number(_pattern_work(node))]
            return spend, [*sizes, self._call("_==_", self._call("type", given[0]()), self._name("string"))]

        def call(given: list[Callable[[], bytes]]) -> bytes:
            replaced = list(inner)
            for place, name in zip(places, given, strict=True):
                replaced[place] = name()
            return written(node, replaced)

        return self._bound([inner[place] for place in places], charge, call) if places else written(node, inner)

    def _bound(
        self,
        operands: list[bytes],
        charge: Callable[..., tuple[str, list[bytes]]],
        call: Callable[[list[Callable[[], bytes]]], bytes],
    ) -> bytes:
        """Evaluate the operands once, tell their sizes, and do the call on them."""
        names = [f"@work{next(self._ids)}" for _ in operands]
        given: list[Callable[[], bytes]] = [partial(self._name, name) for name in names]
        spend, sizes = charge(*given)
        allowed = self._call(NOT_FALSE, self._call(AND, self._call(MAY_GO_ON), self._call(spend, *sizes)))
        found = self._call("_?_:_", allowed, call(given), self._call(GIVE_UP))
        for name, operand in zip(reversed(names), reversed(operands), strict=True):
            found = self._bind(name, operand, found)
        return found

    def _bind(self, name: str, value: bytes, within: bytes) -> bytes:
        """A loop that goes around nothing: its accumulator is the name."""
        text = name.encode()
        empty, never = self._node(LIST, b""), self._node(CONSTANT, varint(2 << 3) + varint(0))
        parts = (b"#unused", empty, text, value, never, self._name(name), within)
        return self._node(LOOP, b"".join(field(number, part) for number, part in enumerate(parts, 1)))

    def _node(self, kind: int, content: bytes) -> bytes:
        return varint(2 << 3) + varint(next(self._ids)) + field(kind, content)

    def _name(self, name: str) -> bytes:
        return self._node(NAME, field(1, name.encode()))

    def _number(self, number: int) -> bytes:
        return self._node(CONSTANT, varint(3 << 3) + varint(number))

    def _call(self, function: str, *arguments: bytes) -> bytes:
        told = b"".join(field(ARGUMENT, each) for each in arguments)
        return self._node(CALL, field(FUNCTION, function.encode()) + told)


def _all(root: CelNode, within: Callable[[CelNode], Any] = lambda _: True) -> list[CelNode]:
    found, waiting = list[CelNode](), [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if within(node):
            waiting += node.children
    return found


def _own(step: CelNode) -> list[CelNode]:
    """The nodes of a loop's step without those of the loops inside it, which have a list of their own."""
    return _all(step, lambda node: node.kind != LOOP)


def _loop_size(loop: CelNode) -> int:
    """How many nodes are evaluated each time around."""
    return sum(len(_own(each)) for number in (STEP, WHILE) for each in loop.inner(number))


def _keeps_type(node: CelNode) -> bool:
    """Whether it makes a value that would be another one after a way through Python: an unsigned number, or a type."""
    if node.kind == CALL:
        return node.text(FUNCTION) in ("uint", "type")
    return node.kind == CONSTANT and any(part.number == UNSIGNED for part in node.parts)


def _is_empty_list(node: CelNode) -> bool:
    return node.kind == LIST and not node.parts


def _appends(node: CelNode) -> bool:
    """Whether it is `@result + [element]`, as the library's macros write it."""
    if node.kind != CALL or node.text(FUNCTION) != "_+_":
        return False
    first, second = node.inner(ARGUMENT)
    return first.kind == NAME and first.text(1) == RESULT_LIST and second.kind == LIST and len(second.children) == 1


def _only_element(made: bytes) -> bytes:
    """The bytes of the one element of a list that is written out."""
    content = next(inner for number, _, inner in fields(made) if number == LIST)
    return next(inner for number, _, inner in fields(content) if number == 1)


def _pattern_work(node: CelNode) -> int:
    """The work of reading a regular expression, which the library does each time: repetitions multiply what is made
    of it, and the classes of Unicode are large. A pattern that is not known yet counts as a large one."""
    pattern = node.inner(ARGUMENT)[-1]
    if pattern.kind != CONSTANT:
        return UNKNOWN_PATTERN_WORK
    text = pattern.text(6)
    repeated = 1
    for times in REPETITION.findall(text):
        repeated = min(REPEATED_MAX, repeated * max(1, int(times)))
    return len(text) * repeated * (UNICODE_WORK if "\\p" in text.lower() else 1) // PATTERN_CHARS + PATTERN_WORK


def _is_cheap(node: CelNode, function: str) -> bool:
    operands = [*node.inner(TARGET), *node.inner(ARGUMENT)]
    if function in SCALAR_OPERANDS and any(map(_is_scalar if function == "_+_" else _is_constant, operands)):
        return True
    if function == "_[_]":
        return _is_constant(operands[-1])
    if function == "@in":
        return operands[-1].kind == STRUCT or all(map(_is_constant, operands[-1].children or [operands[-1]]))
    return all(map(_is_constant, operands))


def _is_constant(node: CelNode) -> bool:
    return node.kind == CONSTANT


def _is_scalar(node: CelNode) -> bool:
    """A constant that is neither text (6) nor bytes (7)."""
    return node.kind == CONSTANT and not any(part.number in (6, 7) for part in node.parts)
