"""Rule sets in files: the native YAML, and YAWL's XML."""

from mendflow.formats.rules.yaml_file import load_rules, read_rules
from mendflow.formats.rules.yaml_writing import write_rules

__all__ = ["load_rules", "read_rules", "write_rules"]
