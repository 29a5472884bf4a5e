"""Files of sources: below `sources:` each by its name, with times as people write them. Secrets are in other files."""

from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.sources import SourceSpec
from mendflow.formats.files import settings_text
from mendflow.formats.settings import normalize_settings, parse_settings


def load_sources(path: Path) -> list[SourceSpec]:
    """The sources that a file describes. Raises InvalidRequest, which names the source and what is wrong with it."""
    found = parse_settings(settings_text(path), str(path))
    named = found.get("sources") if isinstance(found, dict) and set(found) == {"sources"} else None
    if not isinstance(named, dict) or not named:
        raise InvalidRequest(f"{path}: a file of sources has `sources:`, and below it each source by its name")
    return [_source(str(name), settings, path) for name, settings in named.items()]


def _source(name: str, settings: Any, path: Path) -> SourceSpec:
    place = f"{path}: source {name}"
    if not isinstance(settings, dict):
        raise InvalidRequest(f"{place}: write its settings below it, such as `kind: http` and `address: https://...`")
    if "secret" in settings:
        raise InvalidRequest(f"{place}: a secret does not stand here; `secret_file:` names the file that it is in")
    given = {word: value for word, value in settings.items() if word != "secret_file"}
    made = {**normalize_settings(given, SourceSpec, place), "name": name}
    if secret_file := settings.get("secret_file"):
        made["secret"] = read_secret(path.parent / str(secret_file))
    try:
        return msgspec.convert(made, SourceSpec)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{place}: {error}") from None


def read_secret(path: Path) -> str:
    """Read from a file, never from the command line, where other users could see it."""
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read the secret file {path}; check that it exists") from error
    if not secret:
        raise InvalidRequest(f"the secret file {path} is empty")
    return secret
