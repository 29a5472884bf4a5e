"""Settings in YAML, with times and sizes as people write them.

What is told in milliseconds or bytes elsewhere is written without its unit here: `wall: 4 h` becomes `wall_ms`,
`memory: 8 GB` becomes `memory_bytes`."""

from typing import Any

import msgspec
import yaml

from mendflow.core.model.problems import Invalid
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.formats.spelling import nearest


def settings_in(text: str, source: str) -> Any:
    """What a text in YAML holds. Raises Invalid."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Invalid(f"{source}: this is not YAML: {' '.join(str(error).split())}") from error


def measured(found: dict[Any, Any], kind: Any, source: str) -> dict[str, Any]:
    """The same with every time and size as a number, under its whole name."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    made: dict[str, Any] = {}
    for word, value in found.items():
        name = next((name for name in (str(word), f"{word}_ms", f"{word}_bytes") if name in fields), "")
        if not name:
            known = [each.removesuffix("_ms").removesuffix("_bytes") for each in fields]
            meant = nearest(str(word), known)
            raise Invalid(f"{source}: {word!r} is not known here" + (f" (did you mean {meant}?)" if meant else ""))
        inner = fields[name].type
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            made[name] = measured(value, inner, source)
        else:
            made[name] = _amount(str(word), name, value, source)
    return made


def _amount(word: str, name: str, value: Any, source: str) -> Any:
    if name == word or not isinstance(value, str):
        return value
    number, like = (duration_ms, DURATION_EXAMPLES) if name.endswith("_ms") else (size_bytes, SIZE_EXAMPLES)
    made = number(value)
    if made is None:
        raise Invalid(f"{source}: {word} {value!r} cannot be read; write one like {like}")
    return made
