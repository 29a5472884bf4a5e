"""Virtual time, and what can happen to processes in it."""

import asyncio

import pytest

from mendflow.sim.loop import VirtualLoop, run
from mendflow.sim.machines import Machine, WallClock


@pytest.fixture
def loop() -> VirtualLoop:
    return VirtualLoop()  # type: ignore[abstract]  # sockets, signals and threads are not of this world


def test_a_sleep_of_a_day_takes_a_day_of_virtual_time_and_none_of_ours() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert run(main()) == 86_400


def test_a_wait_that_is_too_long_ends_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        return asyncio.get_running_loop().time()

    assert run(main()) == 5


def test_a_stopped_process_does_nothing_and_then_goes_on_where_it_was(loop: VirtualLoop) -> None:
    process, said = Machine(loop, "m").start("p"), []

    async def speak() -> None:
        for word in ("one", "two", "three"):
            said.append((word, loop.true_s))
            await asyncio.sleep(1)

    async def main() -> None:
        process.spawn(speak())
        await asyncio.sleep(1.5)
        process.stop()
        await asyncio.sleep(10)
        assert len(said) == 2
        process.resume()
        await asyncio.sleep(5)

    loop.run(main())
    assert said == [("one", 0), ("two", 1), ("three", 11.5)]


def test_a_process_can_be_stopped_between_two_steps_of_the_same_instant(loop: VirtualLoop) -> None:
    process, steps = Machine(loop, "m").start("p"), []

    async def walk() -> None:
        for step in range(5):
            steps.append(step)
            await asyncio.sleep(0)

    async def main() -> None:
        process.fuse = (2, process.stop)
        process.spawn(walk())
        await asyncio.sleep(1)
        assert steps == [0, 1]
        process.resume()
        await asyncio.sleep(1)

    loop.run(main())
    assert steps == [0, 1, 2, 3, 4]


def test_of_a_killed_process_nothing_runs_any_more_and_whoever_has_to_know_is_told(loop: VirtualLoop) -> None:
    process, heard = Machine(loop, "m").start("p"), []
    process.on_death.append(lambda: heard.append("lost"))

    async def end_of_log() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            heard.append("tidied up")

    async def main() -> None:
        process.spawn(end_of_log())
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5)
        assert heard == ["lost"]

    loop.run(main())


def test_a_clock_that_goes_too_fast_makes_its_machine_too_early(loop: VirtualLoop) -> None:
    fast = Machine(loop, "m", rate=1.25, skew_ms=60_000)
    woke: list[float] = []

    async def sleep() -> None:
        clock = WallClock(fast)
        before = clock.now()
        await clock.sleep(10_000)
        assert clock.now() - before == 10_000
        woke.append(loop.true_s)

    async def main() -> None:
        fast.start("p").spawn(sleep())
        await asyncio.sleep(20)

    loop.run(main())
    assert woke == [8.0]
    assert loop.troubles == []


def test_an_error_that_nobody_expects_ends_its_process_and_is_told(loop: VirtualLoop) -> None:
    process = Machine(loop, "m").start("p")

    async def wrong() -> None:
        raise KeyError("this")

    async def main() -> None:
        process.spawn(wrong())
        await asyncio.sleep(1)

    loop.run(main())
    assert not process.alive
    assert "KeyError" in loop.troubles[0]
