"""The server's clock does not follow a wall clock that jumps."""

import time

import pytest

from mendflow.services.base.clock import SystemClock


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
