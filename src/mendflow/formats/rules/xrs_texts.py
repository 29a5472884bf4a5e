"""YAWL's rule files as texts, for an editor that talks to a server and has no files.

Only this format is read on a server: a rules file in YAML may name flow files, which would be read, and run, there."""

import msgspec

from mendflow.core.model.rule_views import ReadRulesView, RuleFileView
from mendflow.core.model.rules import RuleSet
from mendflow.core.rules import demand_named
from mendflow.formats.rules.xrs_reader import read_xrs
from mendflow.formats.rules.xrs_writer import write_xrs


def read(text: str, name: str, types: dict[str, str]) -> ReadRulesView:
    """The rules in a text; `name` is used instead of the one in it. `types` are those of the flow's declarations."""
    rules, problems = read_xrs(text, f"{name or 'rules'}.xrs", types)
    named = msgspec.structs.replace(rules, name=name) if name else rules
    demand_named(named.name)
    return ReadRulesView(rules=named, problems=problems)


def write(rules: RuleSet) -> RuleFileView:
    text, problems = write_xrs(rules)
    return RuleFileView(name=rules.name, version=rules.version, text=text, problems=problems)
