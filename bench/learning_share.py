"""What learning takes from jobs that do not fail: the same work with and without it, in turns, in one run.

`python -m bench.learning_share [SECONDS]` takes about so long, and ends with a verdict on the throughput. End to end: a
server as it is used, with its pilot, does the same case again and again, and is told between two rounds to learn or not
to. It is one process for both: two that do the same differ by more than what is measured, for all of their lives. In
one process: a server on a store in memory and a pilot that ends every job at once say how many microseconds learning
takes."""

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench.pairs import MedianEstimate, Pair, median_estimate, pair
from bench.proxy import JOBS, InProcessServer, MeasuredServer
from mendflow.event_loop import run
from mendflow.services.base.hub import Hub
from mendflow.services.runtime.server import ServerSettings
from mendflow.services.scheduling.facts import JobEnded
from mendflow.wiring import ServerOptions, relax_garbage_collection, running_server

SECONDS = 140.0
SERVER_STARTS = 4
ROUND_JOBS = 2_000
SHARE_MAX = 0.02
LEARN, DO_NOT_LEARN = signal.SIGUSR1, signal.SIGUSR2
SIGNAL_S = 0.05
"""A server hears a signal as soon as its loop turns."""


class LearningSwitch:
    """Lets a running server learn from jobs that end, or not."""

    def __init__(self, hub: Hub) -> None:
        self._listeners = hub.listeners(JobEnded)
        self._all = list(self._listeners)
        self._others = [each for each in self._all if not _learns(each)]
        assert len(self._others) < len(self._all)

    def turn(self, on: bool) -> None:
        self._listeners[:] = self._all if on else self._others


def _learns(listener: Callable[[Any], None]) -> bool:
    return type(getattr(listener, "__self__", None)).__module__.startswith("mendflow.services.learning.")


# End to end


class SwitchedServer(MeasuredServer):
    def serving(self, data: Path) -> tuple[str, ...]:
        return ("bench.learning_share", "serve", str(data))

    def round_with(self, learning: bool) -> tuple[float, float]:
        self.server.send_signal(LEARN if learning else DO_NOT_LEARN)
        time.sleep(SIGNAL_S)
        return self.round(ROUND_JOBS)


async def serve(data: Path) -> None:
    end, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    async with running_server(ServerOptions(data=data, files_roots=None)) as running:
        switch = LearningSwitch(running.server.runtime.hub)
        loop.add_signal_handler(LEARN, switch.turn, True)
        loop.add_signal_handler(DO_NOT_LEARN, switch.turn, False)
        await end.wait()


def end_to_end(seconds: float) -> list[tuple[Pair, ...]]:
    """Pairs of rounds without learning and with it: by the clock, and by the server's processor time."""
    found: list[tuple[Pair, ...]] = []
    for _ in range(SERVER_STARTS):
        with SwitchedServer("") as subject:
            subject.round(ROUND_JOBS)
            until = time.monotonic() + seconds / SERVER_STARTS
            while time.monotonic() < until:
                found.append(pair(subject.round_with, len(found)))
    return found


# In one process


async def in_one_process(seconds: float) -> list[Pair]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-learning-")))
        subject = InProcessServer(folder, ServerSettings())
        stack.push_async_callback(subject.server.close)
        await subject.open()
        switch = LearningSwitch(subject.server.runtime.hub)
        relax_garbage_collection()
        found: list[Pair] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            took: dict[bool, float] = {}
            for kind in (len(found) % 2 == 0, len(found) % 2 != 0):
                switch.turn(kind)
                took[kind] = await subject.round(JOBS)
            found.append(Pair(took[False], took[True]))
        return found


# The verdict


def verdict(outside: Sequence[tuple[Pair, ...]], inside: Sequence[Pair]) -> str:
    wall, processor = (median_estimate([both[which].share for both in outside]) for which in (0, 1))
    jobs_per_s = 1 / median_estimate([both[0].with_it for both in outside]).value
    took_us = median_estimate([both[1].with_it * 1e6 for both in outside]).value
    more_us = median_estimate([each.more * 1e6 for each in inside])
    said = "is" if wall.high < SHARE_MAX else "is not shown to be"
    return "\n".join(
        [
            f"end to end, {len(outside)} pairs of {ROUND_JOBS:,} jobs, {jobs_per_s:,.0f} jobs a second:",
            f"  throughput  {_shares(wall)}",
            f"  processor   {_shares(processor)} of the server's {took_us:.0f} us a job",
            f"in one process, {len(inside)} pairs of {JOBS:,} jobs:",
            f"  processor   {more_us.value:.1f} us ({more_us.low:.1f} to {more_us.high:.1f}) a job",
            f"The throughput that learning takes from jobs that do not fail {said} less than {SHARE_MAX:.0%}.",
        ]
    )


def _shares(found: MedianEstimate) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"


def main(words: Sequence[str]) -> int:
    if words[:1] == ["serve"]:
        run(serve(Path(words[1])))
        return 0
    seconds = float(words[0]) if words else SECONDS
    inside = run(in_one_process(seconds * 0.2))
    print(verdict(end_to_end(seconds * 0.7), inside))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
