"""Whatever write a server is stopped at: every file is in one batch, and every batch becomes one case.

The store fails in the middle of a batch of writes, as a machine does that loses its power; the house throws its
services away and builds them anew."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.model.data_sets import Gathering
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.jobs import Outcome
from mendflow.services.runtime.server import Server, ServerSettings
from tests.examples import examples
from tests.services.data_sets.kit import EACH, MERGE, cases_of, catalogued, logical, names_in, wish
from tests.services.recovery.kit import World
from tests.services.recovery.test_crashes import FailingStore, HastyClock

T = TypeVar("T")
FILES = ("a", "b", "c")
WRITES = 100
"""About so many writes has the whole story."""


class Story:
    """Three files come, a case of each publishes another file, these are gathered by two, and everything is closed."""

    def __init__(self, folder: Path, crashes: list[int]) -> None:
        self.store = FailingStore(crashes)
        rules = ServerSettings(files_roots=None)
        self.world = World(self.store, folder, rules)
        self.world.server = Server(
            store=self.store,
            file_store=self.world.server.file_store,
            clock=HastyClock(),
            settings=rules,
            version="test",
        )
        self.world.domain = type(self.world.domain)(self.world.server)
        self.world.pilot.domain = self.world.domain

    async def again(self, do: Callable[[], Awaitable[T]]) -> T:
        """Try until the store is there."""
        for _ in range(1_000):
            try:
                return await do()
            except StoreUnavailable:
                await asyncio.sleep(0.002)
        raise AssertionError("the store never came back")

    async def tell(self) -> None:
        world = self.world
        await self.again(world.server.open)
        for flow in (EACH, MERGE):
            await self.again(partial(world.domain.deploy, flow))
        raw = wish(Gathering(name="each", flow="each", count=1))
        merged = wish(Gathering(name="merge", flow="merge", count=2), name="merged", after=("raw",))
        await self.again(lambda: world.runtime.data_sets.define(raw, who="me"))
        await self.again(lambda: world.runtime.data_sets.define(merged, who="me"))
        for name in FILES:
            await self.again(partial(self._publish, name, "raw"))
        await self.again(lambda: world.runtime.data_sets.close("raw", who="me"))
        for _ in range(3_000):
            if await self.again(self._over):
                return
            await self.again(self._work)
        raise AssertionError(f"the story has no end: {await world.runtime.data_sets.all(every=True)}")

    async def _publish(self, name: str, data_set: str) -> None:
        """As the catalogue does, which is told again if it did not come to the end."""
        await catalogued(self.store, logical(name, data_set))
        await self.world.runtime.data_sets.added(logical(name, data_set))

    async def _over(self) -> bool:
        return (await self.world.runtime.data_sets.view("merged")).state == "over"

    async def _work(self) -> None:
        pilot = self.world.pilot
        await pilot.sync(want=0 if pilot.held else 1, wait_ms=5)
        for held in pilot.held:
            case = await self.world.domain.case(held.job.partition("/")[0])
            if case.flow == "each":
                await self._publish(f"of-{case.inputs['file']['name']}", "merged")
        if pilot.held:
            await pilot.exchange({"work": Outcome()})


async def play(crashes: list[int]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder), crashes)
        await story.tell()
        await story.world.runtime.ledger.settled()
        each, merge = await cases_of(story.store, "each"), await cases_of(story.store, "merge")
        assert sorted(map(names_in, each)) == [[name] for name in FILES]
        assert Counter(name for case in merge for name in names_in(case)) == Counter(f"of-{name}" for name in FILES)
        assert sorted(len(names_in(case)) for case in merge) == [1, 2]
        assert {case.status for case in (*each, *merge)} == {"completed"}
        await story.world.server.close()
        return story.store.written


async def test_the_story_without_a_crash() -> None:
    assert WRITES * 0.7 < await play([]) < WRITES * 1.5  # PJ-9


@pytest.mark.parametrize("part", range(4))
def test_a_crash_at_any_write_starts_every_case_once(part: int) -> None:
    for crash in range(4 + part, WRITES, 4):  # PJ-9
        asyncio.run(play([crash]))


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(4, WRITES + 40), min_size=2, max_size=5))
def test_several_crashes_start_every_case_once(crashes: list[int]) -> None:
    asyncio.run(play(crashes))  # PJ-9
