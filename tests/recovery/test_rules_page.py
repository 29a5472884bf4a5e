"""The page about rules files has every key that the reader of rules files knows."""

from pathlib import Path

from mendflow.formats.rules import tables
from mendflow.formats.yaml import exlet_tables

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rules-format.md"


def test_every_key_is_on_the_page_about_rules_files() -> None:
    every = [tables.FILE, tables.RULE, tables.LINKED, tables.FLAT, exlet_tables.EXLET, exlet_tables.WORKLET]
    every += [own for _, own in exlet_tables.PRIMITIVES.values()] + [exlet_tables.COMPENSATE[1]]
    named = {name for table in every for name in table} | set(exlet_tables.PRIMITIVES) | {"compensate"}
    page = PAGE.read_text()
    assert sorted(name for name in named if f"`{name}`" not in page) == []
