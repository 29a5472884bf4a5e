"""Parts that have a type and no element of their own: what stands in their place in an envelope, and back.

A value of a simple type is plain; of any other it is the element that holds it, whose name does not count."""

from lxml import etree

from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlType, XmlWorld, element_text, element_value
from mendflow.core.soap import XSI, joined
from mendflow.core.soap.envelope import BadEnvelope, element_of, local_of, text
from mendflow.core.xml import Node, parse
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.plain import plain, text_of


def written(name: str, value: Value) -> str:
    """A part as an element of its own name."""
    said = element_text(value)
    if said is None:
        return f"<{name}>{text(text_of(value))}</{name}>"
    node = parse(said, name)
    node.tag = name
    return etree.tostring(node, encoding="unicode", with_tail=False)


def read(node: Node, type: str, world: XmlWorld) -> Value:
    """The value that an element holds for a part of this type. Raises BadEnvelope."""
    if node.get(joined(XSI, "nil"), "") in ("1", "true"):
        raise BadEnvelope(f"{local_of(node)} is nil; a part of a message has a value")
    kind = XmlType(type=type)
    if builtin_of(world, kind) is None:
        return element_value(element_of(node))
    return plain(world, kind, "".join(each for each in node.itertext()))
