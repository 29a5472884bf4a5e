"""Makes `defaults/shipped.json` from the YAML files beside it: `python -m mendflow.formats.shipped_source`."""

from pathlib import Path
from typing import Final

import msgspec

from mendflow.formats.patterns import read_patterns
from mendflow.formats.rules import load_rules
from mendflow.formats.shipped import SHIPPED_FILE, Shipped

DEFAULTS: Final = Path(__file__).parents[1] / "defaults"
PATH: Final = DEFAULTS / SHIPPED_FILE


def written_defaults() -> Shipped:
    """The rules and patterns as the YAML files have them. Raises BadRules or InvalidRequest."""
    patterns = read_patterns((DEFAULTS / "patterns.yaml").read_text(encoding="utf-8"))
    return Shipped(rules=load_rules(DEFAULTS / "rules.yaml"), patterns=patterns)


def shipped_text(defaults: Shipped) -> str:
    """The text of `shipped.json`. A line for each value, so that a change of a rule is a small change of the file."""
    return msgspec.json.format(msgspec.json.encode(defaults), indent=1).decode() + "\n"


if __name__ == "__main__":
    PATH.write_text(shipped_text(written_defaults()), encoding="utf-8")
