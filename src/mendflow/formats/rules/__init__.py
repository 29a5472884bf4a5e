"""Rule sets in files: native YAML, and YAWL's XML. The file's ending gives the format."""

from pathlib import Path
from typing import TYPE_CHECKING

from mendflow.core.model.rules import RuleSet
from mendflow.formats.rules.yaml_reader import load_yaml, read_rules
from mendflow.formats.rules.yaml_writer import write_rules
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.rules import xrs_reader
else:
    xrs_reader = LazyModule("mendflow.formats.rules.xrs_reader")

__all__ = ["load_rules", "read_rules", "write_rules"]


def load_rules(path: str | Path) -> RuleSet:
    """The rules in a file, of either format. Raises BadRules with every problem and its place. `load_xrs` also reports
    what an .xrs contains that has no counterpart here."""
    return xrs_reader.load_xrs(path).rule_set if Path(path).suffix == ".xrs" else load_yaml(path)
