"""The rules and patterns that ship with the product, ready to use.

People write them in YAML, in `defaults/`. Every command that opens a store needs them, and reading YAML with its
expressions would take longer than most commands. So the package also has them as JSON, which
`python -m mendflow.formats.shipped_source` writes; a test compares the two."""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.patterns import Patterns

DEFAULTS: Final = Path(__file__).parent.parent / "defaults"
SHIPPED_FILE: Final = "shipped.json"


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """What `shipped.json` holds."""

    rules: RuleSet
    patterns: Patterns


def default_rules() -> RuleSet:
    """The rules that ship with the product."""
    return _shipped().rules


def default_patterns() -> Patterns:
    """The patterns that ship with the product."""
    return _shipped().patterns


@cache
def _shipped() -> Shipped:
    return msgspec.json.decode(DEFAULTS.joinpath(SHIPPED_FILE).read_bytes(), type=Shipped)
