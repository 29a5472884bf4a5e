"""Cases of other engines stand in the list of cases, beside this server's own, with their engine's name."""

import asyncio

import msgspec

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.views import CaseQuery, CaseView
from tests.services.recovery.kit import World, flow

A = JobActivity(name="a", command="true")


async def told(world: World, case: str, status: str = "running", engine: str = "north") -> CaseView:
    return await world.domain.engine_case(engine, case, "ship", {"status": status, "data": {"crew": 3}}, who="ann")


async def listed(world: World, **query: str) -> list[tuple[str, str, str]]:
    rows = (await world.domain.find_cases(msgspec.convert(query, CaseQuery))).rows
    return [(str(view.id), view.status, view.engine) for view in rows]


async def test_cases_of_other_engines_are_listed_searched_and_counted_beside_our_own(world: World) -> None:  # EX-10
    await world.domain.register_engine("north", who="ann")
    first = await world.start(flow(A))
    await asyncio.sleep(0.002)
    await told(world, "s-1")
    await asyncio.sleep(0.002)
    last = await world.start(flow(A))
    assert await listed(world) == [(last, "running", ""), ("north:s-1", "running", "north"), (first, "running", "")]
    assert await listed(world, flow="ship") == [("north:s-1", "running", "north")]
    assert await listed(world, where="engine == 'north' && inputs.crew == 3") == [("north:s-1", "running", "north")]
    assert [id for id, _, _ in await listed(world, where="engine == ''")] == [last, first]
    assert (await world.domain.count_cases(by="engine")).counts == {"": 2, "north": 1}
    assert [id for id, _, _ in await listed(world, order="started")] == [first, "north:s-1", last]


async def test_a_page_continues_after_a_case_of_another_engine_without_gap_or_repetition(world: World) -> None:
    # EX-10
    await world.domain.register_engine("north", who="ann")
    await world.domain.deploy(flow(A))
    for number in range(4):
        await told(world, f"s-{number}")
        await world.domain.start("f", {}, who="me")
        await asyncio.sleep(0.002)
    for order in ("-started", "started", "flow", "-id"):
        seen, query = list[str](), CaseQuery(limit=3, order=order)
        while True:
            page = await world.domain.find_cases(query)
            seen += [str(view.id) for view in page.rows]
            if not page.next:
                break
            query = CaseQuery(limit=3, order=order, after=page.next)
        assert len(seen) == len(set(seen)) == 8, order
        assert seen == [id for id, _, _ in await listed(world, order=order)]


async def test_the_list_tells_of_a_foreign_case_that_is_suspended_over_or_begun_again(world: World) -> None:  # EX-10
    await world.domain.register_engine("north", who="ann")
    await told(world, "s-1")
    await world.domain.suspend("north:s-1", who="ann")
    assert await listed(world, status="suspended") == [("north:s-1", "suspended", "north")]
    await told(world, "s-1", "completed")
    assert await listed(world, status="completed") == [("north:s-1", "completed", "north")]
    assert await listed(world, status="suspended") == []
    await told(world, "s-1")
    assert await listed(world) == [("north:s-1", "running", "north")]
    await world.restart()
    assert await listed(world) == [("north:s-1", "running", "north")], "also after the server was started again"
    await told(world, "s-1", "failed")
    assert await listed(world) == [("north:s-1", "failed", "north")]
