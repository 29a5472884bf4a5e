"""Rule sets in files: native YAML, and YAWL's XML. The file's ending gives the format."""

from pathlib import Path

from mendflow.core.model.rules import RuleSet
from mendflow.formats.rules.xrs_reader import XrsTranslation, load_xrs, read_xrs
from mendflow.formats.rules.xrs_writer import XrsFile, write_xrs
from mendflow.formats.rules.yaml_reader import load_yaml, read_rules
from mendflow.formats.rules.yaml_writer import write_rules

__all__ = [
    "XrsFile",
    "XrsTranslation",
    "load_rules",
    "load_xrs",
    "read_rules",
    "read_xrs",
    "rules_text",
    "write_rules",
    "write_xrs",
]


def load_rules(path: str | Path) -> RuleSet:
    """The rules in a file, of either format. Raises BadRules with every problem and its place. `load_xrs` also reports
    what an .xrs contains that has no counterpart here."""
    return load_xrs(path).rule_set if Path(path).suffix == ".xrs" else load_yaml(path)


def rules_text(rule_set: RuleSet, path: str | Path) -> str:
    """A rule set as the text of a file at this path, of either kind."""
    path = Path(path)
    return write_xrs(rule_set).text if path.suffix == ".xrs" else write_rules(rule_set, path.parent)
