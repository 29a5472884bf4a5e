"""Texts that take long to read hold up nobody but who gave them."""

import asyncio
import threading
from functools import partial

import pytest

from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.reading_cost import tell_cost_of_reading
from tests.patience import until


class HeldReads:
    """Reads that last until they may end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = threading.Event()

    def read(self, text: str) -> str:
        self.begun.append(text)
        self.may_end.wait()
        return text.upper()


async def test_one_text_of_each_who_asks_is_under_way_and_costs_them() -> None:  # SE-3
    texts, costs = HeldReads(), {"eve": list[float](), "ann": list[float]()}
    reads = LongReads()

    async def ask(name: str, number: int) -> None:
        tell_cost_of_reading(costs[name].append)
        assert await reads.do(lambda: texts.read(f"{name} {number}")) == f"{name} {number}".upper()

    async with asyncio.TaskGroup() as asked:
        for number in range(5):
            asked.create_task(ask("eve", number))
        await until(lambda: texts.begun, "the first has begun")
        asked.create_task(ask("ann", 0))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(lambda: "another thread is free") == "another thread is free"
        texts.may_end.set()
    assert texts.begun[:2] == ["eve 0", "ann 0"], "the others of the same wait for their turn"
    assert len(costs["eve"]) == 5 and len(costs["ann"]) == 1


async def test_nothing_is_read_for_who_hangs_up() -> None:  # SE-3
    texts = HeldReads()
    reads = LongReads()
    tasks = [asyncio.create_task(reads.do(partial(texts.read, f"{number}"))) for number in range(3)]
    await until(lambda: texts.begun, "the first has begun")
    for task in tasks[1:]:
        task.cancel()
    texts.may_end.set()
    assert await tasks[0] == "0"
    await asyncio.gather(*tasks, return_exceptions=True)
    assert texts.begun == ["0"]


async def test_what_a_read_raises_arrives_and_costs() -> None:  # SE-3
    costs = list[float]()
    before = tell_cost_of_reading(costs.append)

    def fail() -> None:
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        await LongReads().do(fail)
    tell_cost_of_reading(before)
    assert len(costs) == 1
