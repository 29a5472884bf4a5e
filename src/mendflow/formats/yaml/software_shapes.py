"""The software of a job in a flow file: an environment, and modules of the cluster."""

from collections.abc import Callable
from typing import Any

from mendflow.formats.software import EXPECTED, KEYS, MODULES_EXPECTED, BadSoftware, environment_of, modules_of
from mendflow.formats.yaml.document import YamlNode, plain_data
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import Schema
from mendflow.formats.yaml.unsent_files import refuse_unread


class SoftwareShape:
    """`environment`: a file, a list of packages, or a map."""

    expected = EXPECTED

    def schema(self) -> Schema:
        texts: Schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        parts: Schema = {key: {"type": "string"} for key in KEYS}
        parts["packages"] = {"anyOf": [texts, {"type": "string"}]}
        parts["python"] = {"type": ["string", "number"]}
        whole: Schema = {"type": "object", "properties": parts, "additionalProperties": False}
        return {"anyOf": [{"type": "string"}, texts, whole]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if reader.is_alone and (path := _file_named(plain_data(node))):
            refuse_unread(reader, node, path)
            return None
        return _told(reader, node, lambda given: environment_of(given, reader.folder))


class ModulesShape:
    """`modules`: names as `module load` takes them."""

    expected = MODULES_EXPECTED

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        return _told(reader, node, modules_of)


def _file_named(given: Any) -> str:
    """The file that tells of an environment; empty if it is told by names of packages, or wrong."""
    if isinstance(given, dict):
        given = next((given[key] for key in ("requirements", "uv", "conda") if key in given), "")
    return given if isinstance(given, str) else ""


def _told(reader: YamlReader, node: YamlNode, read: Callable[[Any], Any]) -> Any:
    try:
        return read(plain_data(node))
    except BadSoftware as error:
        reader.problem(node, str(error), error.suggestion)
        return None
