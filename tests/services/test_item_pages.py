"""Items a page at a time: each once, in one order, at a cost that is the page's and not the case's."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from mendflow.core.engine.messages import RestartItem
from mendflow.core.model.errors import RequestError
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Branch, Call, Choose, ForEach, JobActivity, Parallel, Receive, UserTask
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.views import ItemState, ItemView, NameCount
from mendflow.services.api.item_list import WINDOW
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import FieldCondition, StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A, B = JobActivity(name="a", command="true"), JobActivity(name="b", command="true")


class CountingStore(MemoryStore):
    """Counts the documents that it hands out."""

    def __init__(self) -> None:
        super().__init__()
        self.handed = 0

    async def get_many(self, kind: str, ids: Sequence[str]) -> list[StoredDocument]:
        found = await super().get_many(kind, ids)
        self.handed += len(found)
        return found

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        async for found in super().scan(kind, prefix):
            self.handed += 1
            yield found

    async def search(self, kind: str, where: Sequence[FieldCondition] = (), **how: Any) -> list[StoredDocument]:
        found = await super().search(kind, where, **how)
        self.handed += len(found)
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(CountingStore(), tmp_path, ServerSettings(files_roots=None, check_ms=30))
    await world.server.open()
    yield world
    await world.server.close()


def turns(number: int, body: JobActivity) -> ForEach:
    return ForEach(name=f"each.{body.name}", first=1, last=number, body=body, parallel=True)


async def pages(world: World, case: str, limit: int) -> list[list[ItemView]]:
    found: list[list[ItemView]] = []
    while page := await world.domain.items(case, limit=limit, after=found[-1][-1].place if found else ""):
        found.append(page)
    return found


async def cost_of_a_page(world: World, turns_max: int) -> int:
    assert isinstance(world.store, CountingStore)
    case = await world.start(flow(turns(turns_max, A), f"f{turns_max}"))
    await world.quiet()
    assert sum(count.waiting for count in (await world.case(case)).counts) == turns_max
    await world.domain.items(case, limit=20)
    world.store.handed = 0
    first = await world.domain.items(case, limit=20)
    await world.domain.items(case, limit=20, after=first[-1].place)
    return world.store.handed


async def test_a_page_reads_no_more_of_a_big_case_than_of_one_a_window_long(world: World) -> None:
    assert await cost_of_a_page(world, 6 * WINDOW) <= await cost_of_a_page(world, WINDOW + 100)


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
async def test_pages_hold_every_item_once_whatever_their_size(world: World, limit: int) -> None:
    no, never = JobActivity(name="no", command="true"), JobActivity(name="never", command="true")
    skipped = Choose(name="choose", branches=tuple(Branch(Expr("false"), each) for each in (no, never)))
    mixed = (
        turns(2, A),
        skipped,
        turns(2, B),
        UserTask(name="ask", role="clerk"),
        Receive(name="hear", channel="news"),
    )
    case = await world.start(flow(Parallel(name="all", branches=mixed)))
    whole = [item.item for item in await world.domain.items(case)]
    assert sorted(whole) == ["a[0]", "a[1]", "ask", "b[0]", "b[1]", "hear", "never", "no"]
    assert [item.item for page in await pages(world, case, limit) for item in page] == whole
    by_offset = [item.item for offset in range(8) for item in await world.domain.items(case, limit=1, offset=offset)]
    assert by_offset == whole


async def test_what_did_not_run_and_what_was_called_is_listed_with_what_it_is_for(world: World) -> None:  # UI-1
    inner = flow(UserTask(name="ask", role="clerk"), "inner")
    skips = JobActivity(name="a", command="true", when=Expr("item == 'data/s3.txt'"))
    body = Parallel(name="both", branches=(skips, Call(name="sub", flow="inner")))
    outer = flow(ForEach(name="each", items=["data/s2.txt", "data/s3.txt"], body=body, parallel=True))
    await world.domain.deploy(inner)
    case = await world.start(outer)
    listed = {"a[0]": "s2.txt", "a[1]": "s3.txt", "sub[0]": "s2.txt", "sub[1]": "s3.txt"}
    assert {view.item: view.element for view in await world.domain.items(case)} == listed
    assert [view.shown for view in await world.domain.items(case, state="skipped")] == ["a[0] (s2.txt)"]
    for task in await world.domain.worklist():
        await world.domain.claim(task.id, who="ann")
        await world.domain.complete(task.id, {}, who="ann")
    await world.take(items=1)
    await world.report(**{"a[1]": Outcome()})
    await world.until_status(case, "completed")
    assert {view.item: view.element for view in await world.domain.items(case)} == listed
    skipped = next(entry for entry in await world.domain.history(case) if entry.what == "skipped")
    assert skipped.element == "s2.txt"


async def by_state(world: World, case: str) -> dict[str, list[ItemId]]:
    """The items of each state, as whoever asks for that state is told."""
    asked = {state: await world.domain.items(case, state=state) for state in get_args(ItemState)}
    return {state: [item.item for item in found] for state, found in asked.items() if found}


async def test_the_items_in_a_state_are_those_of_the_whole_list_that_are_in_it(world: World) -> None:
    # UI-1
    never = Choose(name="choose", branches=(Branch(Expr("false"), JobActivity(name="no", command="true")),))
    waiting = (UserTask(name="ask", role="clerk"), Receive(name="hear", channel="news"))
    called = flow(JobActivity(name="inner", command="true"), "inside")
    await world.domain.deploy(called)
    mixed = (turns(4, A), never, *waiting, Call(name="call", flow="inside"), turns(2, B))
    case = await world.start(flow(Parallel(name="all", branches=mixed, on_fault="finish")))
    seen = list[set[str]]()

    async def look() -> None:
        whole: dict[str, list[ItemId]] = {}
        for item in await world.domain.items(case):
            whole.setdefault(item.state, []).append(item.item)
        assert await by_state(world, case) == whole
        seen.append(set(whole))

    await look()
    await world.take(items=7)
    await look()
    await world.report(**{"a[0]": Outcome(), "a[1]": FAILED})
    await world.domain.cancel(case, "b[1]", who="me")
    await world.domain.cancel(case, "ask", who="me")
    await look()
    await world.domain.suspend(case, who="me")
    await look()
    await world.domain.cancel(case, who="me")
    await world.until_status(case, "cancelled")
    await look()
    assert {"waiting", "running", "skipped"} <= seen[1] and {"completed", "failed", "cancelled"} <= seen[2]
    assert not {"waiting", "running", "suspended"} & seen[-1]


async def test_the_few_that_failed_of_very_many_are_found_without_reading_all(world: World) -> None:
    # UI-1
    assert isinstance(world.store, CountingStore)
    many = ForEach(name="each", first=1, last=4 * WINDOW, body=A, parallel=True, on_fault="finish")
    case = await world.start(flow(many))
    await world.take(items=2)
    taken = [str(item.item) for item in await world.domain.items(case, state="running")]
    await world.report(**{taken[0]: FAILED})
    await world.quiet()
    world.store.handed = 0
    assert [item.item for item in await world.domain.items(case, state="failed")] == taken[:1]
    assert world.store.handed < 20
    assert await world.domain.why(case)
    assert world.store.handed < 2 * WINDOW, "of those that wait it names a few"


async def test_a_place_that_no_item_has_is_refused_in_words(world: World) -> None:
    case = await world.start(flow(A))
    for nonsense in ("a", "1+", "-1", "1+x", "9" * 50):
        with pytest.raises(RequestError, match="place"):
            await world.domain.items(case, after=nonsense)


async def restarted(world: World) -> CaseId:
    await world.put(rule_set("f", ExceptionType.ABORT, ("true", "x"), exlets=[exlet("x", mend(Primitive.RESTART))]))
    case = await world.start(flow(Parallel(name="p", branches=(A, B))))
    await world.take(items=2)
    await world.report(a=FAILED)
    await world.take(items=2)
    return case


def counted(counts: list[NameCount]) -> dict[str, tuple[int, int, int, int, int]]:
    return {each.name: (each.done, each.running, each.failed, each.cancelled, each.mended) for each in counts}


async def test_a_restarted_item_is_one_row_with_its_runs(world: World) -> None:
    # EX-2 restart item
    case = await restarted(world)
    rows = {str(item.item): item for item in await world.domain.items(case)}
    assert list(rows) == ["b", "a"], "in the order in which they last began"
    [first] = rows["a"].earlier_runs
    assert (rows["a"].state, first.state, first.attempts) == ("running", "failed", 1)
    assert first.fault is not None and "exit code 3" in first.fault.message
    assert [attempt.number for attempt in rows["a"].attempts] == [1, 2]
    assert [page[0].item for page in await pages(world, case, 1)] == ["b", "a"]


@pytest.mark.parametrize("crash", [False, True], ids=["at once", "after a crash"])
async def test_a_restarted_item_counts_once(world: World, crash: bool) -> None:
    # EX-2 restart item
    case = await restarted(world)
    assert counted((await world.case(case)).counts) == {"a": (0, 1, 0, 0, 0), "b": (0, 1, 0, 0, 0)}
    if crash:
        await world.restart()
        counts = (await world.case(case)).counts
        assert [(each.running + each.waiting, each.failed, each.cancelled) for each in counts] == [(1, 0, 0)] * 2
    await world.report(a=Outcome(), b=Outcome())
    await world.until_status(case, "completed")
    assert counted((await world.case(case)).counts) == {"a": (1, 0, 0, 0, 1), "b": (1, 0, 0, 0, 0)}
    items = {str(item.item): (item.state, len(item.earlier_runs)) for item in await world.domain.items(case)}
    assert items == {"a": ("completed", 1), "b": ("completed", 0)}


async def test_an_item_that_is_restarted_while_it_runs_was_not_cancelled(world: World) -> None:
    # EX-2 restart item
    case = await world.start(flow(A))
    await world.take()
    await world.runtime.manager.command(case, RestartItem(item=ItemId("a")))
    await world.quiet()
    assert counted((await world.case(case)).counts) == {"a": (0, 0, 0, 0, 0)}
    [item] = await world.domain.items(case)
    assert (item.state, [run.state for run in item.earlier_runs]) == ("waiting", ["cancelled"])
