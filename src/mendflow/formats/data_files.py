"""Files of data that people write: YAML or JSON, of which nothing changes quietly."""

from collections.abc import Collection

from mendflow.core.model.errors import BadFlow, InvalidRequest
from mendflow.core.model.exact_json import InexactJson, InexactNumber, decode_as_written, exact_value
from mendflow.core.model.text_data import number_text
from mendflow.core.model.values import Value
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, parse, plain_data, spelling_flaw

JSON_ENDING = ".json"


def data_of(text: str, file: str) -> Value:
    """The data of a JSON file, if its name says so, or of a YAML file. Raises InvalidRequest."""
    if file.endswith(JSON_ENDING):
        return _exact_json(_json(text, file), file)
    return _exact_yaml(_yaml(text, file), file)


def named_data(text: str, file: str, typed: Collection[str]) -> tuple[dict[str, Value], dict[str, str]]:
    """The values of a file by their names; single words of the names that are `typed` apart, as they are written.
    Raises InvalidRequest."""
    values: dict[str, Value] = {}
    words: dict[str, str] = {}
    if file.endswith(JSON_ENDING):
        root = _json(text, file)
        for name, value in root.items() if isinstance(root, dict) else ():
            if name in typed and (word := _word(value)) is not None:
                words[name] = word
            else:
                values[name] = _exact_json(value, file)
        is_map = isinstance(root, dict)
    else:
        node = _yaml(text, file)
        for name, entry in node.entries.items() if isinstance(node, MapNode) else ():
            if name in typed and isinstance(entry.value, ScalarNode) and entry.value.value is not None:
                words[name] = entry.value.written
            else:
                values[name] = _exact_yaml(entry.value, file)
        is_map = isinstance(node, MapNode)
    if not is_map:
        raise InvalidRequest(f"{file} must contain a map from input names to values")
    return values, words


def _json(text: str, file: str) -> Value:
    try:
        return decode_as_written(text.removeprefix("\ufeff"))
    except InexactJson as inexact:
        raise InvalidRequest(f"{file}: {inexact}") from None


def _exact_json(value: Value, file: str) -> Value:
    try:
        return exact_value(value)
    except InexactJson as inexact:
        raise InvalidRequest(f"{file}: {inexact}") from None


def _word(value: Value) -> str | None:
    """A text, a number, true or false as it is written in JSON; None for all else."""
    match value:
        case bool():
            return str(value).lower()
        case InexactNumber(text=text) | (str() as text):
            return text
        case int() | float():
            return number_text(value)
    return None


def _yaml(text: str, file: str) -> YamlNode:
    try:
        root, problems = parse(text, file, "it is to have values")
    except BadFlow as bad:
        raise InvalidRequest("\n".join(str(problem) for problem in bad.problems)) from None
    if problems:
        raise InvalidRequest("\n".join(str(problem) for problem in problems))
    return root


def _exact_yaml(node: YamlNode, file: str) -> Value:
    """The data of a node, unless a command would get something of it in other letters."""
    pending = [node]
    while pending:
        match pending.pop():
            case ScalarNode() as scalar if told := spelling_flaw(scalar):
                raise InvalidRequest(f"{file}:{scalar.place.line}:{scalar.place.column}: {told}")
            case ListNode(parts=parts):
                pending.extend(parts)
            case MapNode(entries=entries):
                pending.extend(entry.value for entry in entries.values())
    return plain_data(node)
