"""A condition in a file: an expression, bare or in `${{ }}`, over the roots of a context."""

from mendflow.core.expressions.conditions import condition_flaw
from mendflow.core.expressions.scanner import FAMILIES, scan
from mendflow.core.rules import ROOTS
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml.document import ScalarNode, SourceSpan, YamlNode, describe
from mendflow.formats.yaml.reader import YamlReader, shorten
from mendflow.formats.yaml.shapes import sole_expression


def condition(reader: YamlReader, node: YamlNode) -> str:
    """The text of a condition; problems are reported with their place."""
    if isinstance(node, ScalarNode) and isinstance(node.value, bool):
        return "true" if node.value else "false"
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or not node.value.strip():
        reader.problem(node, f'a condition (such as fault.type == "oom") is expected here, not {describe(node)}')
        return "false"
    text, place = node.value.strip(), start_of(reader, node)
    if "${{" in text:
        sole = sole_expression(text)
        if sole is None:
            reader.problem(node, "one expression is expected here; put all of it into one ${{ ... }}")
            return "false"
        place, text = reader.further(place, text.find(sole)), sole
    check_condition(reader, text, place)
    return text


def start_of(reader: YamlReader, node: ScalarNode) -> SourceSpan:
    quoted = reader.text[node.place.start : node.place.start + 1] in ("'", '"')
    return reader.further(node.place, int(quoted))


def check_condition(reader: YamlReader, text: str, place: SourceSpan) -> None:
    wrong = condition_flaw(text)
    if wrong is not None:
        where = reader.further(place, wrong.offset) if wrong.offset is not None else place
        reader.problem(where, f"in the condition `{shorten(text)}`: {wrong.message}")
        return
    for reference in scan(text).references:
        root = reference.name.partition(".")[0]
        if root in ROOTS:
            continue
        where = reader.further(place, reference.offset)
        if root in FAMILIES:
            reader.problem(where, f"`{root}` is for flows; a rule sees `job`, `item`, `items` and `case`")
        else:
            message = f"a rule knows no `{root}`; what was registered is `sources.{root}`"
            reader.problem(where, message, nearest_word(root, ROOTS))
