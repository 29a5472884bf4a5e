"""A sleep that an event ends: what servers do between their looks."""

import asyncio

from mendflow.services.base.background_tasks import sleep_unless


async def test_a_sleep_ends_by_itself_and_the_event_is_clear() -> None:
    woken = asyncio.Event()
    await sleep_unless(woken, asyncio.sleep(0))
    assert not woken.is_set()


async def test_an_event_ends_a_sleep_and_nothing_of_it_is_left_to_end_the_next() -> None:
    woken, slept = asyncio.Event(), []

    async def long_sleep() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            slept.append("given up")

    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(woken.set))
    await sleep_unless(woken, long_sleep())
    assert slept == ["given up"] and not woken.is_set()
    await asyncio.sleep(0)
    assert not woken.is_set()


async def test_who_is_cancelled_while_he_sleeps_leaves_no_task() -> None:
    woken = asyncio.Event()
    sleeper = asyncio.create_task(sleep_unless(woken, asyncio.sleep(3600)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.gather(sleeper, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
