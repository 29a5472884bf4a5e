"""The tree of a compiled expression, as the library writes it and reads it again: a message of protocol buffers,
`cel.expr.ParsedExpr`.

Only what has to be told apart is read; the rest is passed through as it is. Nothing here calls itself, so that a sum of
thousands of terms, which is a tree as deep, costs no stack."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
PARSED_EXPR: Final = b"type.googleapis.com/cel.expr.ParsedExpr"

CONSTANT, NAME, SELECT, CALL, LIST, STRUCT, LOOP = 3, 4, 5, 6, 7, 8, 9
"""The kinds of expressions, by the number of their field in `Expr`."""

ENTRY: Final = -1
"""A member of a map that is written out: no expression of its own, but it has two."""

TARGET, FUNCTION, ARGUMENT = 1, 2, 3
RANGE, ACCUMULATOR, START, WHILE, STEP, RESULT = 2, 3, 4, 5, 6, 7
_INNER: Final = {
    SELECT: frozenset({1}),
    CALL: frozenset({TARGET, ARGUMENT}),
    LIST: frozenset({1}),
    STRUCT: frozenset({2}),
    ENTRY: frozenset({3, 4}),
    LOOP: frozenset({RANGE, START, WHILE, STEP, RESULT}),
}


class Part(NamedTuple):
    """A field of a message: its number, and its bytes with their tag, or the expression that it is."""

    number: int
    raw: bytes
    inner: "CelNode | None" = None


class CelNode:
    """An expression: `kind` says what it is, `parts` are the fields of that, `around` the fields beside it (its id)."""

    __slots__ = ("around", "kind", "parts")

    def __init__(self, kind: int, parts: list[Part], around: bytes = b"") -> None:
        self.kind, self.parts, self.around = kind, parts, around

    def inner(self, number: int) -> "list[CelNode]":
        return [part.inner for part in self.parts if part.number == number and part.inner is not None]

    def text(self, number: int) -> str:
        """The text in a field that is no expression."""
        for part in self.parts:
            if part.number == number and part.inner is None:
                return next(fields(part.raw))[2].decode()
        return ""

    @property
    def children(self) -> "list[CelNode]":
        return [part.inner for part in self.parts if part.inner is not None]


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each field of a message: its number, all its bytes, and its content."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            begin = at
            _, at = _read_varint(data, at)
        elif kind == BYTES:
            length, begin = _read_varint(data, at)
            at = begin + length
        else:
            assert kind in (FIXED_64, FIXED_32), f"no such kind of field: {kind}"
            begin, at = at, at + (8 if kind == FIXED_64 else 4)
        yield tag >> 3, data[start:at], data[begin:at]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at


def read_program(data: bytes) -> tuple[CelNode, bytes]:
    """The expression that the library has written, and what it says beside it (where things stand in the text)."""
    whole = {number: content for number, _, content in fields(data)}
    assert whole[1] == PARSED_EXPR, whole[1]
    parsed = list(fields(whole[2]))
    expression = next(content for number, _, content in parsed if number == 2)
    return _read(expression), b"".join(raw for number, raw, _ in parsed if number != 2)


def _read(data: bytes) -> CelNode:
    root = CelNode(0, [])
    waiting: list[tuple[CelNode, bytes]] = [(root, data)]
    while waiting:
        node, content = waiting.pop()
        if node.kind != ENTRY:
            content = _open(node, content)
        for number, raw, inner in fields(content):
            if number not in _INNER.get(node.kind, ()):
                node.parts.append(Part(number, raw))
                continue
            child = CelNode(ENTRY if node.kind == STRUCT else 0, [])
            node.parts.append(Part(number, b"", child))
            waiting.append((child, inner))
    return root


def _open(node: CelNode, data: bytes) -> bytes:
    """Say what the expression is, and give the content of that."""
    content = b""
    for number, raw, inner in fields(data):
        if CONSTANT <= number <= LOOP:
            node.kind, content = number, inner
        else:
            node.around += raw
    return content


def program_of(expression: bytes, beside: bytes) -> bytes:
    return field(1, PARSED_EXPR) + field(2, field(2, expression) + beside)


def written(node: CelNode, contents: list[bytes]) -> bytes:
    """The bytes of an expression whose inner ones have these bytes, in their order."""
    rest = iter(contents)
    content = b"".join(part.raw if part.inner is None else field(part.number, next(rest)) for part in node.parts)
    return content if node.kind == ENTRY else node.around + field(node.kind, content)


def rewrite(root: CelNode, change: Callable[[CelNode, list[bytes]], bytes]) -> bytes:
    """The bytes of the whole tree, where `change` gives those of each node from the bytes of its children."""
    order, waiting = list[CelNode](), [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.children)
    made = dict[int, bytes]()
    for node in reversed(order):
        made[id(node)] = change(node, [made.pop(id(child)) for child in node.children])
    return made[id(root)]
