"""The shapes of values in a flow file. Each shape reads a node, says what it expects if the node is something else, and
describes itself as JSON Schema: so the parser and the schema cannot disagree."""

import re
from typing import Any, Final, Protocol

from mendflow.core.expressions import RESERVED, ExpressionError, template_parts
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import DURATION_MS_MAX
from mendflow.core.model.shells import NAMED, SCRIPT_FILE, shell_flaw
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, auto_bound, duration_ms, is_auto, size_bytes
from mendflow.formats.hints import Hints, hint_for
from mendflow.formats.names import NAME, NAME_CHARS_MAX, VARIABLE
from mendflow.formats.spelling import nearest_word
from mendflow.formats.unit_hints import is_no_bound, likely_measure, with_unit
from mendflow.formats.yaml.document import (
    ListNode,
    MapNode,
    ScalarNode,
    YamlNode,
    describe,
    number_in,
    plain_data,
    spelling_flaw,
)
from mendflow.formats.yaml.reader import YamlReader
from mendflow.lazy import lazy_pattern

Schema = dict[str, Any]
VARIABLE_PATH: Final = lazy_pattern(r"([A-Za-z_]\w*)(?:\.[A-Za-z_][\w-]*|\[\d{1,9}\])*")
TEMPLATE_PATTERN: Final = r"\$\{\{"


class ValueShape(Protocol):
    """`read` returns the value, or None after it has reported the problem."""

    @property
    def expected(self) -> str: ...
    def schema(self) -> Schema: ...
    def read(self, reader: YamlReader, node: YamlNode) -> Any: ...


def refuse(shape: ValueShape, reader: YamlReader, node: YamlNode, suggestion: str = "") -> Any:
    reader.problem(node, f"{shape.expected} is expected here, not {describe(node)}", suggestion)
    return None


def sole_expression(text: str) -> str | None:
    """The expression that the text is, if it is one `${{ }}` and nothing else."""
    try:
        found = template_parts(text)
    except ExpressionError:
        return None
    return found[0].text if len(found) == 1 and found[0].is_expression else None


class TextShape:
    """A text, in which expressions may stand if `template`, and which may be empty unless `filled`. In `prose`, for
    people, they are as good as any other words."""

    def __init__(
        self,
        expected: str = "a text",
        *,
        template: bool = True,
        pattern: str = "",
        filled: bool = False,
        prose: bool = False,
        hint: str = "",
    ) -> None:
        self.hint = hint
        self.prose = prose
        self.expected = expected
        self.filled = filled
        self.template = template
        self.pattern = pattern

    def schema(self) -> Schema:
        return (
            {"type": "string", "pattern": self.pattern} if self.pattern else {"type": ["string", "number", "boolean"]}
        )

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if not isinstance(node, ScalarNode) or node.value is None:
            return self.refuse(reader, node)
        text = node.value if isinstance(node.value, str) else node.written
        if (self.pattern and not re.search(self.pattern, text)) or (self.filled and not text.strip()):
            return self.refuse(reader, node)
        if "\0" in text:
            reader.problem(node, "this text holds a NUL character, which no command can take; take it out")
            return None
        if self.template:
            reader.template(node)
        elif "${{" in text and not self.prose:
            reader.problem(node, f"no expression can stand here: {self.expected.rstrip(',')} is expected as it is")
            return None
        return text

    def refuse(self, reader: YamlReader, node: YamlNode) -> None:
        hint = f"; {self.hint}" if self.hint else ""
        reader.problem(node, f"{self.expected} is expected here, not {describe(node)}{hint}")


class ShellShape:
    """The name of a shell, or a template with the script's file in it."""

    expected = f"{', '.join(NAMED)} or a template such as `Rscript {SCRIPT_FILE}`"

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(NAMED)}, {"type": "string", "pattern": r"\S\s.*\{0\}"}]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or not node.value.strip():
            return refuse(self, reader, node)
        if flaw := shell_flaw(node.value):
            reader.problem(node, flaw)
            return None
        return node.value


class ChoiceShape:
    """One of a few words. `elsewhere` has our words for those of other tools, `hint` says what else was meant."""

    def __init__(self, *words: str, elsewhere: Hints | None = None, hint: str = "") -> None:
        self.words = words
        self.elsewhere = elsewhere or {}
        self.hint = hint
        self.expected = "one of " + ", ".join(words)

    def schema(self) -> Schema:
        return {"enum": list(self.words)}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if value in self.words:
            return str(value)
        ours = hint_for(value, self.elsewhere) if isinstance(value, str) else ""
        suggestion = f"`{ours}`" if ours else nearest_word(value, self.words) if isinstance(value, str) else ""
        message = f"{self.expected} is expected here, not {describe(node)}"
        reader.problem(node, f"{message}; {self.hint}" if self.hint and not suggestion else message, suggestion)
        return None


class FlagShape:
    expected = "true or false"

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        return refuse(self, reader, node)


class PresenceShape:
    """Enabled by its presence: `exit:` or `exit: true`."""

    expected = "true, or nothing,"

    def schema(self) -> Schema:
        return {"enum": [True, None]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if isinstance(node, ScalarNode) and (node.value is None or node.value is True):
            return True
        return refuse(self, reader, node)


class NumberShape:
    """A number. `expression` says what an expression in its place becomes: it is refused (empty), kept as a template,
    or taken out as an Expr."""

    def __init__(self, *, whole: bool = False, expression: str = "", least: int = 0) -> None:
        self.whole = whole
        self.expression = expression
        self.least = least
        kind = "a whole number" if whole else "a number"
        self.expected = f"{kind} from {least} on" + (", or ${{ an expression }}," if expression else "")

    def schema(self) -> Schema:
        number: Schema = {"type": "integer" if self.whole else "number", "minimum": self.least}
        return {"anyOf": [number, {"type": "string", "pattern": TEMPLATE_PATTERN}]} if self.expression else number

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        number = number_in(node)
        if number is not None and number >= self.least and (not self.whole or isinstance(number, int)):
            return number if self.whole else float(number)
        value = node.value if isinstance(node, ScalarNode) else None
        if self.expression and isinstance(node, ScalarNode) and isinstance(value, str) and "${{" in value:
            return expression_in(reader, node, value, self.expression)
        return refuse(self, reader, node)


def expression_in(reader: YamlReader, node: ScalarNode, text: str, wanted: str) -> Any:
    """The expression that stands where a number could."""
    reader.template(node)
    if wanted == "template":
        return text
    sole = sole_expression(text)
    if sole is None:
        reader.problem(node, "one expression and nothing around it is expected here, as ${{ ... }}")
    return Expr(sole or "0")


class MeasureShape:
    """A duration or a size with its unit, or an expression as for a number."""

    def __init__(self, kind: str, expression: str = "", *, positive: bool = False, learned: bool = False) -> None:
        """With `learned` it may be `auto`, or `auto up to` a bound."""
        self.kind = kind
        self.positive = positive
        self.expression = expression
        self.learned = learned
        example = DURATION_EXAMPLES if kind == "duration" else SIZE_EXAMPLES
        self.expected = f"a {kind} (such as {example})"

    def schema(self) -> Schema:
        example = "90 s" if self.kind == "duration" else "2 GB"
        pattern = (r"^\s*(P|[0-9])" if self.kind == "duration" else r"^\s*[0-9]") + (
            f"|{TEMPLATE_PATTERN}" if self.expression else ""
        )
        pattern += r"|^\s*auto\b" if self.learned else ""
        return {"type": "string", "pattern": pattern, "examples": [example]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if (plain := number_in(node)) is not None:
            message = f"{self.expected} is expected here; {plain:g} lacks its unit"
            reader.problem(node, message, with_unit(plain, self.kind))
            return None
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(node, ScalarNode) and isinstance(value, str):
            if "${{" in value and self.expression:
                return expression_in(reader, node, value, self.expression)
            if self.learned and is_auto(value):
                return self._read_bound(reader, node, value)
            number = duration_ms(value) if self.kind == "duration" else size_bytes(value)
            if number == 0 and self.positive:
                reader.problem(node, f"{value} is not enough for anything; take it out if there is no bound")
                return None
            if number is not None and self.kind == "duration" and number > DURATION_MS_MAX:
                reader.problem(node, f"{value} is longer than ten years; nothing waits that long")
                return None
            if number is not None:
                return number
            told = "; leave the key out if there is no bound" if is_no_bound(value) else ""
            message = f"{self.expected} is expected here, not {describe(node)}{told}"
            reader.problem(node, message, likely_measure(value, self.kind))
            return None
        return refuse(self, reader, node)

    def _read_bound(self, reader: YamlReader, node: ScalarNode, text: str) -> str | None:
        bound = auto_bound(text)
        if not bound or (duration_ms(bound) if self.kind == "duration" else size_bytes(bound)):
            return text
        example = "4 h" if self.kind == "duration" else "16 GB"
        reader.problem(node, f"`{bound}` is not a {self.kind} that can be a bound; write `auto up to {example}`")
        return None


class InstantShape:
    """A moment: an ISO 8601 text or an expression that gives milliseconds since 1970."""

    expected = "a moment (such as 2030-01-31T08:00:00Z), or ${{ an expression }},"
    pattern: Final = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:\d\d)")

    def schema(self) -> Schema:
        return {"type": "string", "examples": ["2030-01-31T08:00:00Z"]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(node, ScalarNode) and isinstance(value, str):
            if "${{" in value:
                reader.template(node)
                return Expr(sole_expression(value) or "0")
            if found := self.pattern.fullmatch(value):
                whole = value if found.group(1) else re.sub(r"(T\d\d:\d\d)", r"\1:00", value)
                return reader.expression(f"timestamp('{whole}')", node.place)
        return refuse(self, reader, node)


LITERAL: Final = lazy_pattern(r"""[-+]?[0-9.]+(e[-+]?[0-9]+)?u?|null|'[^']*'|"[^"]*\"""", re.IGNORECASE)


class ConditionShape:
    """An expression, bare or in `${{ }}`. Unless it may give `anything` it must give true or false."""

    def __init__(
        self, expected: str = "a condition (such as ${{ jobs.count.outputs.rows > 0 }})", *, anything: bool = False
    ) -> None:
        self.expected = expected
        self.anything = anything

    def schema(self) -> Schema:
        return {"type": ["string", "boolean"], "minLength": 1}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, (str, bool)) or node.value == "":
            return refuse(self, reader, node)
        if isinstance(node.value, bool):
            return Expr(str(node.value).lower())
        bare = node.value if "${{" not in node.value else sole_expression(node.value) or ""
        if not self.anything and LITERAL.fullmatch(bare.strip()):
            reader.problem(node, f"a condition gives true or false; `{bare.strip():.40}` never does")
            return None
        if "${{" not in node.value:
            quoted = reader.text[node.place.start : node.place.start + 1] in ("'", '"')
            return reader.expression(node.value.strip(), reader.further(node.place, int(quoted)))
        sole = sole_expression(node.value)
        if sole is None:
            reader.problem(node, "one expression is expected here; put all of it into one ${{ ... }}")
            return None
        reader.template(node)
        return Expr(sole)


class DataShape:
    """Any data; its texts may hold expressions."""

    expected = "data"

    def schema(self) -> Schema:
        return {}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        pending = [node]
        while pending:
            match pending.pop():
                case ScalarNode() as scalar:
                    reader.template(scalar)
                    if told := spelling_flaw(scalar):
                        reader.problem(scalar, told)
                case ListNode(parts=parts):
                    pending.extend(parts)
                case MapNode(entries=entries):
                    for entry in entries.values():
                        reader.template(entry.key)
                        pending.append(entry.value)
        return plain_data(node)


class NameShape:
    """A name: letters, digits, `_` and `-`. A variable has no `-`, and is no word of expressions."""

    def __init__(self, what: str = "a name", *, variable: bool = False) -> None:
        self.variable = variable
        self.expected = f"{what} (letters, digits{' and _' if variable else ', _ and -'}; first a letter)"

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{(VARIABLE if self.variable else NAME).pattern}$"}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or not (VARIABLE if self.variable else NAME).fullmatch(value):
            likely = (
                re.sub(r"\W+", "_", str(value)) if self.variable else re.sub(r"[^\w-]+", "-", str(value)).strip("-")
            )
            pattern = VARIABLE if self.variable else NAME
            return refuse(self, reader, node, f"`{likely}`" if pattern.fullmatch(likely) else "")
        if len(value) > NAME_CHARS_MAX:
            reader.problem(node, f"a name may have {NAME_CHARS_MAX} characters; this has {len(value)}")
            return None
        if self.variable and (value in RESERVED or value == "inputs"):
            reader.problem(node, f"`{value}` means something in expressions already; take another name")
            return None
        return value


class MapOf:
    """A map from names, of any kind unless `keys` says which, to values of one shape."""

    def __init__(self, values: ValueShape, keys: NameShape | None = None, expected: str = "a map") -> None:
        self.values = values
        self.keys = keys
        self.expected = expected

    def schema(self) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.values.schema()}
        if self.keys is not None:
            schema["propertyNames"] = {"pattern": self.keys.schema()["pattern"]}
        return schema

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if not isinstance(node, MapNode):
            return refuse(self, reader, node)
        for entry in node.entries.values():
            if self.keys is not None:
                self.keys.read(reader, entry.key)
        return {name: self.values.read(reader, entry.value) for name, entry in node.entries.items()}


class ListOf:
    """A list, or with `single` also one value in place of a list of one."""

    def __init__(self, values: ValueShape, *, single: bool = False, expected: str = "") -> None:
        self.values = values
        self.single = single
        self.expected = expected or f"a list of {values.expected}"

    def schema(self) -> Schema:
        items = {"type": "array", "items": self.values.schema()}
        return {"anyOf": [self.values.schema(), items]} if self.single else items

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        if isinstance(node, ListNode):
            return [self.values.read(reader, part) for part in node.parts]
        return [self.values.read(reader, node)] if self.single else refuse(self, reader, node)


class Either:
    """A map if the node is one, else the other shape."""

    def __init__(self, map_shape: ValueShape, other: ValueShape) -> None:
        self.map_shape = map_shape
        self.other = other
        self.expected = f"{map_shape.expected} or {other.expected}"

    def schema(self) -> Schema:
        return {"anyOf": [self.map_shape.schema(), self.other.schema()]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        return (self.map_shape if isinstance(node, MapNode) else self.other).read(reader, node)


class DeferredShape:
    """Something that is read by whoever asked for it, such as the body of a loop: it is given as the node it is."""

    def __init__(self, expected: str, definition: str) -> None:
        self.expected = expected
        self.definition = definition

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.definition}"}

    def read(self, _: YamlReader, node: YamlNode) -> YamlNode:
        return node
