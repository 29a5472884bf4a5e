"""The functions of XPath 1.0's core library, each with how many arguments it takes and what it gives."""

import math
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from mendflow.core.expressions.xpath.evaluation import Focus, NamespaceNode, XPathError
from mendflow.core.expressions.xpath.terms import FocusPart
from mendflow.core.expressions.xpath.values import XValue, text_number, to_boolean, to_number, to_string
from mendflow.core.xml.tree import XML_NAMESPACE, Attribute, Element, Instruction, Node

TEXT_CHARS_MAX: Final = 1 << 20
MANY: Final = 1 << 10
SPLIT_CHARS: Final = 40
TRANSLATED_CHARS: Final = 20
TABLE_CHARS: Final = 8
"""So many characters are split, replaced, or put into a table for one unit of work, which is about a microsecond."""

ResultType = Literal["boolean", "number", "string", "nodes", "any"]
Arguments = list[XValue]
FunctionBody = Callable[[Focus, Arguments], XValue]


class Function(msgspec.Struct, frozen=True):
    work: FunctionBody
    gives: ResultType
    least: int = 0
    most: int = 0
    asks: FocusPart = FocusPart(0)
    """Of the focus, whatever its arguments are. Where its only argument is left out, it asks for the node too."""


def _nodes(arguments: Arguments, what: str) -> list[Node]:
    if not isinstance(arguments[0], list):
        raise XPathError(f"{what}() takes nodes")
    return arguments[0]


def _subject(focus: Focus, arguments: Arguments, what: str) -> Node | None:
    """The first node of the argument, or the context node without one."""
    if not arguments:
        return focus.node
    nodes = _nodes(arguments, what)
    return nodes[0] if nodes else None


def _text(focus: Focus, arguments: Arguments, at: int = 0) -> str:
    """An argument as text, or the text of the context node without one."""
    found = to_string(arguments[at], focus.run) if at < len(arguments) else focus.run.string(focus.node)
    focus.run.spend(len(found) // 100)
    return found


def _count(_: Focus, arguments: Arguments) -> XValue:
    return float(len(_nodes(arguments, "count")))


def _local_name(focus: Focus, arguments: Arguments) -> XValue:
    node = _subject(focus, arguments, "local-name")
    if isinstance(node, Instruction):
        return node.target
    return node.local if isinstance(node, Element | Attribute | NamespaceNode) else ""


def _namespace_uri(focus: Focus, arguments: Arguments) -> XValue:
    node = _subject(focus, arguments, "namespace-uri")
    return node.ns if isinstance(node, Element | Attribute) else ""


def _name(focus: Focus, arguments: Arguments) -> XValue:
    node = _subject(focus, arguments, "name")
    if isinstance(node, Element | Attribute) and node.prefix:
        return f"{node.prefix}:{node.local}"
    return _local_name(focus, [[node]] if node is not None else [[]])


def _concat(focus: Focus, arguments: Arguments) -> XValue:
    texts = [_text(focus, arguments, at) for at in range(len(arguments))]
    length = sum(map(len, texts))
    if length > TEXT_CHARS_MAX:
        raise XPathError(f"concat() would make a text of {length:,} characters; at most {TEXT_CHARS_MAX:,} are made")
    return "".join(texts)


def _starts_with(focus: Focus, arguments: Arguments) -> XValue:
    return _text(focus, arguments).startswith(_text(focus, arguments, 1))


def _contains(focus: Focus, arguments: Arguments) -> XValue:
    return _text(focus, arguments, 1) in _text(focus, arguments)


def _substring_before(focus: Focus, arguments: Arguments) -> XValue:
    before, mark, _ = _partition(focus, arguments)
    return before if mark else ""


def _substring_after(focus: Focus, arguments: Arguments) -> XValue:
    return _partition(focus, arguments)[2]


def _partition(focus: Focus, arguments: Arguments) -> tuple[str, bool, str]:
    text, mark = _text(focus, arguments), _text(focus, arguments, 1)
    at = text.find(mark)
    return (text[:at], True, text[at + len(mark) :]) if at >= 0 else ("", False, "")


def _substring(focus: Focus, arguments: Arguments) -> XValue:
    """Characters at the positions from the second argument on, as many as the third says, both rounded."""
    text = _text(focus, arguments)
    first = round_half_up(to_number(arguments[1], focus.run))
    end = first + round_half_up(to_number(arguments[2], focus.run)) if len(arguments) > 2 else math.inf
    if math.isnan(first) or math.isnan(end):
        return ""
    start = 0 if first < 1 else len(text) if first > len(text) else int(first) - 1
    stop = 0 if end < 1 else len(text) if end > len(text) else int(end) - 1
    return text[start:stop]


def _string_length(focus: Focus, arguments: Arguments) -> XValue:
    return float(len(_text(focus, arguments)))


def _normalize_space(focus: Focus, arguments: Arguments) -> XValue:
    text = _text(focus, arguments)
    focus.run.spend(len(text) // SPLIT_CHARS)
    for blank in "\t\r\n":
        text = text.replace(blank, " ")
    return " ".join(filter(None, text.split(" ")))


def _translate(focus: Focus, arguments: Arguments) -> XValue:
    text, old, new = (_text(focus, arguments, at) for at in range(3))
    focus.run.spend(len(old) // TABLE_CHARS + len(text) // TRANSLATED_CHARS)
    table: dict[int, str | None] = {}
    for at, char in enumerate(old):
        table.setdefault(ord(char), new[at] if at < len(new) else None)
    return text.translate(table)


def _lang(focus: Focus, arguments: Arguments) -> XValue:
    wanted = _text(focus, arguments).lower()
    at: Node | None = focus.node
    while at is not None:
        if isinstance(at, Element) and (language := at.get(f"{{{XML_NAMESPACE}}}lang")) is not None:
            return language.lower() == wanted or language.lower().startswith(f"{wanted}-")
        at = at.parent
    return False


def _sum(focus: Focus, arguments: Arguments) -> XValue:
    return float(sum(text_number(focus.run.string(node)) for node in _nodes(arguments, "sum")))


def _floor(focus: Focus, arguments: Arguments) -> XValue:
    return _whole(math.floor, to_number(arguments[0], focus.run))


def _ceiling(focus: Focus, arguments: Arguments) -> XValue:
    return _whole(math.ceil, to_number(arguments[0], focus.run))


def round_half_up(value: float) -> float:
    """To the nearest whole number, and halves upwards."""
    if math.isnan(value) or math.isinf(value) or abs(value) >= 1 << 52:
        return value
    down = math.floor(value)
    return math.copysign(float(down + 1 if value - down >= 0.5 else down), value)


def _whole(how: Callable[[float], int], value: float) -> float:
    return value if math.isnan(value) or math.isinf(value) else math.copysign(float(how(value)), value)


CORE: Final[dict[str, Function]] = {
    "boolean": Function(lambda _, arguments: to_boolean(arguments[0]), "boolean", 1, 1),
    "ceiling": Function(_ceiling, "number", 1, 1),
    "concat": Function(_concat, "string", 2, MANY),
    "contains": Function(_contains, "boolean", 2, 2),
    "count": Function(_count, "number", 1, 1),
    "false": Function(lambda _, __: False, "boolean"),
    "floor": Function(_floor, "number", 1, 1),
    # Nothing says which attributes are ids, since document types are not taken. So nothing has one.
    "id": Function(lambda _, __: [], "nodes", 1, 1),
    "lang": Function(_lang, "boolean", 1, 1, FocusPart.NODE),
    "last": Function(lambda focus, _: float(focus.size), "number", asks=FocusPart.SIZE),
    "local-name": Function(_local_name, "string", 0, 1),
    "name": Function(_name, "string", 0, 1),
    "namespace-uri": Function(_namespace_uri, "string", 0, 1),
    "normalize-space": Function(_normalize_space, "string", 0, 1),
    "not": Function(lambda _, arguments: not to_boolean(arguments[0]), "boolean", 1, 1),
    "number": Function(
        lambda focus, arguments: (
            to_number(arguments[0], focus.run) if arguments else text_number(focus.run.string(focus.node))
        ),
        "number",
        0,
        1,
    ),
    "position": Function(lambda focus, _: float(focus.position), "number", asks=FocusPart.POSITION),
    "round": Function(lambda focus, arguments: round_half_up(to_number(arguments[0], focus.run)), "number", 1, 1),
    "starts-with": Function(_starts_with, "boolean", 2, 2),
    "string": Function(_text, "string", 0, 1),
    "string-length": Function(_string_length, "number", 0, 1),
    "substring": Function(_substring, "string", 2, 3),
    "substring-after": Function(_substring_after, "string", 2, 2),
    "substring-before": Function(_substring_before, "string", 2, 2),
    "sum": Function(_sum, "number", 1, 1),
    "translate": Function(_translate, "string", 3, 3),
    "true": Function(lambda _, __: True, "boolean"),
}
