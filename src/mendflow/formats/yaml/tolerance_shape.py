"""How many iterations of a loop may fail: a number, or a part of them."""

from typing import Any, Final, NamedTuple

from mendflow.formats.yaml.document import ScalarNode, YamlNode, number_in
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import TEMPLATE_PATTERN, Schema, expression_in, refuse
from mendflow.lazy import lazy_pattern


class Percent(NamedTuple):
    percent: float


class ToleranceShape:
    """A whole number, a part such as `10 %`, or an expression that gives a number."""

    expected = "a number of iterations, a part such as `10 %`, or ${{ an expression }},"
    pattern: Final = lazy_pattern(r"\s*(\d+(?:\.\d+)?)\s*%\s*")

    def schema(self) -> Schema:
        text: Schema = {"type": "string", "pattern": rf"^\s*[0-9.]+\s*%\s*$|{TEMPLATE_PATTERN}", "examples": ["10 %"]}
        return {"anyOf": [{"type": "integer", "minimum": 0}, text]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        number = number_in(node)
        if isinstance(number, int) and number >= 0:
            return number
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(node, ScalarNode) and isinstance(value, str):
            if "${{" in value:
                return expression_in(reader, node, value, "expr")
            if (found := self.pattern.fullmatch(value)) and float(found.group(1)) <= 100:
                return Percent(float(found.group(1)))
        if isinstance(number, float) and 0 < number < 1:
            reader.problem(node, f"{self.expected} is expected here, not {number}", f"`{number * 100:g} %`")
            return None
        return refuse(self, reader, node)
