"""Failures by their cause, over all cases: counted in one pass, named by a short id, told with who handled them."""

from collections.abc import Sequence

import msgspec
import pytest

from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.principals import EVERYTHING
from mendflow.core.model.repair import Conclusion, Decision, DecisionState, ExceptionType
from mendflow.services.recovery.failures import find_group, group_failures, group_id
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore

NOW = 1_760_000_000_000


def a_decision(number: int, cause: str, state: DecisionState = "done", result: str = "", **more: object) -> Decision:
    handled = state not in ("ignored", "waiting")
    said = Conclusion(rules="*", version=0, type=ExceptionType.ABORT, task="*", rule=3, exlet="later")
    made = Decision(
        id=f"night-{number}/1:1:1/abort",
        case=CaseId(f"night-{number}"),
        flow="night",
        type=ExceptionType.ABORT,
        at=NOW + number,
        state=state,
        item=ItemId("align[1]"),
        task="align",
        fault=Fault(name="exit", category=Category.JOB, message=cause),
        signature=f"job/exit: {cause}",
        exlet="later" if handled else "",
        conclusion=said if handled else None,
        context={"job": {"log_tail": "x" * 100}},
        result=result,
    )
    return msgspec.structs.replace(made, **more)


async def kept(decisions: Sequence[Decision]) -> MemoryStore:
    store = MemoryStore()
    await store.open()
    await store.write([Put("decision", each.id, msgspec.json.encode(each), 0) for each in decisions])
    return store


async def test_failures_of_one_cause_are_one_group_with_who_took_care_of_them() -> None:
    store = await kept(
        [
            *(a_decision(number, "no space", result="recovered") for number in range(5)),
            a_decision(5, "no space", result="passed-on"),
            a_decision(6, "no space", "ignored"),
            a_decision(7, "no space", "waiting"),
            a_decision(8, "no such file", result="recovered"),
        ]
    )
    first, second = await group_failures(store, sight=EVERYTHING)
    assert (first.count, first.cases, first.waiting, first.unhandled) == (8, 8, 1, 1)
    assert (first.type, first.category, first.message) == (ExceptionType.ABORT, "job", "no space")
    assert (first.first_at, first.last_at, first.flows, first.tasks) == (NOW, NOW + 7, ["night"], ["align"])
    [handling] = first.handled
    assert (handling.rules, handling.rule, handling.exlet) == ("*", 3, "later")
    assert handling.results == {"recovered": 5, "passed-on": 1}
    assert second.count == 1


async def test_the_same_words_of_another_type_are_another_group_and_selections_are_none() -> None:
    late = a_decision(1, "no space", type=ExceptionType.TIMEOUT)
    chosen = a_decision(2, "no space", type=ExceptionType.SELECTION)
    store = await kept([a_decision(0, "no space"), late, chosen])
    assert [group.type for group in await group_failures(store, sight=EVERYTHING)] == [
        ExceptionType.TIMEOUT,
        ExceptionType.ABORT,
    ]


async def test_groups_are_counted_since_a_moment_and_of_a_flow() -> None:
    other = a_decision(3, "no space", flow="day")
    store = await kept([*(a_decision(number, "no space") for number in range(3)), other])
    assert [group.count for group in await group_failures(store, sight=EVERYTHING, since=NOW + 2)] == [2]
    assert [group.count for group in await group_failures(store, sight=EVERYTHING, flow="day")] == [1]
    assert await group_failures(store, sight=EVERYTHING, flow="none") == []
    assert await group_failures(store, sight=EVERYTHING, since=NOW + 100) == []


async def test_a_group_is_found_by_the_beginning_of_its_id_and_tells_the_newest_first() -> None:
    store = await kept([*(a_decision(number, "no space") for number in range(3)), a_decision(9, "no such file")])
    id = group_id(ExceptionType.ABORT, "job/exit: no space")
    group, members, _ = await find_group(store, id[:4], EVERYTHING)
    assert group.id == id
    assert [member.at - NOW for member in members] == [2, 1, 0]
    with pytest.raises(NotFound, match="mendflow failures"):
        await find_group(store, "zzzz", EVERYTHING)
    with pytest.raises(NotFound, match="there is no group"):
        await find_group(store, "", EVERYTHING)


async def test_a_beginning_that_several_groups_have_is_told_with_all_of_them() -> None:
    store = await kept([a_decision(number, f"cause {number:c}") for number in range(ord("a"), ord("z"))])
    ids = [group.id for group in await group_failures(store, sight=EVERYTHING)]
    shared = next(id[0] for id in ids if sum(other.startswith(id[0]) for other in ids) > 1)
    with pytest.raises(NotFound, match="several groups begin"):
        await find_group(store, shared, EVERYTHING)
