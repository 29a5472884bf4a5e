"""Numbers that processes share are read whole, while another process writes them as fast as it can."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from mendflow.pilot.slot.lease import LeaseClock
from mendflow.pilot.slot.processes import die_with_parent
from mendflow.pilot.slot.shared_numbers import map_numbers
from mendflow.pilot.worker.progress import CallProgress
from tests.patience import until

READS = 200_000


@contextmanager
def another_process(write: Callable[[int], object]) -> Iterator[None]:
    """A process that writes one number after the other."""
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            for number in count(1):
                write(number)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.law
async def test_a_call_that_has_begun_is_never_seen_as_one_that_has_not(tmp_path: Path) -> None:
    """The slot kills a worker that reports a call which has not begun."""
    slot, worker = CallProgress(f"{tmp_path}/calls", fresh=True), CallProgress(f"{tmp_path}/calls")
    with another_process(worker.begin):
        await until(lambda: slot.begun > 0)
        last, earlier = 0, []
        for _ in range(READS):
            begun = slot.begun
            if begun < last:
                earlier.append((begun, last))
            last = max(begun, last)
    assert not earlier


@pytest.mark.law
async def test_a_lease_that_is_renewed_is_never_seen_as_over(tmp_path: Path) -> None:
    """The slot kills its job when the lease is over."""
    slot, agent = LeaseClock(tmp_path / "lease"), LeaseClock(tmp_path / "lease")
    agent.renew(sent_at=1, lease_ms=30_000)
    with another_process(lambda number: agent.renew(sent_at=number, lease_ms=30_000)):
        await until(lambda: slot.stop_at > 100_000)
        assert not sum(slot.is_over(100_000) for _ in range(READS))


def test_who_lets_go_of_the_memory_has_it_no_longer(tmp_path: Path) -> None:
    numbers = map_numbers(tmp_path / "numbers", 2)
    numbers[1] = -7
    assert list(map_numbers(tmp_path / "numbers", 3)) == [0, -7, 0]
    numbers.release()
    assert f"{tmp_path}/numbers" not in Path("/proc/self/maps").read_text()
