"""What is wasted by several ways to size jobs, on traces of jobs that have run.

    python -m bench.sizing TRACE.csv...

A trace has a line for each job: submitted_ms, completed_ms, task, input_bytes, requested_bytes, peak_bytes, runtime_ms.
Jobs are sized in the order in which they were submitted, by what had ended until then. An attempt that gets less than
the job's peak fails after its whole run time. Waste is all that failed attempts were given, and what the last one was
given and did not use, over the run time, in GB hours."""

import argparse
import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol

from mendflow.core.learning.sizes_replay import ReplayedAsk, ReplayedEnd, SizeReplay
from mendflow.core.learning.sizes_views import GB_HOUR

LEAST_BYTES = 64 * 1024 * 1024


class TraceJob(NamedTuple):
    submitted_ms: int
    completed_ms: int
    task: str
    input_bytes: int
    requested_bytes: int
    peak_bytes: int
    runtime_ms: int


class Sizer(Protocol):
    def first(self, job: TraceJob) -> int: ...
    def again(self, job: TraceJob, attempt: int, last_bytes: int) -> int: ...
    def learn(self, job: TraceJob) -> None: ...


class RequestedSizes:
    """As the authors of the flow requested; after a failure twice as much."""

    def __init__(self) -> None:
        self.known: dict[str, list[TraceJob]] = defaultdict(list)

    def first(self, job: TraceJob) -> int:
        known = self.known[job.task]
        return self.estimate(job, known) if known else job.requested_bytes

    def again(self, job: TraceJob, attempt: int, last_bytes: int) -> int:
        return max(2 * last_bytes, LEAST_BYTES)

    def learn(self, job: TraceJob) -> None:
        self.known[job.task].append(job)

    def estimate(self, job: TraceJob, known: list[TraceJob]) -> int:
        return job.requested_bytes


class LargestSizes(RequestedSizes):
    """The largest so far and a tenth."""

    def estimate(self, job: TraceJob, known: list[TraceJob]) -> int:
        return int(1.1 * max(each.peak_bytes for each in known)) + LEAST_BYTES


class PercentileSizes(RequestedSizes):
    """The 95th percentile so far; after a failure the largest so far, then twice as much."""

    def estimate(self, job: TraceJob, known: list[TraceJob]) -> int:
        peaks = sorted(each.peak_bytes for each in known)
        return peaks[min(len(peaks) - 1, math.ceil(0.95 * len(peaks)))] + LEAST_BYTES

    def again(self, job: TraceJob, attempt: int, last_bytes: int) -> int:
        largest = max((each.peak_bytes for each in self.known[job.task]), default=0)
        wanted = largest + LEAST_BYTES if largest and attempt == 2 else 2 * last_bytes
        return max(wanted, last_bytes + LEAST_BYTES)


class LineSizes(LargestSizes):
    """A line over the size of the input, and one standard deviation above it."""

    def estimate(self, job: TraceJob, known: list[TraceJob]) -> int:
        if len(known) < 3:
            return super().estimate(job, known)
        inputs, peaks = [each.input_bytes for each in known], [each.peak_bytes for each in known]
        if len(set(inputs)) == 1:
            return int(statistics.fmean(peaks) + statistics.pstdev(peaks))
        slope, base = statistics.linear_regression(inputs, peaks)
        errors = [peak - base - slope * size for size, peak in zip(inputs, peaks, strict=True)]
        return max(LEAST_BYTES, int(base + slope * job.input_bytes + statistics.pstdev(errors, 0)))


class LearnedSizes:
    """As mendflow does."""

    def __init__(self) -> None:
        self.replay = SizeReplay()

    def first(self, job: TraceJob) -> int:
        return self.again(job, 1, 0)

    def again(self, job: TraceJob, attempt: int, last_bytes: int) -> int:
        asked = ReplayedAsk(
            task=job.task,
            input_bytes=job.input_bytes,
            requested_bytes=job.requested_bytes,
            attempt=attempt,
            last_bytes=last_bytes,
        )
        return self.replay.ask(asked)

    def learn(self, job: TraceJob) -> None:
        over = ReplayedEnd(
            task=job.task,
            input_bytes=job.input_bytes,
            requested_bytes=job.requested_bytes,
            peak_bytes=job.peak_bytes,
            runtime_ms=job.runtime_ms,
        )
        self.replay.over(over)


SIZERS: dict[str, Callable[[], Sizer]] = {
    "as requested": RequestedSizes,
    "largest": LargestSizes,
    "percentile": PercentileSizes,
    "line": LineSizes,
    "mendflow": LearnedSizes,
}


def play(jobs: Iterable[TraceJob], sizer: Sizer) -> tuple[float, int]:
    """GB hours wasted, and failed attempts."""
    waste, failures = 0.0, 0
    submitted = sorted(jobs, key=attrgetter("submitted_ms"))
    ending = sorted(submitted, key=attrgetter("completed_ms"), reverse=True)
    for job in submitted:
        while ending and ending[-1].completed_ms <= job.submitted_ms:
            sizer.learn(ending.pop())
        given, attempt = sizer.first(job), 1
        while given < job.peak_bytes:
            waste += given * job.runtime_ms
            failures, attempt = failures + 1, attempt + 1
            given = sizer.again(job, attempt, given)
        waste += (given - job.peak_bytes) * job.runtime_ms
    return waste / GB_HOUR, failures


def read_trace(path: Path) -> list[TraceJob]:
    with path.open(newline="") as file:
        return [
            TraceJob(*(row[name] if name == "task" else int(row[name]) for name in TraceJob._fields))  # type: ignore[arg-type]  # the columns are by name
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE.csv")
    _print_row(["trace", "jobs", *(f"{name}: GBh / failed" for name in SIZERS)])
    _print_row(["---"] * (2 + len(SIZERS)))
    for path in parser.parse_args().traces:
        jobs = read_trace(path)
        found = [play(jobs, make()) for make in SIZERS.values()]
        _print_row([path.stem, f"{len(jobs):,}", *(f"{waste:,.0f} / {failed}" for waste, failed in found)])


def _print_row(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
