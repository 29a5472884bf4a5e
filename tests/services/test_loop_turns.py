"""Long work on the event loop takes turns, by whom it is done for."""

import asyncio

import pytest

from mendflow.services.base import loop_yielder
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.base.reading_cost import tell_cost_of_reading


@pytest.fixture(autouse=True)
def pieces_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_yielder, "HELD_S", 0.0)


async def work(payer: list[float], name: str, pieces: int, done: list[str]) -> None:
    tell_cost_of_reading(payer.append)
    yielder = LoopYielder()
    for _ in range(pieces):
        await yielder.pause()
        done.append(name)


async def test_who_has_much_work_gets_no_more_turns_than_who_has_little() -> None:  # SE-3
    done: list[str] = []
    eve, ann = list[float](), list[float]()
    async with asyncio.TaskGroup() as all_work:
        for _ in range(10):
            all_work.create_task(work(eve, "eve", 4, done))
        all_work.create_task(work(ann, "ann", 4, done))
    assert done.count("eve") == 40 and done.count("ann") == 4
    assert "ann" not in done[9:], f"every second turn is hers: {done}"


async def test_one_piece_is_done_in_each_round_of_the_loop() -> None:  # SE-3
    done: list[str] = []
    async with asyncio.TaskGroup() as all_work:
        tasks = [all_work.create_task(work([], "one", 5, done)) for _ in range(6)]
        before = 0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            assert len(done) - before <= 1
            before = len(done)
    assert len(done) == 30


async def test_who_stops_waiting_holds_up_nobody() -> None:  # SE-3
    done: list[str] = []
    async with asyncio.TaskGroup() as all_work:
        leaving = [all_work.create_task(work([], "gone", 5, done)) for _ in range(5)]
        all_work.create_task(work([], "stays", 3, done))
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
    assert done == ["stays"] * 3
