"""Properties: named values of messages and variables, wherever they are in them.

An alias says where: in a part, or in the whole; there the element itself, or what a query selects in it."""

from typing import Final

from mendflow.core.engine.faults import SELECTION_FAILURE, UNINITIALIZED_VARIABLE, FlowFault, flow_fault
from mendflow.core.engine.xml.copies import root_of
from mendflow.core.expressions import xpath
from mendflow.core.expressions.xpath.evaluation import Evaluation
from mendflow.core.expressions.xpath.flow_functions import value_of
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value
from mendflow.core.model.xml import PropertyAlias, XmlDefinitions, XmlType, element_text
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.reader import read_shared
from mendflow.core.xml.simple_values import plain_value, text_of

VALUE: Final = "value"
ROUTING_WORK_MAX: Final = 30_000
"""What finding a property may take, as XPath counts it, while a message has no case yet: others wait meanwhile. A case
that has the message has the whole budget, and its steps can be done aside."""


def alias_of(world: XmlDefinitions, name: str, of: XmlType) -> PropertyAlias:
    """Where the property stands in what is of this message, element or type."""
    for alias in world.aliases:
        if alias.property == name and alias.of == of:
            return alias
    holder = of.message or of.element or of.type
    raise flow_fault(SELECTION_FAILURE, f"no alias says where the property {name} stands in {holder}")


def property_of(world: XmlDefinitions, name: str, of: XmlType, value: Value) -> Value:
    """The value of a property in the value of a variable or in a message; plain where the property's type is simple."""
    alias = alias_of(world, name, of)
    if of.message:
        if not isinstance(value, dict) or alias.part not in value:
            raise flow_fault(UNINITIALIZED_VARIABLE, f"the part {alias.part} has no value yet")
        value = value[alias.part]
    if alias.query is not None:
        value = _selected(alias.query, value, name)
    type = XmlType(type=world.properties.get(name, ""))
    text = element_text(value)
    if type.type and builtin_of(world, type) is None:
        return value
    return plain_value(world, type, text_of(value) if text is None else read_shared(text).string())


def _selected(query: Expr, value: Value, name: str) -> Value:
    """A value of a simple type is looked into as an element that has it as its text, so `.` and `text()` select it."""
    text = element_text(value)
    context = root_of(value, XmlType(), VALUE) if text is None else read_shared(text)
    world = xpath.XPathEnvironment(_no_variables)
    try:
        found = xpath.evaluate(query, world, context)
        if isinstance(found, list) and len(found) != 1:
            raise flow_fault(
                SELECTION_FAILURE, f"the query of the property {name} selects {len(found)} nodes; it must be one"
            )
        run = Evaluation(world)
        try:
            return value_of(found, run)
        finally:
            run.end()
    except xpath.XPathError as error:
        raise flow_fault(error.fault, f"the property {name}: {error}") from None


def _no_variables(name: str) -> Value:
    raise KeyError(name)


def _whole(value: Value) -> Value:
    """The same number is the same, however it was written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def properties_of(
    world: XmlDefinitions,
    names: tuple[str, ...],
    message_type: str,
    message: Value,
    known: dict[str, Value] | None = None,
) -> list[Value] | None:
    """The values of these properties in a message, in their order; None if it does not have one of them. `known` are
    those that were looked up before."""
    found: list[Value] = []
    known = {} if known is None else known
    for name in names:
        if name not in known:
            try:
                known[name] = _whole(property_of(world, name, XmlType(message=message_type), message))
            except FlowFault:
                known[name] = None
        if known[name] is None:
            return None
        found.append(known[name])
    return found
