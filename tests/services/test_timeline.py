"""A case over time: each item once, in the order in which they began, a page at a time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Branch, Choose, ForEach, JobActivity, Parallel, Receive, Sequence, UserTask
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.services.api import timeline_operations
from mendflow.services.api.timeline_index import TimelineIndex
from mendflow.services.runtime.server import Runtime, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


def loop(number: int, name: str = "each") -> ForEach:
    return ForEach(name=name, first=1, last=number, body=A)


async def test_pages_have_every_item_once_whatever_it_is(world: World) -> None:
    skipped = Choose(name="choose", branches=(Branch(Expr("false"), JobActivity(name="no", command="true")),))
    mixed = (loop(3), skipped, UserTask(name="ask", role="clerk"), Receive(name="hear", channel="news"))
    case = await world.start(flow(Parallel(name="all", branches=mixed)))
    whole = {str(item.item) for item in await world.domain.items(case)}
    found, after = list[str](), ""
    while True:
        page = await world.domain.case_timeline(case, limit=2, after=after)
        found += [str(row.item) for row in page.rows]
        assert page.total == len(whole) == page.items == page.read
        if not (after := page.cursor):
            break
    assert sorted(found) == sorted(whole) and len(found) == len(set(found))
    by_name = {band.name: (band.count, band.states) for band in page.folded}
    assert by_name["a"] == (3, {"waiting": 3}) and by_name["no"] == (1, {"skipped": 1})
    assert by_name["ask"] == (1, {"waiting": 1})


async def test_what_has_happened_since_is_seen_when_it_is_asked_again(world: World) -> None:
    case = await world.start(flow(Sequence(name="s", body=(loop(2), B))))
    assert [band.states for band in (await world.domain.case_timeline(case)).folded] == [{"waiting": 2}]
    await world.take(items=2)
    await world.pilot.exchange({"a[0]": Outcome(), "a[1]": Outcome()})
    await world.take()

    async def both() -> bool:
        seen = await world.domain.case_timeline(case)
        return {band.name: band.states for band in seen.folded} == {"a": {"completed": 2}, "b": {"running": 1}}

    await world.until(both, "all three")
    await world.report(b=Outcome())
    await world.until_status(case, "completed")

    async def over() -> bool:
        seen = await world.domain.case_timeline(case)
        return {band.name: band.states for band in seen.folded} == {"a": {"completed": 2}, "b": {"completed": 1}}

    await world.until(over, "its end")
    row = (await world.domain.case_timeline(case, name="b")).rows[0]
    assert row.state == "completed" and row.bars[-1].kind == "run" and row.bars[-1].pilot == "p-1"


async def test_a_repaired_item_is_one_row_with_its_attempts_and_the_repair(world: World) -> None:
    again = exlet("again", mend(Primitive.RESTART))
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "again"), exlets=[again]))
    case = await world.start(flow(A))
    await world.take()
    await world.report(a=FAILED)
    await world.take()
    await world.report(a=Outcome())
    await world.until_status(case, "completed")
    [row] = (await world.domain.case_timeline(case)).rows
    assert [bar.state for bar in row.bars if bar.kind == "run"] == ["failed", "completed"]
    assert [bar.attempt for bar in row.bars if bar.kind == "run"] == [1, 2]
    assert [(bar.kind, bar.note) for bar in row.bars if bar.kind == "repair"] == [("repair", "again")]
    assert all(bar.start <= bar.end for bar in row.bars)
    assert [bar.start for bar in row.bars] == sorted(bar.start for bar in row.bars)
    steps = await world.domain.case_timeline((await world.exlets(case))[0].id)
    assert [each.kind for each in steps.rows] == ["mend"]


async def test_only_items_of_the_time_and_the_name_that_are_asked_for(world: World) -> None:
    case = await world.start(flow(Sequence(name="s", body=(A, B))))
    await world.take()
    await world.report(a=Outcome())
    await asyncio.sleep(0.02)
    between = world.server.clock.now()
    await asyncio.sleep(0.02)
    await world.take()
    await world.report(b=Outcome())
    await world.until_status(case, "completed")
    later = await world.domain.case_timeline(case, begin=between)
    assert "b" in [row.item for row in later.rows] and later.start == between
    named = await world.domain.case_timeline(case, name="a")
    assert [row.item for row in named.rows] == ["a"] and named.total == 1
    ended = named.rows[0].bars[-1].end
    assert "a" not in [row.item for row in (await world.domain.case_timeline(case, begin=ended + 1)).rows]


async def test_bands_say_how_many_were_busy_at_once(world: World) -> None:
    case = await world.start(flow(loop(4)))
    await world.take(items=4)
    await asyncio.sleep(0.02)
    await world.pilot.exchange({f"a[{number}]": Outcome() for number in range(4)})
    await world.until_status(case, "completed")
    [band] = (await world.domain.case_timeline(case)).folded
    assert max(band.busy) == 4 and len(band.busy) == 60


@pytest.mark.parametrize("after", ["x", "-1", "9" * 20])
async def test_a_cursor_that_no_answer_had_is_refused_in_words(world: World, after: str) -> None:
    case = await world.start(flow(A))
    with pytest.raises(InvalidRequest, match="cursor"):
        await world.domain.case_timeline(case, after=after)


async def test_times_in_the_wrong_order_are_refused(world: World) -> None:
    case = await world.start(flow(A))
    with pytest.raises(InvalidRequest, match="after `to`"):
        await world.domain.case_timeline(case, begin=2, end=1)


async def test_the_first_answer_does_not_wait_for_all_of_a_large_case(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, build = asyncio.Event(), TimelineIndex.build

    async def slow(self: TimelineIndex, runtime: Runtime, store: Store, last_serial: int) -> None:
        await go_on.wait()
        await build(self, runtime, store, last_serial)

    monkeypatch.setattr(TimelineIndex, "build", slow)
    monkeypatch.setattr(timeline_operations, "FIRST_ANSWER_S", 0.01)
    case = await world.start(flow(loop(7)))
    await world.quiet()
    first = await world.domain.case_timeline(case, limit=3)
    assert [row.item for row in first.rows] == ["a[0]", "a[1]", "a[2]"]
    assert (first.total, first.items, first.read, first.cursor) == (7, 7, 3, "3")
    assert [(band.name, band.count, band.states) for band in first.folded] == [("a", 7, {"waiting": 7})]
    go_on.set()

    async def read() -> bool:
        return (await world.domain.case_timeline(case)).read == 7

    await world.until(read, "all of it")
    rest = await world.domain.case_timeline(case, limit=10, after=first.cursor)
    assert [row.item for row in rest.rows] == ["a[3]", "a[4]", "a[5]", "a[6]"]
