"""Reads patterns for the repository from YAML.

Every pattern is checked when it is read, so that an invalid one is refused with its name, not discovered when a job has
failed."""

import msgspec
import yaml

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.recovery.patterns import Patterns, check_pattern


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
