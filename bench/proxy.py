"""What recovery costs jobs that do not fail: the same work with and without it, in turns, in one run.

End to end: two servers as they are used, one with recovery and one without, each with its pilot, do the same case in
turns. Measured are the time by the clock and the processor time of the server, which other programs' turns do not count
in. Jobs are no-ops in Python, the quickest there are, so the share is as large as it can be. A process may be a little
faster or slower than its twin for its whole life, so the pair is started anew several times.

In one process: two houses on a store in memory, without HTTP, and a pilot that ends every job at once. Nothing else
takes time, so this says how many microseconds recovery takes.

`python -m bench.proxy [SECONDS]` takes about so long and ends with a verdict."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from bench.ours import Mendflow
from bench.pairs import MedianEstimate, Pair, median_estimate, pair
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, ForEach, Input, JobActivity
from mendflow.core.model.ids import CaseId, FlowName, PilotId
from mendflow.core.model.jobs import Measurements, Outcome
from mendflow.core.model.sync import Assignment, AttemptReport, Capacity, SyncRequest
from mendflow.event_loop import relax_garbage_collection, run
from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import ServerOptions, running_server

SECONDS = 140
SERVER_STARTS = 4
WARM_UP_JOBS = 500
JOBS = 1_000
COST_SHARE_MAX = 0.05
BATCH = 128
CAPACITY = Capacity(slots=BATCH, cpus=float(BATCH), memory_bytes=1 << 40, disk_bytes=1 << 40)
MEASURED = Outcome(measures=Measurements(peak_bytes=50_000_000, ran_ms=1_000))
MANY = Flow(
    name=FlowName("many"),
    inputs={"jobs": Input(type="number", required=True)},
    body=ForEach(
        name="each", first=0, last=Expr("int(inputs.jobs) - 1"), body=JobActivity(name="noop", command="true")
    ),
)


# End to end


class MeasuredServer(Mendflow):
    """A server and a pilot as they are used, whole or without the part that is measured. Server and pilot have a
    core each, where there are two: who shares one with whom changes from round to round otherwise, and moves the time
    by more than what is measured."""

    def __init__(self, without: str) -> None:
        super().__init__()
        self._without = without
        self._cores = iter(sorted(os.sched_getaffinity(0)))

    def _process(self, *words: str) -> subprocess.Popen[bytes]:
        before = os.sched_getaffinity(0)
        core = next(self._cores, None)
        os.sched_setaffinity(0, before if core is None else {core})  # the new process has the same
        try:
            return super()._process(*words)
        finally:
            os.sched_setaffinity(0, before)

    def serving(self, data: Path) -> tuple[str, ...]:
        return ("bench.proxy", "serve", str(data), self._without)

    def round(self, jobs: int) -> tuple[float, float]:
        """Seconds a job, by the clock and of the server's processor time."""
        began, cpu = time.perf_counter(), processor_s(self.server.pid)
        self.python(jobs)
        return (time.perf_counter() - began) / jobs, (processor_s(self.server.pid) - cpu) / jobs


def processor_s(pid: int) -> float:
    """What all threads of a process have used so far: Linux has a clock for every process, by this number."""
    return time.clock_gettime(~pid << 3 | 2)


async def serve(data: Path, without: str) -> None:
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    options = ServerOptions(data=data, files_roots=None, recovery=without != "recovery", learning=without != "learning")
    async with running_server(options):
        await end.wait()


def end_to_end(
    seconds: float, jobs: int = JOBS, server_starts: int = SERVER_STARTS, part: str = "recovery"
) -> list[tuple[Pair, ...]]:
    """Pairs of rounds without a part and with it: by the clock, and by the server's processor time."""
    found: list[tuple[Pair, ...]] = []
    for number in range(server_starts):
        with ExitStack() as stack:
            subjects = {
                kind: stack.enter_context(MeasuredServer("" if kind else part))
                for kind in (number % 2 == 0, number % 2 != 0)
            }
            for subject in subjects.values():
                subject.round(max(WARM_UP_JOBS, jobs))
            until = time.monotonic() + seconds / server_starts
            while time.monotonic() < until:
                found.append(pair(lambda kind: subjects[kind].round(jobs), len(found)))  # noqa: B023 - called at once
    return found


# In one process


async def play(domain: Domain, case: CaseId, serial: int) -> int:
    """A pilot that has done every job by the time it asks for the next; the serial of its last exchange."""
    held: list[Assignment] = []
    while held or (await domain.case(case)).status == "running":
        serial += 1
        request = SyncRequest(
            pilot=PilotId("quick"),
            serial=serial,
            heard=serial - 1,
            host="here",
            capacity=CAPACITY,
            want=BATCH,
            reports=[AttemptReport(each.job, each.fence, MEASURED) for each in held],
        )
        answer = await domain.sync(request)
        assert len(answer.accepted) == len(held)
        held = answer.jobs
    return serial


class InProcessServer:
    """A server in this process, with these settings. Its files are in the folder."""

    def __init__(self, folder: Path, settings: ServerSettings) -> None:
        self._file_store = FolderFileStore(folder)
        self.server = Server(
            store=MemoryStore(),
            file_store=self._file_store,
            clock=SystemClock(),
            settings=settings,
            version="bench",
            shipped=default_rules(),
            patterns=default_patterns(),
        )
        self._domain = Domain(self.server)
        self._serial = 0

    async def open(self) -> None:
        await self.server.open()
        self._file_store.open()
        await self._domain.deploy(MANY)
        await self.round(WARM_UP_JOBS)

    async def round(self, jobs: int) -> float:
        """Seconds of processor time a job."""
        cpu = time.process_time()
        case = await self._domain.start("many", {"jobs": jobs}, who="bench")
        self._serial = await play(self._domain, CaseId(case.id), self._serial)
        took = time.process_time() - cpu
        ended = await self._domain.case(case.id)
        assert ended.status == "completed" and ended.counts[0].done == jobs, ended
        return took / jobs


async def in_one_process(
    seconds: float,
    jobs: int = JOBS,
    settings: Callable[[bool], ServerSettings] = lambda kind: ServerSettings(recovery=kind),
) -> list[Pair]:
    """Pairs of rounds without what is measured and with it: `settings` says what that is."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-proxy-")))
        houses = {kind: InProcessServer(folder / f"files-{kind}", settings(kind)) for kind in (False, True)}
        for each in houses.values():
            stack.push_async_callback(each.server.close)
            await each.open()
        gc.collect()
        relax_garbage_collection()
        found: list[Pair] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            first = len(found) % 2 == 0
            took = {kind: await houses[kind].round(jobs) for kind in (first, not first)}
            found.append(Pair(took[False], took[True]))
        return found


# The verdict


def measure(seconds: float = SECONDS) -> dict[str, float]:
    """All numbers; costs are shares, with the bounds between which they lie."""
    outside = end_to_end(seconds * 0.65)
    inside = run(in_one_process(seconds * 0.2))
    wall, cpu = ([both[which] for both in outside] for which in (0, 1))
    return {
        "jobs": JOBS,
        "pairs": len(outside),
        **_cost_text("cost", median_estimate([each.share for each in wall])),
        **_cost_text("cost_cpu", median_estimate([each.share for each in cpu])),
        "cpu_us_per_job": round(median_estimate([each.with_it for each in cpu]).value * 1e6, 1),
        "jobs_per_s": round(1 / median_estimate([each.with_it for each in wall]).value),
        "inside_pairs": len(inside),
        **_cost_text("inside_us", median_estimate([each.more * 1e6 for each in inside]), digits=2),
        "inside_us_per_job": round(median_estimate([each.with_it for each in inside]).value * 1e6, 1),
    }


def _cost_text(name: str, found: MedianEstimate, digits: int = 4) -> dict[str, float]:
    return {
        name: round(found.value, digits),
        f"{name}_low": round(found.low, digits),
        f"{name}_high": round(found.high, digits),
    }


def verdict(found: dict[str, float]) -> str:
    shown = found["cost_high"] < COST_SHARE_MAX and found["cost_cpu_high"] < COST_SHARE_MAX
    said = "is" if shown else "is not shown to be"
    return "\n".join(
        [
            f"end to end, {found['pairs']} pairs of {found['jobs']:,} jobs, {found['jobs_per_s']:,} jobs a second:",
            f"  throughput  {_bounds(found, 'cost')}",
            f"  processor   {_bounds(found, 'cost_cpu')} of the server's {found['cpu_us_per_job']} us a job",
            f"in one process, {found['inside_pairs']} pairs of {found['jobs']:,} jobs:",
            f"  processor   {found['inside_us']} us ({found['inside_us_low']} to {found['inside_us_high']})"
            f" of {found['inside_us_per_job']} us a job",
            f"The cost of recovery for jobs that do not fail {said} less than {COST_SHARE_MAX:.0%}.",
        ]
    )


def _bounds(found: dict[str, float], name: str) -> str:
    return f"{found[name]:.1%} ({found[f'{name}_low']:.1%} to {found[f'{name}_high']:.1%})"


def main(words: Sequence[str]) -> int:
    if words[:1] == ["serve"]:
        run(serve(Path(words[1]), words[2]))
        return 0
    found = measure(*map(float, words[:1]))
    print(json.dumps(found, indent=2))
    print(verdict(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
