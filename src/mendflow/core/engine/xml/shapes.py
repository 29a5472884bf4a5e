"""Checks the shape of XML values from outside: messages by their parts, elements as well-formed text, plain values for
simple types. Schemas are not checked here."""

from mendflow.core.engine.faults import INVALID_VARIABLES, flow_fault
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XML, XmlDefinitions, XmlType, element_text
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.parser import BadXml
from mendflow.core.xml.reader import read_shared


def flaw(world: XmlDefinitions, type: XmlType, value: Value) -> str:
    """Empty, or why no variable of this type can hold the value."""
    if type.message:
        return _flaw_of_message(world, type.message, value)
    if not type.element and builtin_of(world, type) is not None:
        return "" if isinstance(value, (str, int, float)) else "it must be plain: a text, a number, true or false"
    text = element_text(value)
    if text is None:
        return f'it must be an element, as {{"{XML}": "<name>...</name>"}}'
    try:
        read_shared(text)
    except BadXml as refusal:
        return f"its XML cannot be read: {refusal.message}"
    return ""


def _flaw_of_message(world: XmlDefinitions, message: str, value: Value) -> str:
    parts = world.messages.get(message, ())
    names = [part.name for part in parts]
    if not isinstance(value, dict):
        return f"it must be a message: a map of its parts, which are {', '.join(names) or 'none'}"
    if unknown := sorted(value.keys() - set(names)):
        return f"a message {message} has no part {unknown[0]:.80}; it has {', '.join(names) or 'none'}"
    for part in parts:
        if part.name in value:
            inner = flaw(world, XmlType(element=part.element, type=part.type), value[part.name])
            if inner:
                return f"the part {part.name}: {inner}"
    return ""


def demand_shape(world: XmlDefinitions, type: XmlType, value: Value, what: str) -> None:
    """Throw `invalidVariables` if no variable can hold it."""
    if found := flaw(world, type, value):
        raise flow_fault(INVALID_VARIABLES, f"{what}: {found}")
