"""So many of a key are served at once, and the others in their order."""

import asyncio

from mendflow.keyed_semaphore import KeyedSemaphore


class Served:
    """Those who ask under one key, each until it is let go."""

    def __init__(self, semaphore: KeyedSemaphore) -> None:
        self._semaphore = semaphore
        self.now: list[int] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ends: dict[int, asyncio.Event] = {}

    async def ask(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number] = asyncio.Event()
            self._tasks[number] = asyncio.create_task(self._ask(number))
        await settle()

    async def let_go(self, number: int) -> None:
        self._ends[number].set()
        await settle()

    async def cancel(self, *numbers: int) -> None:
        for number in numbers:
            self._tasks[number].cancel()
        await settle()

    async def _ask(self, number: int) -> None:
        async with self._semaphore.of("key"):
            self.now.append(number)
            try:
                await self._ends[number].wait()
            finally:
                self.now.remove(number)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_so_many_are_served_as_may_be_at_that_moment() -> None:
    at_once, asked = [3], set[object]()

    def how_many(key: object) -> int:
        asked.add(key)
        return at_once[0]

    served = Served(KeyedSemaphore(how_many))
    await served.ask(1, 2, 3, 4, 5, 6)
    assert served.now == [1, 2, 3]
    at_once[0] = 1
    await served.let_go(1)
    assert served.now == [2, 3], "nobody is served in its place"
    await served.let_go(2)
    await served.let_go(3)
    assert served.now == [4]
    at_once[0] = 0
    await served.let_go(4)
    assert served.now == [5], "one always is"
    at_once[0] = 2
    await served.let_go(5)
    assert served.now == [6]
    await served.let_go(6)
    assert served.now == [] and asked == {"key"}


async def test_who_does_not_wait_any_more_holds_up_nobody() -> None:
    semaphore = KeyedSemaphore(1)
    served = Served(semaphore)
    await served.ask(1, 2, 3, 4)
    await served.cancel(2)
    await served.let_go(1)
    assert served.now == [3]
    await served.cancel(3)
    assert served.now == [4]
    await served.ask(5, 6)
    await served.cancel(4, 5)  # the turn was about to be that of 5
    assert served.now == [6]
    await served.let_go(6)
    assert served.now == [] and not len(semaphore), "and the key is forgotten"


async def test_a_turn_that_comes_when_its_asker_goes_is_passed_on() -> None:
    semaphore = KeyedSemaphore(1)
    served = Served(semaphore)
    await served.ask(1, 2, 3)
    served._ends[1].set()
    await asyncio.sleep(0)  # the first has ended, and the second has its turn but has not run
    await served.cancel(2)
    assert served.now == [3]
    await served.let_go(3)
    assert not len(semaphore)
