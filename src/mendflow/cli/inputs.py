"""Inputs from the command line, converted to the types that the flow declares.

`k=v` is read by the input's type; `k=@FILE` takes the content of a file, `k=@@...` a text that begins with @. A file
input is a path here, with or without the @, and a stored file in the case: pilots on other machines have it too. Or it
is a logical file, as `lfn:NAME`. An input of files takes a pattern, or a list in JSON. A table is the path of one, and
its rows in the case; the files that it names are stored, too."""

import glob
from pathlib import Path

import msgspec

from mendflow.client import Client
from mendflow.core.data.path_patterns import is_pattern
from mendflow.core.data.table_files import is_table, paths_in, with_files
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError
from mendflow.core.model.exact_json import InexactJson, NotJson, decode_exactly
from mendflow.core.model.flow import FILE, FILES, TABLE, Flow, Input
from mendflow.core.model.moments import MOMENTS, is_moment
from mendflow.core.model.text_data import data_or_text, declared_number, number_or_text, number_text
from mendflow.core.model.values import Value
from mendflow.core.model.yes_no import boolean_of
from mendflow.formats import YAML
from mendflow.formats.data_files import data_of, named_data
from mendflow.formats.spelling import nearest_word
from mendflow.formats.tables import ENDINGS, SEPARATED, BadTable, read_table

WORDS_MAX = 10
INPUTS_BYTES_MAX = 10_000_000
TYPED_WORDS = ("string", "number", "boolean", TABLE, *MOMENTS)
LISTS = ("", "list")


def read_inputs(declared: dict[str, Input], pairs: list[str], file: str, *, flow: str) -> dict[str, Value]:
    """The inputs of a case: those of the file, overridden by the pairs. Reports all errors at once."""
    values = values_in_file(file, declared) if file else {}
    wrong: list[RequestError] = []
    named = set(values)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        named.add(name)
        try:
            if not equals or not name:
                meant = f", or --inputs {pair} for a file of inputs" if Path(pair).is_file() else ""
                raise InvalidRequest(f"--input {pair!r} has no value; write --input NAME=VALUE{meant}")
            values[name] = input_value(name, text, declared.get(name, Input()))
        except (InvalidRequest, NotFound) as error:
            wrong.append(error)
    unknown = sorted(name for name in values if name not in declared)
    if unknown:
        known = ", ".join(declared) or "none"
        likely = nearest_word(unknown[0], declared)
        meant = f" (did you mean {likely}?)" if likely else ""
        told = f"the flow {flow} has no input {', '.join(unknown)}{meant}; its inputs are: {known}"
        wrong.append(InvalidRequest(told))
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


def with_default_files(flow: Flow, values: dict[str, Value], *, patterns: bool = False) -> dict[str, Value]:
    """The inputs, of which those of the type `file` that are not given are the defaults: files beside the flow, as if
    their paths were given. With `patterns` those of the type `files`, too: a server that is somewhere else, or may not
    read there, cannot look for them."""
    found = dict(values)
    for name, each in flow.inputs.items():
        if patterns and each.type == FILES and each.default is not None and name not in values and flow.folder:
            found[name] = _default_files(name, each.default, flow.folder)
    for name, each in flow.inputs.items():
        if each.type == FILE and isinstance(each.default, str) and name not in values:
            found[name] = _default_file(name, each.default, flow.folder)
    return found


def _default_files(name: str, default: Value, folder: str) -> list[Value]:
    """The files beside the flow that the default of an input names, as absolute paths; all else as it is."""
    found: list[Value] = []
    for part in default if isinstance(default, list) else [default]:
        if not isinstance(part, str) or part.startswith(LOGICAL_PREFIX) or "://" in part:
            found.append(part)
            continue
        pattern = str(Path(folder, part))
        paths = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
        if not paths:
            raise NotFound(f"input {name}: no file matches {pattern}, which is its default; give --input {name}=FILES")
        found.extend(str(Path(path).absolute()) for path in paths)
    return found


def paths_by_default(flow: Flow) -> list[str]:
    """The inputs whose default a server has to look for in its own files, each in a sentence: what is deployed has the
    pattern, and not the files."""
    found: list[str] = []
    for name, each in flow.inputs.items():
        parts = each.default if isinstance(each.default, list) else [each.default]
        paths = [part for part in parts if isinstance(part, str) and not part.startswith(LOGICAL_PREFIX)]
        if each.type == FILES and paths:
            found.append(
                f"the default of {name} is {', '.join(paths)} in {Path(flow.folder).absolute()}, where the server looks"
                " for it when a case starts: one that has tokens reads only below its `serve --files-root DIR`;"
                f" otherwise give --input {name}=FILES, or start the flow file, which uploads them"
            )
    return found


def _default_file(name: str, default: str, folder: str) -> str:
    if default.startswith(LOGICAL_PREFIX) or "://" in default:
        return default
    path = Path(folder, default)
    if not path.is_file():
        raise NotFound(f"input {name}: there is no file {path}, which is its default; give --input {name}=FILE")
    return str(path.absolute())


def files_of_defaults(flow: Flow, given: dict[str, Value]) -> dict[str, Value]:
    """The files that match the defaults of inputs that are not given, where no server looks for them."""
    patterns = {name: each.default for name, each in flow.inputs.items() if each.type == FILES and name not in given}
    added = with_default_files(flow, given).items()
    found = {name: value for name, value in added if name not in given and "://" not in str(value)}
    for name, default in patterns.items():
        texts = default if isinstance(default, list) else [default] if default is not None else []
        found[name] = [file for text in texts for file in _files(name, str(Path(flow.folder, text)))]
    for name, each in flow.inputs.items():
        if name not in given and (paths := paths_in(each.default, each.columns)):
            here = {path: str(Path(flow.folder, path)) for path in paths if not path.startswith(LOGICAL_PREFIX)}
            found[name] = with_files(each.default, each.columns, here)
    return found


async def upload_inputs(client: Client, flow: Flow, values: dict[str, Value]) -> dict[str, Value]:
    """File inputs uploaded to the server; everything else unchanged."""
    kept = dict(values)
    for name, value in values.items():
        if flow.inputs[name].type == FILE and isinstance(value, str) and "://" not in value:
            kept[name] = await _stored(client, value)
        elif flow.inputs[name].type == FILES and isinstance(value, list):
            # Whatever else is a path is one in the folder of the flow, where the server looks for it.
            kept[name] = [await _stored(client, each) if _is_here(each) else each for each in value]
        elif (columns := flow.inputs[name].columns) and is_table(value):
            paths = [path for path in paths_in(value, columns) if _is_here(path)]
            kept[name] = with_files(value, columns, {path: await _stored(client, path) for path in paths})
    return kept


def _is_here(source: Value) -> bool:
    return isinstance(source, str) and (source.startswith(LOGICAL_PREFIX) or Path(source).is_absolute())


async def _stored(client: Client, source: str) -> Value:
    logical = source.startswith(LOGICAL_PREFIX)
    return ((await client.datum(source)).ref() if logical else await client.upload(source)).as_value()


def json_or_text(text: str) -> Value:
    """A value without a declared type: data if nothing of the text is lost by that. `@FILE` is the file's content."""
    return input_value("value", text, Input())


def input_value(name: str, text: str, input: Input) -> Value:
    """What a text on the command line means as an input of this type; files as absolute paths."""
    if input.type == FILES:
        return _files(name, text)
    if input.type == FILE and text.startswith(LOGICAL_PREFIX):
        return text
    if input.type == FILE:
        path = Path(text.removeprefix("@"))
        if not path.is_file():
            raise NotFound(f"input {name}: there is no file {path}; check its name")
        return str(path.absolute())
    if text.startswith("@@"):
        return typed_value(name, text[1:], input)
    if not text.startswith("@") or input.type == TABLE:
        return typed_value(name, text, input)
    path = Path(text[1:])
    if path.suffix in SEPARATED and input.type in LISTS:
        return _table(name, path, input)
    if path.suffix in YAML and input.type in (*LISTS, "map"):
        return data_of(_content(text[1:]), text[1:])
    return typed_value(name, _content(text[1:]), input)


def typed_value(name: str, text: str, input: Input) -> Value:
    """What a text means as an input of this type."""
    if input.type == "string":
        return text
    if input.type == "boolean":
        return _boolean(name, text)
    if input.type == "number":
        return _number(name, text, input)
    is_json = text.lstrip()[:1] in ("[", "{")
    if input.type in MOMENTS and not is_json:
        return _moment(name, text.strip(), input.type)
    if input.type == TABLE and not is_json:
        return _table(name, Path(text.removeprefix("@")), input)
    if not is_json and not input.type:
        return data_or_text(text)
    try:
        value = decode_exactly(text)
    except NotJson:
        if not input.type:
            return text
        told = f"input {name} is {_expected_text(input.type)}; {text[:60]!r} is not"
        raise InvalidRequest(told + _likely_list(name, text, input.type)) from None
    except InexactJson as inexact:
        raise InvalidRequest(f"input {name}: {inexact}") from None
    fits = {
        "list": lambda: isinstance(value, list),
        "map": lambda: isinstance(value, dict),
        TABLE: lambda: is_table(value),
    }
    if input.type in fits and not fits[input.type]():
        told = f"input {name} is {_expected_text(input.type)}; {text[:60]!r} is not"
        raise InvalidRequest(told + _likely_list(name, text, input.type))
    return value


def _moment(name: str, text: str, type: str) -> Value:
    if not is_moment(type, text):
        raise InvalidRequest(f"input {name} is {MOMENTS[type]}; {text[:60]!r} is not")
    return text


def _table(name: str, path: Path, input: Input) -> Value:
    try:
        return read_table(path, input.columns)
    except BadTable as bad:
        raise InvalidRequest(f"input {name}: {bad.message}") from None


def _number(name: str, text: str, input: Input) -> Value:
    """A number. `1.10` is one only if the flow says that the input is a number: the default alone may be a version."""
    try:
        value = declared_number(text)
    except ValueError as flaw:
        raise InvalidRequest(f"input {name} is a number; {flaw}") from None
    if input.inferred and number_or_text(text.strip()) == text.strip():
        told = f"input {name} is a number, as its default {number_text(input.default)} is, and {text} would become"
        instead = f"`{name}: {{type: string, default: {number_text(input.default)}}}`"
        raise InvalidRequest(
            f"{told} {number_text(value)}; for a text write {instead} in the flow, and `type: number` for the number"
        )
    return value


def _likely_list(name: str, text: str, type: str) -> str:
    """What to write for the list that was probably meant, by words with commas or spaces between them."""
    words = text.replace(",", " ").split()
    if type != "list" or not words or len(words) > WORDS_MAX or any(sign in text for sign in "[]{}\"'"):
        return ""
    if is_pattern(text):
        return f"; a pattern is for an input of the type files: `inputs: {{{name}: {{type: files}}}}` in the flow"
    written = msgspec.json.format(msgspec.json.encode([data_or_text(word) for word in words]), indent=-1).decode()
    return f". Write --input '{name}={written}'"


def _files(name: str, text: str) -> list[Value]:
    """The files that match a pattern, or those of a list in JSON, as absolute paths; logical files as they are."""
    try:
        patterns = msgspec.json.decode(text, type=list[str]) if text.startswith("[") else [text]
    except msgspec.DecodeError:
        raise InvalidRequest(f"input {name} is a pattern such as 'data/*.txt', or a list of paths in JSON") from None
    found: list[Value] = []
    for pattern in patterns:
        if pattern.startswith(LOGICAL_PREFIX):
            found.append(pattern)
            continue
        paths = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
        if not paths:
            raise NotFound(
                f"input {name}: no file matches {pattern} here; check the pattern, and quote it for the shell"
            )
        found.extend(str(Path(path).absolute()) for path in paths)
    return found


def _boolean(name: str, text: str) -> bool:
    if (found := boolean_of(text)) is None:
        raise InvalidRequest(f"input {name} is true or false; {text[:60]!r} is neither")
    return found


def _expected_text(type: str) -> str:
    return {
        "number": "a number",
        "list": 'a list in JSON, such as ["a", "b"]',
        "map": 'a map in JSON, such as {"a": 1}',
        **MOMENTS,
        TABLE: f"a table: the path of a file that ends in {', '.join(ENDINGS)}, or a list of maps in JSON",
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


def values_in_file(path: str, declared: dict[str, Input]) -> dict[str, Value]:
    """The inputs that a file (`--inputs`) has."""
    if "=" in path and not Path(path).exists():
        raise InvalidRequest(f"--inputs takes a file with inputs; one value is --input {path}")
    typed = [name for name, each in declared.items() if each.type in TYPED_WORDS]
    values, words = named_data(_content(path), path, typed)
    for name, word in words.items():
        try:
            values[name] = typed_value(name, word, declared[name])
        except InvalidRequest as invalid:
            raise InvalidRequest(f"{path}: {invalid.message}") from None
    return values
