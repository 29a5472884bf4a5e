"""Whether sizing holds up on other jobs than those that it was made with: altered traces, and made-up ones.

    python -m bench.sizing_variants [TRACE.csv...] [--seed N]

Each trace is played as it is, and with needs that are smaller, larger, noisy or exchanged between jobs, with other
bounds, in reverse, at random, and with a tenth of its jobs. Made-up traces have two sizes, heavy tails, drift, jumps,
few jobs of each name, and needs that follow the input in several ways. For each: the best of the baselines, what
mendflow wastes in comparison, and failed attempts beside those of `largest`."""

import argparse
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.sizing import (
    LargestSizes,
    LearnedSizes,
    LineSizes,
    PercentileSizes,
    RequestedSizes,
    TraceJob,
    play,
    read_trace,
)

GB = 1024**3
JOBS = 600
BASELINES = (RequestedSizes, LargestSizes, PercentileSizes, LineSizes)

Jobs = list[TraceJob]
Alteration = Callable[[Jobs, random.Random], Jobs]
Need = Callable[[int, int, random.Random], float]
"""What a job uses in GB: by its number, its input in GB and chance."""


class Played(NamedTuple):
    name: str
    jobs: int
    best: float
    wasted: float
    failed: int
    failed_of_largest: int

    @property
    def ratio(self) -> float:
        return self.wasted / self.best if self.best else 1.0


def with_needs(jobs: Jobs, need: Callable[[TraceJob], float]) -> Jobs:
    """The same jobs with other needs, within what they may use."""
    return [each._replace(peak_bytes=max(1, min(int(need(each)), each.requested_bytes))) for each in jobs]


def exchanged(jobs: Jobs, chance: random.Random) -> Jobs:
    """Needs are exchanged between jobs of the same name: the input says nothing any more."""
    needs: dict[str, list[int]] = {}
    for each in jobs:
        needs.setdefault(each.task, []).append(each.peak_bytes)
    for known in needs.values():
        chance.shuffle(known)
    return [each._replace(peak_bytes=min(needs[each.task].pop(), each.requested_bytes)) for each in jobs]


def reversed_in_time(jobs: Jobs, _chance: random.Random) -> Jobs:
    end = max(each.completed_ms for each in jobs)
    return [each._replace(submitted_ms=end - each.completed_ms, completed_ms=end - each.submitted_ms) for each in jobs]


def at_random(jobs: Jobs, chance: random.Random) -> Jobs:
    """Other jobs of the same trace come first."""
    times = [(each.submitted_ms, each.completed_ms) for each in jobs]
    others = chance.sample(jobs, len(jobs))
    return [
        job._replace(submitted_ms=begun, completed_ms=ended) for job, (begun, ended) in zip(others, times, strict=True)
    ]


ALTERATIONS: dict[str, Alteration] = {
    "as it is": lambda jobs, _: jobs,
    "needs x 0.3": lambda jobs, _: with_needs(jobs, lambda job: 0.3 * job.peak_bytes),
    "needs x 3": lambda jobs, _: with_needs(jobs, lambda job: 3 * job.peak_bytes),
    "needs +- 30 %": lambda jobs, chance: with_needs(jobs, lambda job: job.peak_bytes * chance.uniform(0.7, 1.3)),
    "needs exchanged": exchanged,
    "bounds x 4": lambda jobs, _: [each._replace(requested_bytes=4 * each.requested_bytes) for each in jobs],
    "bounds x 0.5": lambda jobs, _: [
        each._replace(requested_bytes=max(each.requested_bytes // 2, each.peak_bytes)) for each in jobs
    ],
    "reversed": reversed_in_time,
    "at random": at_random,
    "a tenth": lambda jobs, chance: sorted(chance.sample(jobs, len(jobs) // 10)),
}

NEEDS: dict[str, Need] = {
    "the same always": lambda _n, _size, _chance: 2.0,
    "two sizes": lambda _n, _size, chance: chance.choice((1.0, 8.0)),
    "two sizes, one rare": lambda _n, _size, chance: 8.0 if chance.random() < 0.03 else 1.0,
    "heavy tail": lambda _n, _size, chance: min(0.5 * chance.paretovariate(1.5), 30.0),
    "lognormal": lambda _n, _size, chance: min(chance.lognormvariate(0.5, 0.7), 30.0),
    "drift upward": lambda n, _size, chance: (1 + 6 * n / JOBS) * chance.uniform(0.9, 1.1),
    "drift downward": lambda n, _size, chance: (7 - 6 * n / JOBS) * chance.uniform(0.9, 1.1),
    "a jump": lambda n, _size, chance: (2 if n < JOBS // 2 else 9) * chance.uniform(0.9, 1.1),
    "as the input": lambda _n, size, chance: (0.5 + 0.8 * size) * chance.uniform(0.9, 1.1),
    "as its square": lambda _n, size, chance: (0.3 + 0.1 * size**2) * chance.uniform(0.9, 1.1),
    "as its root": lambda _n, size, chance: 2 * math.sqrt(size) * chance.uniform(0.9, 1.1),
    "falls with it": lambda _n, size, chance: max(0.5, 10 - size) * chance.uniform(0.9, 1.1),
}


def made_up(need: Need, chance: random.Random, names: int, number_of_jobs: int = JOBS) -> Jobs:
    """Jobs of so many names, twenty at a time, each with up to 10 GB of input and a bound of 32 GB."""
    jobs: Jobs = []
    for number in range(number_of_jobs):
        size, begun, runtime = chance.randint(1, 10), number * 1_000, chance.randint(5_000, 35_000)
        peak = max(1, min(int(need(number, size, chance) * GB), 32 * GB))
        jobs.append(TraceJob(begun, begun + runtime, f"t{number % names}", size * GB, 32 * GB, peak, runtime))
    return jobs


def compared(name: str, jobs: Jobs) -> Played:
    baselines = {each: play(jobs, each()) for each in BASELINES}
    wasted, failed = play(jobs, LearnedSizes())
    best = min(waste for waste, _ in baselines.values())
    return Played(name, len(jobs), best, wasted, failed, baselines[LargestSizes][1])


def variants(paths: list[Path], seed: int) -> Iterator[tuple[str, list[Played]]]:
    """By how the jobs were altered: all traces of that kind."""
    traces = {path.stem: read_trace(path) for path in paths}
    for name, alter in ALTERATIONS.items():
        if traces:
            yield name, [compared(trace, alter(jobs, random.Random(seed))) for trace, jobs in traces.items()]
    for name, need in NEEDS.items():
        yield (
            f"made up: {name}",
            [compared(f"{names} names", made_up(need, random.Random(seed), names)) for names in (1, 6, 200)],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE.csv")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args()
    print("| jobs | waste, of the best baseline's | failed, of largest | each |\n|---|---|---|---|")
    for name, played in variants(options.traces, options.seed):
        mean = math.exp(sum(math.log(max(each.ratio, 1e-9)) for each in played) / len(played))
        failed, beside = sum(each.failed for each in played), sum(each.failed_of_largest for each in played)
        each = ", ".join(f"{one.name} {one.ratio:.2f} ({one.failed} of {one.failed_of_largest})" for one in played)
        print(f"| {name} | {mean:.3f} | {failed} of {beside} | {each} |")


if __name__ == "__main__":
    main()
