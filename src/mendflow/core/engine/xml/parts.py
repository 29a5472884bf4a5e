"""Messages from and to variables: whole, or part by part.

Part by part uses a copy for each, as in the specification: so an element with a number fills a variable that is a
number, and vice versa."""

from mendflow.core.engine.faults import UNINITIALIZED_VARIABLE, flow_fault
from mendflow.core.engine.state import Case
from mendflow.core.engine.xml.copies import copied_value, copy_to_variable
from mendflow.core.engine.xml.declarations import parts_of, type_of_part, variable_at, world_of
from mendflow.core.engine.xml.shapes import demand_shape
from mendflow.core.model.values import Value
from mendflow.core.model.xml import MessagePart, XmlMessage, XmlType
from mendflow.core.xml.declarations import builtin_of
from mendflow.core.xml.simple_values import plain_value


def variable_value(case: Case, env: int, name: str) -> Value:
    """What a variable holds, which must be something."""
    holder, _ = variable_at(case, env, name)
    if name not in holder.variables:
        raise flow_fault(UNINITIALIZED_VARIABLE, f"the variable {name} has no value yet")
    return holder.variables[name]


def part_value(case: Case, env: int, name: str, part: str) -> Value:
    """What a part of a message variable holds, which must be something."""
    holder, _ = variable_at(case, env, name)
    message = holder.variables.get(name)
    if not isinstance(message, dict) or part not in message:
        raise flow_fault(UNINITIALIZED_VARIABLE, f"the part {part} of the variable {name} has no value yet")
    return message[part]


def whole_message(case: Case, env: int, name: str, message: str) -> dict[str, Value]:
    """A message variable of which every part has a value."""
    return {part.name: part_value(case, env, name, part.name) for part in parts_of(case, message)}


def build_message(case: Case, env: int, how: XmlMessage, message: str) -> dict[str, Value]:
    """The message that an activity sends, as a dict of its parts."""
    parts = parts_of(case, message)
    if how.parts:
        return {part.name: _build_part(case, env, how, part) for part in parts}
    if not how.variable:
        return {}
    _, type = variable_at(case, env, how.variable)
    if type.message:
        return whole_message(case, env, how.variable, message)
    return {parts[0].name: variable_value(case, env, how.variable)} if parts else {}


def _build_part(case: Case, env: int, how: XmlMessage, part: MessagePart) -> Value:
    variable = next((each.variable for each in how.parts if each.part == part.name), "")
    if not variable:
        raise flow_fault(UNINITIALIZED_VARIABLE, f"the part {part.name} of the message has no source")
    given = copied_value(variable_value(case, env, variable))
    return copy_to_variable(world_of(case), None, type_of_part(part), part.name, given, keep_name=False)


def store_message(case: Case, env: int, how: XmlMessage, message: str, value: Value) -> None:
    """Put a message that came into the variables that it is for."""
    known, value = parts_of(case, message), {} if value is None else value
    demand_shape(world_of(case), XmlType(message=message), value, f"a message {message}")
    given = {part.name: _store_part(case, part, value[part.name]) for part in known if part.name in value}
    for each in how.parts:
        if each.part in given:
            holder, type = variable_at(case, env, each.variable)
            new = copy_to_variable(
                world_of(case), None, type, each.variable, copied_value(given[each.part]), keep_name=False
            )
            holder.variables[each.variable] = new
    if how.variable:
        holder, type = variable_at(case, env, how.variable)
        if type.message:
            holder.variables[how.variable] = given
        elif given:
            holder.variables[how.variable] = given[known[0].name]


def _store_part(case: Case, part: MessagePart, value: Value) -> Value:
    """A part as variables hold it: what is of a simple type is plain."""
    type = type_of_part(part)
    if isinstance(value, str) and builtin_of(world_of(case), type) is not None:
        return plain_value(world_of(case), type, value)
    return value
