"""Levels: failed jobs wait, each as long as its level says, and are let go once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.core.recovery.classification import classify
from mendflow.services.base.contracts import Failure
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import SingleServer
from mendflow.services.recovery.levels import LEVEL_KIND, DueEntries, LevelEntry, Levels
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from tests.patience import until
from tests.proxy.world import EXIT, JOB, Judge, Now, World, bad, new, turns

WAITS_MS = (1_000, 60_000, 3_600_000)


class Bench:
    """Levels on a store, and what was let go, in order."""

    def __init__(self, store: Store, clock: Now) -> None:
        self.ledger = Ledger(store, lambda reason: None)
        self.homes = HomeRegistry(store, self.ledger, SingleServer())
        hub = Hub()
        self.levels = Levels(
            store=store,
            ledger=self.ledger,
            clock=clock,
            homes=self.homes,
            hub=hub,
            waits_ms=WAITS_MS,
        )
        hub.provide(DueEntries, self)
        self.goes_on: Callable[[LevelEntry], Awaitable[None]] = self.note
        self.gone: list[str] = []

    async def note(self, entry: LevelEntry) -> None:
        self.gone.append(entry.key)

    async def due(self, entry: LevelEntry) -> None:
        await self.goes_on(entry)

    async def enter(self, key: str, level: int, mode: str = "recoverable", wait_ms: int | None = None) -> LevelEntry:
        job, case, item = JobId("c-1/1"), CaseId("c-1"), ItemId("a")
        return await self.levels.enter(
            key, level=level, job=job, case=case, item=item, mode="express" if mode == "express" else "recoverable",
            wait_ms=wait_ms
        )  # fmt: skip


@asynccontextmanager
async def on(store: Store, clock: Now) -> AsyncIterator[Bench]:
    """As long as the block lasts; it ends as a crash does, with nothing said to the disk."""
    bench = Bench(store, clock)
    bench.ledger.start()
    trees = await bench.homes.claim_own()
    bench.homes.begin_loading(trees)
    await bench.levels.load({tree.root for tree in trees})
    bench.homes.end_loading(trees)
    bench.levels.start()
    try:
        yield bench
    finally:
        await bench.levels.stop()
        await bench.ledger.stop()


async def pass_time(bench: Bench, clock: Now, ms: int) -> None:
    clock.at += ms
    bench.levels._changed.set()
    await turns()


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = MemoryStore()
    await store.open()
    yield store
    await store.close()


async def test_each_level_has_its_own_wait(store: Store) -> None:
    # AD-4
    clock = Now()
    async with on(store, clock) as bench:
        for level in (1, 2, 3, 9):
            entry = await bench.enter(f"k{level}", level)
            assert entry.due_at - entry.entered_at == WAITS_MS[min(level, 3) - 1]
        assert bench.levels.counts() == {1: 1, 2: 1, 3: 1, 9: 1}
        await pass_time(bench, clock, 999)
        assert bench.gone == []
        await pass_time(bench, clock, 1)
        assert bench.gone == ["k1"]
        await pass_time(bench, clock, 60_000)
        assert bench.gone == ["k1", "k2"]
        assert bench.levels.counts() == {1: 0, 2: 0, 3: 1, 9: 1}
        await pass_time(bench, clock, 3_600_000)
        assert bench.gone == ["k1", "k2", "k3", "k9"]


async def test_a_wait_can_be_given_and_what_waits_is_listed_the_next_one_first(store: Store) -> None:
    clock = Now()
    async with on(store, clock) as bench:
        await bench.enter("late", 1, wait_ms=90_000)
        await bench.enter("soon", 2, wait_ms=500)
        assert [entry.key for entry in bench.levels.entries()] == ["soon", "late"]
        assert [entry.key for entry in bench.levels.entries(1)] == ["late"]


async def test_a_level_is_drained_on_request_and_the_others_wait_on(store: Store) -> None:
    # AD-4
    clock = Now()
    async with on(store, clock) as bench:
        for number in range(3):
            await bench.enter(f"b{number}", 2)
        await bench.enter("other", 3)
        assert bench.levels.drain(bench.levels.entries(2)) == 3
        await turns()
        assert sorted(bench.gone) == ["b0", "b1", "b2"]
        assert bench.levels.drain() == 1
        await turns()
        assert bench.levels.entries() == [] and bench.levels.drain() == 0


async def test_recoverable_is_on_disk_before_it_is_acknowledged_and_express_never_is(store: Store) -> None:
    # AD-2
    clock = Now()
    async with on(store, clock) as bench:
        await bench.enter("kept", 1)
        await bench.enter("quick", 1, "express")
        assert [found.id async for found in store.scan(LEVEL_KIND)] == ["kept"]
    clock.at += 400
    async with on(store, clock) as bench:
        assert [(entry.key, entry.due_at - clock.now()) for entry in bench.levels.entries()] == [("kept", 600)]
        await pass_time(bench, clock, 600)
        assert bench.gone == ["kept"]
        await bench.ledger.settled()
        assert [found async for found in store.scan(LEVEL_KIND)] == []
    async with on(store, clock) as bench:
        await pass_time(bench, clock, 10_000)
        assert bench.gone == [], "it was let go before"


async def test_what_came_due_while_nobody_was_there_is_let_go_at_the_start(store: Store) -> None:
    # AD-2
    clock = Now()
    async with on(store, clock) as bench:
        await bench.enter("k", 1)
    clock.at += 5_000
    async with on(store, clock) as bench:
        await turns()
        assert bench.gone == ["k"]


async def test_the_same_key_is_one_entry_and_goes_on_waiting_as_it_does(store: Store) -> None:
    clock = Now()
    async with on(store, clock) as bench:
        first = await bench.enter("k", 1)
        clock.at += 900
        assert await bench.enter("k", 2) == first
        assert bench.levels.counts()[1] == 1
    async with on(store, clock) as bench:
        assert await bench.enter("k", 1) == first
        await pass_time(bench, clock, 100)
        assert bench.gone == ["k"]


async def test_what_nobody_wants_any_more_leaves(store: Store) -> None:
    clock = Now()
    async with on(store, clock) as bench:
        await bench.enter("k", 1)
        assert bench.levels.leave("k") and not bench.levels.leave("k")
        await bench.ledger.settled()
        assert [found async for found in store.scan(LEVEL_KIND)] == []
        await pass_time(bench, clock, 5_000)
        assert bench.gone == []


async def test_one_entry_with_nowhere_to_go_does_not_hold_the_others(store: Store) -> None:
    clock = Now()
    async with on(store, clock) as bench:
        gone: list[str] = []

        async def due(entry: LevelEntry) -> None:
            if entry.key == "a":
                raise NotFound("its case is over")
            gone.append(entry.key)

        bench.goes_on = due
        await bench.enter("a", 1)
        await bench.enter("b", 1)
        await pass_time(bench, clock, 1_000)
        assert gone == ["b"] and bench.levels.entries() == []


async def test_time_passes_by_itself(store: Store) -> None:
    clock = Now()
    async with on(store, clock) as bench:
        await bench.enter("k", 1, wait_ms=10)
        clock.at += 10
        await until(lambda: bench.gone, "that it has gone")
        assert bench.gone == ["k"]


async def test_levels_count_from_one(store: Store) -> None:
    async with on(store, Now()) as bench:
        with pytest.raises(InvalidRequest, match="there is no level 0"):
            await bench.enter("k", 0)


@pytest.mark.parametrize(("good", "tries"), [(1, 1), (2, 2), (3, 3), (9, 3)])
async def test_recovery_goes_from_level_to_level_and_after_the_last_to_compensation(good: int, tries: int) -> None:
    # AD-3 AD-4: the dispatcher classifies; what is recoverable waits in level after level; then the flow hears of it
    lost = Fault(name="lost", category=Category.RESOURCE, message="the node is gone", stage="execution")

    async def dispatch(world: World, failure: Failure) -> bool:
        if not classify(failure.fault).recoverable or failure.level == len(world.levels.waits_ms):
            return False
        level = failure.level + 1
        await world.levels.enter(failure.id, level=level, job=failure.job, case=failure.case, item=failure.spec.item)
        return True

    async def goes_on(job: Job, outcome: Outcome) -> bool:
        return False

    async with World(dispatch, judge=Judge(goes_on)) as world:
        world.meta.policy = type(world.meta.policy)(losses_max=0)
        world.levels.start()
        await world.submit(new())
        for turn in range(1, tries + 1):
            await world.sync()
            await world.sync(want=0, align=Outcome(outputs="well") if turn == good else bad(lost))
            world.levels.drain()
            await turns()
        [(_, outcome)] = world.told
        assert (outcome.outputs == "well") == (good <= 3)
        assert [failure.level for failure in world.failures] == list(range(min(good - 1, 3)))


async def test_what_is_not_recoverable_enters_no_level() -> None:
    # AD-3
    async def dispatch(world: World, failure: Failure) -> bool:
        return classify(failure.fault).recoverable

    async with World(dispatch) as world:
        await world.submit(new())
        await world.sync()
        await world.sync(align=bad(EXIT))
        assert [outcome.fault for _, outcome in world.told] == [EXIT]
        assert world.proxy.phase_of(JOB) == ""


async def test_one_that_cannot_go_on_does_not_hold_up_the_others() -> None:
    # AD-4
    clock, store = Now(), MemoryStore()
    await store.open()
    async with on(store, clock) as bench:
        stuck = asyncio.Event()

        async def due(entry: LevelEntry) -> None:
            if entry.key == "slow/1":
                await stuck.wait()
            bench.gone.append(entry.key)

        bench.goes_on = due
        await bench.enter("slow/1", 1)
        await bench.enter("quick/1", 1)
        await pass_time(bench, clock, 1_000)
        assert bench.gone == ["quick/1"]
        stuck.set()
        await turns()
        assert bench.gone == ["quick/1", "slow/1"]
        assert bench.levels.entries() == []
