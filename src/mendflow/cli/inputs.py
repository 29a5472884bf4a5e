"""Inputs from the command line, converted to the types that the flow declares.

`k=v` is parsed by the input's type; `k=@FILE` reads a file, `k=@@...` is a text that starts with @. A file input is a
path, with or without the @; it is uploaded, so that pilots on other machines have it. Or it is a logical file,
`lfn:NAME`."""

from pathlib import Path

import msgspec

from mendflow.client import Client
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Flow, Input
from mendflow.core.model.text_data import data_or_text
from mendflow.core.model.values import Value

INPUTS_BYTES_MAX = 10_000_000
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_inputs(declared: dict[str, Input], pairs: list[str], file: str, *, flow: str) -> dict[str, Value]:
    """The inputs of a case: those of the file, overridden by the pairs. Reports all errors at once."""
    values = _from_file(file) if file else {}
    wrong: list[RequestError] = []
    named = set(values)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        named.add(name)
        try:
            if not equals or not name:
                raise InvalidRequest(f"--input {pair!r} has no value; write --input NAME=VALUE")
            values[name] = _value(name, text, declared.get(name, Input()))
        except (InvalidRequest, NotFound) as error:
            wrong.append(error)
    unknown = sorted(name for name in values if name not in declared)
    if unknown:
        known = ", ".join(declared) or "none"
        wrong.append(InvalidRequest(f"the flow {flow} has no input {', '.join(unknown)}; its inputs are: {known}"))
    missing = [name for name, input in declared.items() if input.required and name not in named]
    if missing:
        wanted = " ".join(f"--input {name}=..." for name in missing)
        wrong.append(InvalidRequest(f"the flow {flow} needs {', '.join(missing)}; give {wanted}"))
    if len(wrong) > 1:
        raise InvalidRequest(
            "\n  ".join([f"the inputs are wrong in {len(wrong)} ways:", *(error.message for error in wrong)])
        )
    if wrong:
        raise wrong[0]
    return values


async def upload_inputs(client: Client, flow: Flow, values: dict[str, Value]) -> dict[str, Value]:
    """File inputs uploaded to the server; everything else unchanged."""
    kept = dict(values)
    for name, value in values.items():
        if flow.inputs[name].type == "file" and isinstance(value, str):
            logical = value.startswith(LOGICAL_PREFIX)
            kept[name] = ((await client.datum(value)).ref() if logical else await client.upload(value)).as_value()
    return kept


def json_or_text(text: str) -> Value:
    """A value without a declared type: data if nothing of the text is lost by that. `@FILE` is the file's content."""
    return _value("value", text, Input())


def _value(name: str, text: str, input: Input) -> Value:
    if input.type == "file" and text.startswith(LOGICAL_PREFIX):
        return text
    if input.type == "file":
        path = Path(text.removeprefix("@"))
        if not path.is_file():
            raise NotFound(f"input {name}: there is no file {path}; check its name")
        return str(path.absolute())
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        text = _content(text[1:])
    if input.type == "string":
        return text
    if input.type == "boolean":
        return _boolean(name, text)
    if not input.type:
        return data_or_text(text)
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise InvalidRequest(f"input {name} is {_expected_text(input.type)}; {text[:60]!r} is not") from None
    kinds = {"number": int | float, "list": list, "map": dict}
    if input.type in kinds and (not isinstance(value, kinds[input.type]) or isinstance(value, bool)):
        raise InvalidRequest(f"input {name} is {_expected_text(input.type)}; {text[:60]!r} is not")
    return value


def _boolean(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise InvalidRequest(f"input {name} is true or false; {text[:60]!r} is neither")


def _expected_text(type: str) -> str:
    return {
        "number": "a number",
        "list": 'a list in JSON, such as ["a", "b"]',
        "map": 'a map in JSON, such as {"a": 1}',
    }[type]


def _content(path: str) -> str:
    try:
        with open(path, "rb") as source:
            content = source.read(INPUTS_BYTES_MAX + 1)
        if len(content) > INPUTS_BYTES_MAX:
            raise InvalidRequest(f"{path} is larger than 10 MB; give it as an input of type file")
        return content.decode()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound(f"there is no file {path}; check its name") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not text; give it as an input of type file") from error


def _from_file(path: str) -> dict[str, Value]:
    text = _content(path)
    try:
        values = msgspec.json.decode(text) if path.endswith(".json") else msgspec.yaml.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{path} is neither JSON nor YAML: {error}") from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise InvalidRequest(f"{path} must contain a map from input names to values")
    return values
