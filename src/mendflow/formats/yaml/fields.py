"""The keys of a map as a table: the value of each, and its description for editors."""

from collections.abc import Mapping
from typing import Any

from mendflow.formats.hints import Hints, hint_for
from mendflow.formats.spelling import suggestion_for
from mendflow.formats.yaml.document import MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import DataShape, DeferredShape, PresenceShape, Schema, ValueShape


class Key:
    """A key of a map, its value, and its description for editors."""

    def __init__(self, shape: ValueShape, about: str, *, required: bool = False) -> None:
        self.shape = shape
        self.about = about
        self.required = required


Table = Mapping[str, Key]


def schema_of(table: Table) -> Schema:
    """A map with these keys and no others."""
    return {
        "type": "object",
        "properties": {name: {**key.shape.schema(), "description": key.about} for name, key in table.items()},
        "required": [name for name, key in table.items() if key.required],
        "additionalProperties": False,
    }


class Fields:
    """The entries of a map by a table; each is read when it is requested."""

    def __init__(self, reader: YamlReader, node: MapNode, table: Table) -> None:
        self.reader = reader
        self.node = node
        self.table = table
        for name, key in table.items():
            if key.required and name not in node.entries:
                reader.problem(node, f"`{name}` is missing: {key.about[0].lower()}{key.about[1:].rstrip('.')}")

    def __contains__(self, name: str) -> bool:
        return name in self.node.entries

    def node_of(self, name: str) -> YamlNode | None:
        entry = self.node.entries.get(name)
        return entry.value if entry else None

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key. An empty key counts as missing, unless that has a meaning."""
        entry = self.node.entries.get(name)
        if entry is None:
            return default
        shape = self.table[name].shape
        if (
            isinstance(entry.value, ScalarNode)
            and entry.value.value is None
            and not isinstance(shape, (PresenceShape, DataShape, DeferredShape))
        ):
            self.reader.problem(entry.key, f"`{name}` has no value: {shape.expected} is expected")
            return default
        value = shape.read(self.reader, entry.value)
        return default if value is None else value

    def refuse_unknown(self, what: str, hints: Hints | None = None) -> None:
        for name, entry in self.node.entries.items():
            if name not in self.table:
                hint = hint_for(name, hints or {})
                message = f"{what} has no key `{name}`" + (f"; {hint}" if hint else "")
                self.reader.problem(entry.key, message, "" if hint else suggestion_for(name, self.table))


def fields_of(reader: YamlReader, node: YamlNode, table: Table, what: str, hints: Hints | None = None) -> Fields | None:
    """The entries of a map that must have these keys and no others; `hints` are for words of other tools."""
    if not isinstance(node, MapNode):
        reader.problem(node, f"{what} is a map of keys, not {describe(node)}")
        return None
    fields = Fields(reader, node, table)
    fields.refuse_unknown(what, hints)
    return fields
