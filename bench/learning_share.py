"""What learning takes from jobs that do not fail: the same work with and without it, in turns, in one run.

`python -m bench.learning_share [SECONDS]` takes about so long, and ends with a verdict on the throughput. End to end: a
server as it is used, with its pilot, does the same case again and again, and learns for a quarter of a second, then not
for another, and so on. It is one process for both: two that do the same differ by more than what is measured, for all
of their lives, and a machine by more from one second to the next. In one process: a server on a store in memory and a
pilot that ends every job at once say how many microseconds learning takes."""

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.pairs import MedianEstimate, Pair, median_estimate
from bench.proxy import JOBS, InProcessServer, MeasuredServer
from mendflow.event_loop import relax_garbage_collection, run
from mendflow.services.base.hub import Hub
from mendflow.services.learning.ended_jobs import EndedJobs
from mendflow.services.runtime.server import ServerSettings
from mendflow.services.scheduling.facts import JobEnded
from mendflow.wiring import ServerOptions, running_server

SECONDS = 140.0
SERVER_STARTS = 4
ROUND_JOBS = 10_000
SHARE_MAX = 0.02
SLICE_S = 0.25
SLICE_JOBS_MIN = 100
"""A moment with fewer is between two cases."""


class LearningSwitch:
    """Lets a running server learn from jobs that end, or not."""

    def __init__(self, hub: Hub) -> None:
        self._listeners = hub.listeners(JobEnded)
        self._all = list(self._listeners)
        self._others = [each for each in self._all if not _learns(each)]
        assert len(self._others) < len(self._all)

    def always(self, listener: Callable[[JobEnded], None]) -> None:
        """Tell somebody else of jobs that end, whether they are learned from or not."""
        for each in (self._all, self._others):
            each.append(listener)

    def turn(self, on: bool) -> None:
        """What waits to be learned from is learned from first."""
        for each in self._all if not on else ():
            if isinstance(owner := getattr(each, "__self__", None), EndedJobs):
                owner.hand_over()
        self._listeners[:] = self._all if on else self._others


def _learns(listener: Callable[[Any], None]) -> bool:
    return type(getattr(listener, "__self__", None)).__module__.startswith("mendflow.services.learning.")


# End to end


class LearningShareServer(MeasuredServer):
    def __init__(self, slices: Path) -> None:
        super().__init__("")
        self._slices = slices

    def serving(self, data: Path) -> tuple[str, ...]:
        return ("bench.learning_share", "serve", str(data), str(self._slices))


class TurnSlice(NamedTuple):
    """What a server did in a short time: jobs that ended, and seconds of its event loop's processor time."""

    learns: bool
    jobs: int
    seconds: float
    processor_s: float


async def take_turns(switch: LearningSwitch, found: list[TurnSlice]) -> None:
    """Learn and do not learn for a moment each, again and again; who begins changes from pair to pair."""
    ended = 0

    def count(_: JobEnded) -> None:
        nonlocal ended
        ended += 1

    switch.always(count)
    while True:
        for learns in (len(found) % 4 == 0, len(found) % 4 != 0):
            switch.turn(learns)
            jobs, began, used = ended, time.perf_counter(), time.thread_time()
            await asyncio.sleep(SLICE_S)
            found.append(TurnSlice(learns, ended - jobs, time.perf_counter() - began, time.thread_time() - used))


async def serve(data: Path) -> list[TurnSlice]:
    """Until it is told to end."""
    end, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    found: list[TurnSlice] = []
    async with running_server(ServerOptions(data=data, files_roots=None)) as running:
        hub = running.server.runtime.hub
        turns = asyncio.create_task(take_turns(LearningSwitch(hub), found))
        await end.wait()
        turns.cancel()
    return found


def end_to_end(seconds: float) -> list[tuple[Pair, Pair]]:
    """Pairs of moments without learning and with it: seconds a job by the clock, and of the loop's processor time."""
    found: list[tuple[Pair, Pair]] = []
    with tempfile.TemporaryDirectory(prefix="bench-learning-") as folder:
        for number in range(SERVER_STARTS):
            file = Path(folder) / f"{number}.json"
            with LearningShareServer(file) as subject:
                until = time.monotonic() + seconds / SERVER_STARTS
                while time.monotonic() < until:
                    subject.round(ROUND_JOBS)
            slices = msgspec.json.decode(file.read_bytes(), type=list[TurnSlice])
            for one, other in zip(slices[::2], slices[1::2], strict=False):
                without, with_it = sorted((one, other))
                if min(one.jobs, other.jobs) >= SLICE_JOBS_MIN:
                    found.append(
                        (
                            Pair(without.seconds / without.jobs, with_it.seconds / with_it.jobs),
                            Pair(without.processor_s / without.jobs, with_it.processor_s / with_it.jobs),
                        )
                    )
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
            f"end to end, {len(outside)} pairs of {SLICE_S:g} s, {jobs_per_s:,.0f} jobs a second:",
            f"  throughput  {_shares(wall)}",
            f"  processor   {_shares(processor)} of the event loop's {took_us:.0f} us a job",
            f"in one process, {len(inside)} pairs of {JOBS:,} jobs:",
            f"  processor   {more_us.value:.1f} us ({more_us.low:.1f} to {more_us.high:.1f}) a job",
            f"The throughput that learning takes from jobs that do not fail {said} less than {SHARE_MAX:.0%}.",
        ]
    )


def _shares(found: MedianEstimate) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"


def main(words: Sequence[str]) -> int:
    if words[:1] == ["serve"]:
        Path(words[2]).write_bytes(msgspec.json.encode(run(serve(Path(words[1])))))
        return 0
    seconds = float(words[0]) if words else SECONDS
    inside = run(in_one_process(seconds * 0.2))
    print(verdict(end_to_end(seconds * 0.7), inside))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
