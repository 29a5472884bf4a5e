"""Parts with a type instead of an element: their representation in an envelope, and back.

A value of a simple type is plain; any other is the element that holds it, whose name does not matter."""

from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlDefinitions, XmlType, element_text, element_value
from mendflow.core.soap import XSI, qualified_name
from mendflow.core.soap.envelope import BadEnvelope, element_of, local_of, xml_text
from mendflow.core.xml import ParsedElement, parse
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.library import etree
from mendflow.core.xml.simple_values import plain_value, text_of


def write_part(name: str, value: Value) -> str:
    """A part as an element of its own name."""
    text = element_text(value)
    if text is None:
        return f"<{name}>{xml_text(text_of(value))}</{name}>"
    node = parse(text, name)
    node.tag = name
    return etree.tostring(node, encoding="unicode", with_tail=False)


def read_part(node: ParsedElement, type: str, world: XmlDefinitions) -> Value:
    """The value that an element holds for a part of this type. Raises BadEnvelope."""
    if node.get(qualified_name(XSI, "nil"), "") in ("1", "true"):
        raise BadEnvelope(f"{local_of(node)} is nil; a part of a message has a value")
    kind = XmlType(type=type)
    if builtin_of(world, kind) is None:
        return element_value(element_of(node))
    return plain_value(world, kind, "".join(each for each in node.itertext()))
