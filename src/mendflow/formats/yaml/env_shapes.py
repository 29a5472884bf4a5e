"""Environment variables in a flow file: a map. People also write lists, as other tools do; these are answered with the
map."""

from typing import Any, Final

from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, plain_data
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import MapOf, NameShape, Schema, TextShape, refuse
from mendflow.lazy import lazy_pattern

ASSIGNED: Final = lazy_pattern(r"\s*([A-Za-z_]\w*)=(\S*)\s*")


class EnvNameShape(NameShape):
    """The name of an environment variable."""

    pattern: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_.-]*")

    def __init__(self) -> None:
        super().__init__("the name of an environment variable")

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        return value if self.pattern.fullmatch(str(value)) else refuse(self, reader, node)


class EnvironmentShape(MapOf):
    """A map from names of variables to texts."""

    def __init__(self) -> None:
        super().__init__(TextShape("a text"), EnvNameShape(), "a map of texts")

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if not isinstance(node, MapNode):
            likely = likely_map(node)
            message = f"{self.expected} is expected here, such as {{NAME: value}}"
            reader.problem(node, message, f"`{likely}`" if likely else "")
            return None
        if node.entries.keys() == {"name", "value"}:
            told = "`name` and `value` would be two variables; one has its name before the colon"
            reader.problem(node, told, f"`{likely_map(node)}`")
            return None
        for name, entry in node.entries.items():
            if isinstance(entry.value, ScalarNode) and entry.value.value is None:
                message = f"`{name}` has no value; a job has the variables of its pilot anyway"
                reader.problem(entry.value, message, f'`{name}: ""` for an empty one')
                return None
        return super().read(reader, node)


def likely_map(node: YamlNode) -> str:
    """The map that was meant by `A=b`, `[A=b, C=d]`, `[{name: A, value: b}]` or `[{A: b}]`; empty if none was."""
    parts = plain_data(node) if isinstance(node, ListNode) else [plain_data(node)]
    found: dict[str, str] = {}
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str) and (pairs := list(ASSIGNED.finditer(part))):
            found |= {pair[1]: pair[2] for pair in pairs}
        elif isinstance(part, dict) and {"name", "value"} == part.keys():
            found[str(part["name"])] = str(part["value"])
        elif isinstance(part, dict):
            found |= {str(name): str(value) for name, value in part.items()}
    return f"{{{', '.join(f'{name}: {value}' for name, value in found.items())}}}" if found else ""
