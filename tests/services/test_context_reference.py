"""The reference of the context names all that a condition can ask for."""

import re
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.repair_views import DecisionQuery
from mendflow.services.api.domain import Domain
from tests.services.test_repairs import ran, rules_for

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rules-format.md"
BY_NAME = ("items", "values", "measures", "history", "sources")
"""Roots whose members are called by whoever made them, or that stand elsewhere."""


def documented() -> dict[str, set[str]]:
    """The fields of each root, from the table."""
    section = PAGE.read_text().partition("## The context")[2].partition("\n## ")[0]
    found: dict[str, set[str]] = {}
    for first, second in re.findall(r"^\| (`.*?) \| (.*) \|$", section, re.MULTILINE):
        for root in re.findall(r"`(\w+)`", first):
            found.setdefault(root, set()).update(re.findall(r"`(\w+)`", second))
    return found


async def test_every_field_of_a_context_is_documented_and_nothing_else(domain: Domain, pilot: Any) -> None:
    # EX-6
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    case = await ran(domain, pilot)
    [repair] = [each for each in await domain.decisions(DecisionQuery(case=case)) if each.exlet == "again"]
    context = (await domain.decision(repair.id)).context
    told = documented()
    assert set(told) == set(context)
    for root, fields in context.items():
        if isinstance(fields, dict) and root not in BY_NAME:
            assert set(fields) <= told[root], f"{root}: {set(fields) - told[root]}"


@pytest.mark.parametrize("root", ["case", "item", "outcome", "capacity", "event"])
async def test_what_is_documented_is_there(domain: Domain, pilot: Any, root: str) -> None:
    await domain.put_rules(rules_for("f", again="fault.exit_code == 7"), who="ann")
    case = await ran(domain, pilot)
    decision = (await domain.decisions(DecisionQuery(case=case)))[0]
    assert documented()[root] == set((await domain.decision(decision.id)).context[root])
