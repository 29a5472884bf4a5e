"""A changed rule is held to all cornerstones in pieces: whoever else asks is answered in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mendflow.core.model.errors import Conflict
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import RuleSelector, RuleSpec
from mendflow.core.model.rule_views import RuleRevision
from mendflow.core.model.rules import ALL_TASKS, Rule, RuleSet, RuleTree
from mendflow.services.api.domain import Domain
from mendflow.services.base import loop_yielder
from tests.services.test_repairs import AGAIN, TOUCH

ABORT = ExceptionType.ABORT
STONES = 40


def many() -> RuleSet:
    """A row of rules, each with the case that it was made for; the last is on trial."""
    rules = {
        number: Rule(
            id=number,
            condition=f"fault.exit_code == {number}",
            exlet=AGAIN.name,
            on_false=number + 1 if number <= STONES else None,
            cornerstone={"fault": {"exit_code": number}},
            passive=number > STONES,
        )
        for number in range(1, STONES + 2)
    }
    trees = {ABORT: {ALL_TASKS: RuleTree(rules, 1)}}
    return RuleSet(name="f", trees=trees, exlets={AGAIN.name: AGAIN, TOUCH.name: TOUCH})


class LoopTurns:
    count = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[LoopTurns]:
    """How often others had the event loop meanwhile."""
    turns = LoopTurns()

    async def others() -> None:
        while True:
            await asyncio.sleep(0)
            turns.count += 1

    asking = asyncio.create_task(others())
    try:
        yield turns
    finally:
        asking.cancel()


async def change(domain: Domain) -> None:
    await domain.change_rule("f", RuleRevision(rule=1, condition="fault.exit_code in [1, 99]"), who="ann")


async def check_only(domain: Domain) -> None:
    await domain.change_rule(
        "f", RuleRevision(rule=1, condition="fault.exit_code == 1 || false", try_only=True), who="a"
    )


async def retire(domain: Domain) -> None:
    await domain.retire_rule("f", RuleSelector(rule=STONES, type=ABORT, task=ALL_TASKS), who="ann")


async def promote(domain: Domain) -> None:
    await domain.promote_rule("f", RuleSelector(rule=STONES + 1, type=ABORT, task=ALL_TASKS), who="ann")


async def add(domain: Domain) -> None:
    wish = RuleSpec(condition="fault.exit_code == 77", exlet=TOUCH.name, rules="f", type=ABORT, task=ALL_TASKS)
    await domain.add_rule(wish, who="ann")


async def try_out(domain: Domain) -> None:
    await domain.try_rule(RuleSpec(condition="fault.exit_code == 77", exlet=TOUCH.name, rules="f", type=ABORT))


@pytest.mark.parametrize("ask", [change, check_only, retire, promote, add, try_out], ids=lambda each: each.__name__)
async def test_others_have_the_loop_between_two_cornerstones(
    domain: Domain, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Domain], Coroutine[Any, Any, None]]
) -> None:  # SE-3
    await domain.put_rules(many(), who="ann")
    monkeypatch.setattr(loop_yielder, "HELD_S", 0.0)  # as if each of them took long
    async with counted_turns() as turns:
        await ask(domain)
    assert turns.count >= STONES // 2


async def test_a_set_that_changes_meanwhile_is_checked_again(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-3
    await domain.put_rules(many(), who="ann")
    monkeypatch.setattr(loop_yielder, "HELD_S", 0.0)
    both = asyncio.gather(
        change(domain), domain.change_rule("f", RuleRevision(rule=2, condition="fault.exit_code in [2, 88]"), who="bob")
    )
    await both
    stored = (await domain.rule_set("f")).rules
    assert stored is not None
    rules = stored.trees[ABORT][ALL_TASKS].rules
    assert [rules[1].condition, rules[2].condition] == ["fault.exit_code in [1, 99]", "fault.exit_code in [2, 88]"]


async def test_a_cornerstone_far_down_the_row_is_still_protected(domain: Domain) -> None:  # EX-7
    await domain.put_rules(many(), who="ann")
    wide = RuleRevision(rule=1, condition="fault.exit_code > 0", exlet=TOUCH.name)
    with pytest.raises(Conflict, match="cornerstone of rule 2 "):
        await domain.change_rule("f", wide, who="ann")
