"""What somebody tries out takes a tenth of the loop's time at most, and holds up only whoever asked for it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from mendflow.services.api.domain import Domain
from mendflow.services.base.reading_cost import tell_cost_of_reading
from mendflow.services.base.throttled_work import REST, ThrottledWork


def busy(done: list[tuple[str, float]], name: str) -> Callable[[], None]:
    """Twenty milliseconds of work."""

    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 0.02:
            pass
        done.append((name, time.monotonic()))

    return work


async def test_who_asks_again_rests_first_and_others_do_not() -> None:  # SE-3
    throttled, done = ThrottledWork(), list[tuple[str, float]]()
    eve, ann = list[float](), list[float]()

    async def ask(payer: list[float], name: str) -> None:
        tell_cost_of_reading(payer.append)
        await throttled.do(busy(done, name))

    begun = time.monotonic()
    async with asyncio.TaskGroup() as asked:
        for _ in range(3):
            asked.create_task(ask(eve, "eve"))
        asked.create_task(ask(ann, "ann"))
    assert [name for name, _ in done] == ["eve", "ann", "eve", "eve"]
    assert done[-1][1] - begun >= 2 * REST * 0.02


async def test_work_that_fails_says_why_and_is_rested_from() -> None:  # SE-3
    throttled, done = ThrottledWork(), list[tuple[str, float]]()

    def fail() -> None:
        busy(done, "fails")()
        raise ValueError("told")

    for _ in range(2):
        with pytest.raises(ValueError, match="told"):
            await throttled.do(fail)
    assert done[1][1] - done[0][1] >= REST * 0.02


async def test_all_trials_of_a_server_share_one_rest(domain: Domain) -> None:  # SE-3
    assert domain._preview._evaluations is domain._preview._evaluations
