"""The server's clock does not follow a wall clock that jumps, and no error stops its timers."""

import asyncio
import time

import pytest

from mendflow.core.model.ids import CaseId
from mendflow.services.base.clock import SystemClock
from mendflow.services.cases.timers import Timers
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_a_wall_clock_that_jumps_moves_nothing(monkeypatch: pytest.MonkeyPatch, jump_s: int) -> None:
    # JS-7: leases are counted by a clock that only goes on
    clock = SystemClock()
    before = clock.now()
    wall = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: wall + jump_s * 10**9)
    assert 0 <= clock.now() - before < 60_000


def test_it_starts_at_the_wall_clocks_time() -> None:
    assert abs(SystemClock().now() - time.time_ns() // 1_000_000) < 60_000


async def test_an_error_when_one_timer_fires_does_not_stop_the_others() -> None:
    fired, clock = asyncio.Event(), SystemClock()

    async def fire(case: CaseId, serial: int) -> None:
        if serial == 1:
            raise RuntimeError("what follows from the first timer")
        fired.set()

    timers = Timers(clock, fire)
    timers.set(CaseId("c"), 1, clock.now())
    timers.set(CaseId("c"), 2, clock.now() + 1)
    timers.start()
    await asyncio.wait_for(fired.wait(), PATIENCE_S)
    await timers.stop()
