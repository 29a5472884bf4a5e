"""Storage elements and their rules in YAML, with times and sizes as people write them.

    name: near
    url: s3://bucket/cms
    sites: [T2_HERE]
    options: {endpoint_url: http://127.0.0.1:9000, key: env:S3_KEY, secret: env:S3_SECRET}
    timeout: 30 s
    rules:
      to-physical:
        - {protocol: direct, match: "/store/(.*)", result: "$1"}

`rules` may also name a file beside this one: one like it, or a catalogue of CMS."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from mendflow.core.data.elements import normalize_element
from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.files import flow_text
from mendflow.formats.settings import normalize_settings, parse_settings
from mendflow.formats.tfc.cms import read_cms


class _Rule(NameRule, frozen=True, forbid_unknown_fields=True):
    """Refuses unknown keys."""


class _Rules(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"to_physical": "to-physical", "to_logical": "to-logical"},
):
    to_physical: tuple[_Rule, ...] = ()
    to_logical: tuple[_Rule, ...] = ()


def load_name_rules(path: Path) -> NameRules:
    """The rules in a file, in XML or YAML."""
    return read_name_rules(flow_text(path, str(path)), str(path))


def read_name_rules(text: str, source: str = "rules") -> NameRules:
    """The rules in a text. Raises InvalidRequest, or BadRules for XML."""
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return read_cms(text, source)
    return _rules(_mapping(text, source), source)


def write_name_rules(rules: NameRules) -> str:
    """The rules in YAML. Reading it gives the same rules."""
    written = {
        name: [msgspec.to_builtins(rule) for rule in listed]
        for name, listed in (("to-physical", rules.to_physical), ("to-logical", rules.to_logical))
        if listed
    }
    return yaml.safe_dump(written, sort_keys=False, width=120)


def load_element(path: Path) -> StorageElement:
    """The storage element that a file describes."""
    return read_element(flow_text(path, str(path)), str(path), path.parent)


def read_element(text: str, source: str = "storage", folder: Path | None = None) -> StorageElement:
    """The storage element in a text; rules in other files are looked for in the folder. Raises InvalidRequest."""
    found = _mapping(text, source)
    words = {str(word).replace("-", "_"): value for word, value in found.items()}
    rules = words.pop("rules", None)
    try:
        element = msgspec.convert(normalize_settings(words, StorageElement, source), StorageElement)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{source}: {error}") from error
    if isinstance(rules, str):
        if folder is None:
            raise InvalidRequest(f"{source}: rules in another file can only be named in a file")
        element = msgspec.structs.replace(element, rules=load_name_rules(folder / rules))
    elif rules is not None:
        element = msgspec.structs.replace(element, rules=_rules(rules, source))
    try:
        return normalize_element(element)
    except InvalidRequest as invalid:
        raise InvalidRequest(f"{source}: {invalid.message}", **invalid.fields) from None


def _rules(found: Any, source: str) -> NameRules:
    try:
        read = msgspec.convert(found, _Rules)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{source}: these are no rules: {error}") from error
    return NameRules(to_physical=_plain(read.to_physical), to_logical=_plain(read.to_logical))


def _plain(rules: tuple[_Rule, ...]) -> tuple[NameRule, ...]:
    return tuple(NameRule(**msgspec.structs.asdict(rule)) for rule in rules)


def _mapping(text: str, source: str) -> dict[Any, Any]:
    found = parse_settings(text, source)
    if not isinstance(found, dict):
        raise InvalidRequest(f"{source}: names and values are expected, such as `name: near`")
    return found
