"""The page about rules files has every key that the reader of rules files knows."""

from pathlib import Path

from mendflow.formats.rules import rule_keys
from mendflow.formats.yaml import exlet_keys

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rules-format.md"


def test_every_key_is_on_the_page_about_rules_files() -> None:
    every = [rule_keys.FILE, rule_keys.RULE, rule_keys.LINKED, rule_keys.FLAT, exlet_keys.EXLET, exlet_keys.WORKLET]
    every += [own for _, own in exlet_keys.PRIMITIVES.values()] + [exlet_keys.COMPENSATE[1]]
    named = {name for table in every for name in table} | set(exlet_keys.PRIMITIVES) | {"compensate"}
    page = PAGE.read_text()
    assert sorted(name for name in named if f"`{name}`" not in page) == []
