"""The repository of patterns as YAML: those that ship with the product, and a reader for more.

Every pattern is checked when it is read, so that an invalid one is refused with its name, not discovered when a job has
failed."""

from importlib.resources import files

import msgspec
import yaml

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.recovery.patterns import Patterns, check_pattern


def default_patterns() -> Patterns:
    """The patterns that ship with the product."""
    return read_patterns(files("mendflow").joinpath("defaults", "patterns.yaml").read_text(encoding="utf-8"))


def read_patterns(text: str) -> Patterns:
    """The patterns in a text. Raises InvalidRequest with what is wrong."""
    try:
        patterns = msgspec.convert(yaml.safe_load(text), _PatternFile)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise InvalidRequest(f"these are no patterns: {error}") from error
    for pattern in patterns.conversations:
        if problem := check_pattern(pattern.messages):
            raise InvalidRequest(f"{pattern.name}: {problem}", field=pattern.name)
    return Patterns(patterns.conversations, patterns.repairs)


class _PatternFile(Patterns, frozen=True, forbid_unknown_fields=True):
    """Refuses unknown headings."""
