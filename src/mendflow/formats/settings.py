"""Settings in YAML, with times and sizes as people write them.

Fields in milliseconds or bytes are written without that suffix: `wall: 4 h` becomes `wall_ms`, `memory: 8 GB` becomes
`memory_bytes`."""

from collections.abc import Collection
from typing import Any

import msgspec
import yaml

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.formats.spelling import nearest_word


def parse_settings(text: str, source: str) -> Any:
    """The content of a YAML text. Raises InvalidRequest."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{source}: this is not YAML: {' '.join(str(error).split())}") from error


def normalize_settings(found: dict[Any, Any], kind: Any, source: str) -> dict[str, Any]:
    """The same with every time and size as a number, under its full name."""
    try:
        return dict(_setting(str(word), value, kind) for word, value in found.items())
    except InvalidRequest as invalid:
        raise InvalidRequest(f"{source}: {invalid.message}") from None


def parse_setting(word: str, value: Any, kind: Any) -> tuple[str, Any]:
    """The full name of one setting, and its value in the right type. Raises InvalidRequest."""
    name, made = _setting(word, value, kind)
    try:
        return name, msgspec.convert(made, _fields(kind)[name].type)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{word}: {error}") from None


def nested_kind(kind: Any, word: str) -> Any:
    """The type of a nested setting; None for others."""
    inner = _fields(kind)[word].type if word in _fields(kind) else None
    return inner if isinstance(inner, type) and issubclass(inner, msgspec.Struct) else None


def missing_settings(kind: Any, given: Collection[str]) -> list[str]:
    """Required settings that are missing."""
    return [name for name, field in _fields(kind).items() if field.required and name not in given]


def _fields(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _setting(word: str, value: Any, kind: Any) -> tuple[str, Any]:
    fields = _fields(kind)
    name = next((name for name in (word, f"{word}_ms", f"{word}_bytes") if name in fields), "")
    if not name:
        known = [each.removesuffix("_ms").removesuffix("_bytes") for each in fields]
        meant = nearest_word(word, known)
        raise InvalidRequest(f"{word!r} is not known here" + (f" (did you mean {meant}?)" if meant else ""))
    inner = fields[name].type
    if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return name, dict(_setting(str(each), below, inner) for each, below in value.items())
    return name, _amount(word, name, value)


def _amount(word: str, name: str, value: Any) -> Any:
    if name == word or not isinstance(value, str):
        return value
    number, like = (duration_ms, DURATION_EXAMPLES) if name.endswith("_ms") else (size_bytes, SIZE_EXAMPLES)
    made = number(value)
    if made is None:
        raise InvalidRequest(f"{word} {value!r} cannot be read; write one like {like}")
    return made
