"""Parts that have a type and no element of their own: what stands in their place in an envelope, and back.

A value of a simple type is plain; of any other it is the element that holds it, whose name does not count."""

from functools import lru_cache
from typing import Final

from lxml import etree

from mendflow.core.model.problems import BadFlow
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlWorld, element_text, element_value
from mendflow.core.soap import XSD, XSI, joined, split
from mendflow.core.soap.envelope import element_of, elements_of, text
from mendflow.core.xml import Node, parse

COMPLEX: Final = "anyType"
INTEGERS: Final = frozenset(
    [
        "integer",
        "int",
        "long",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedInt",
        "unsignedLong",
        "unsignedShort",
        "unsignedByte",
    ]
)
NUMBERS: Final = frozenset({"decimal", "float", "double"})
_DEPTH_MAX: Final = 20


def written(name: str, value: Value) -> str:
    """A part as an element of its own name."""
    said = element_text(value)
    if said is None:
        return f"<{name}>{text(lexical(value))}</{name}>"
    node = parse(said, name)
    node.tag = name
    return etree.tostring(node, encoding="unicode", with_tail=False)


def read(node: Node, type: str, world: XmlWorld) -> Value:
    """The value that an element holds for a part of this type."""
    if node.get(joined(XSI, "nil"), "") in ("1", "true"):
        return None
    base = simple_base(type, world)
    if not base:
        return element_value(element_of(node))
    return plain(base, "".join(each for each in node.itertext()))


def lexical(value: Value) -> str:
    """A plain value as XML Schema writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        special = {float("inf"): "INF", float("-inf"): "-INF"}
        return special.get(value, "NaN" if value != value else repr(value))
    return "" if value is None else str(value)


def plain(base: str, words: str) -> Value:
    """The plain value of a text that is of this built-in type; the text itself if it is not."""
    if base in ("string", "normalizedString"):
        return words
    words = words.strip()
    try:
        if base in INTEGERS:
            return int(words)
        if base in NUMBERS:
            return float(words.replace("INF", "inf"))
    except ValueError:
        return words
    if base == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(words, words)
    return words


def simple_base(type: str, world: XmlWorld) -> str:
    """The built-in type that a simple type comes down to; empty if the type is not a simple one."""
    for _ in range(_DEPTH_MAX):
        namespace, local = split(type)
        if namespace == XSD:
            return "" if local == COMPLEX else local
        bases = (dict(_simple_types(each.text)) for each in world.schemas)
        type = next((found[type] for found in bases if type in found), "")
        if not type:
            return ""
    return ""


@lru_cache(maxsize=256)
def _simple_types(schema: str) -> tuple[tuple[str, str], ...]:
    """The simple types of a schema by name, each with what it is made from; lists and unions are texts."""
    try:
        root = parse(schema, "a schema")
    except BadFlow:
        return ()
    namespace = root.get("targetNamespace", "")
    return tuple(
        (joined(namespace, each.get("name", "")), _base(each))
        for each in elements_of(root)
        if each.tag == joined(XSD, "simpleType")
    )


def _base(simple: Node) -> str:
    made = next(elements_of(simple), None)
    while made is not None and made.tag == joined(XSD, "annotation"):
        made = made.getnext()
    if made is None or made.tag != joined(XSD, "restriction"):
        return joined(XSD, "string")
    prefix, _, local = made.get("base", "").rpartition(":")
    return joined(made.nsmap.get(prefix or None, "") or "", local) if local else joined(XSD, "string")
