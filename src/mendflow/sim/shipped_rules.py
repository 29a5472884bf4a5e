"""The rules and patterns that ship with the product, read once for all worlds of a process."""

from functools import cache
from importlib.resources import files

from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.patterns import Patterns
from mendflow.formats.patterns import default_patterns
from mendflow.formats.rules import read_rules


@cache
def shipped_rules() -> RuleSet:
    source = files("mendflow").joinpath("defaults", "rules.yaml")
    return read_rules(source.read_text(encoding="utf-8"), "defaults/rules.yaml")


@cache
def shipped_patterns() -> Patterns:
    return default_patterns()
