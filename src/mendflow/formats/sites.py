"""Site files: the settings of a site in YAML, with times and sizes as people write them.

A setting that is told in milliseconds or bytes elsewhere is written without its unit here: `wall: 4 h` becomes
`wall_ms`, `memory: 8 GB` becomes `memory_bytes`."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from mendflow.core.model.problems import Invalid
from mendflow.core.model.sites import Site, flaw
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.formats.files import flow_text
from mendflow.formats.spelling import nearest


def load_site(path: Path) -> Site:
    """The site that a file describes. Raises Invalid, or BadFlow if the file cannot be read."""
    return read_site(flow_text(path, str(path)), str(path))


def read_site(text: str, source: str = "site") -> Site:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Invalid(f"{source}: this is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise Invalid(f"{source}: a site file has names and values, such as `name: cluster`")
    try:
        site = msgspec.convert(_measured(found, Site, source), Site)
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {error}") from error
    if wrong := flaw(site):
        raise Invalid(f"{source}: {wrong}")
    return site


def _measured(found: dict[Any, Any], kind: Any, source: str) -> dict[str, Any]:
    """The same with every time and size as a number, under its whole name."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    made: dict[str, Any] = {}
    for word, value in found.items():
        name = next((name for name in (f"{word}_ms", f"{word}_bytes", str(word)) if name in fields), "")
        if not name:
            known = [each.removesuffix("_ms").removesuffix("_bytes") for each in fields]
            meant = nearest(str(word), known)
            raise Invalid(f"{source}: {word!r} is not known here" + (f" (did you mean {meant}?)" if meant else ""))
        inner = fields[name].type
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            made[name] = _measured(value, inner, source)
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
