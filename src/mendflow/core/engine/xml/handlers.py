"""Selects the fault handler for a fault, by WS-BPEL 2.0 (12.5): the most specific one.

A handler can specify a name, a kind of data, both, or neither. A message of one element also matches as that element. A
fault without data goes to a handler that specifies none."""

from collections.abc import Iterator, Sequence

import msgspec

from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Catch
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlDefinitions, XmlType


class FaultData(msgspec.Struct, frozen=True):
    """The XML data of a fault, and what it is."""

    type: XmlType
    value: Value


def fault_data_value(type: XmlType, value: Value) -> dict[str, Value]:
    """XML data as a fault carries it."""
    return {"type": msgspec.to_builtins(type), "value": value}


def fault_data_of(fault: Fault) -> FaultData | None:
    data = fault.data
    if not isinstance(data, dict) or data.keys() != {"type", "value"} or not isinstance(data["type"], dict):
        return None
    try:
        return FaultData(msgspec.convert(data["type"], XmlType), data["value"])
    except msgspec.ValidationError:
        return None


def choose(catches: Sequence[Catch], fault: Fault, world: XmlDefinitions) -> tuple[int, dict[str, Value]]:
    """The place of the handler, or -1, and what its variable holds when it begins."""
    faces = list(_views_of(fault, world))
    for name in (fault.name, None):
        for face in faces:
            for place, catch in enumerate(catches):
                if catch.fault == name and catch.holds == face.type:
                    return place, {catch.variable: face.value}
        for place, catch in enumerate(catches):
            if catch.fault == name and catch.holds is None:
                return place, {}
    return -1, {}


def _views_of(fault: Fault, world: XmlDefinitions) -> Iterator[FaultData]:
    """The data as handlers may ask for it."""
    held = fault_data_of(fault)
    if held is None or flaw(world, held.type, held.value):
        return
    yield held
    parts = world.messages.get(held.type.message, ())
    if len(parts) == 1 and parts[0].element and isinstance(held.value, dict) and parts[0].name in held.value:
        yield FaultData(XmlType(element=parts[0].element), held.value[parts[0].name])
