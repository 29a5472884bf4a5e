"""What is kept of one run, and of several: a few numbers, their mean and their standard deviation.

Times of a job are sums over its attempts: a job that failed while it read has spent that time as well."""

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from experiments.paper.settings import Setup
from experiments.paper.workflows import STEP0, STEP1
from mendflow.sim.grid.results import GridResult, JobRecord

TICK_S: Final = 10.0
"""How often the number of running jobs is looked at."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a setup. `stage_in_s` is over the jobs that read, `execution_s` and `waited_s` over all jobs. `idle_s`
    is from the moment at which all of step0 was over until the first job of step1 began, `ramp_s` from the flow's start
    until all of step0 had begun."""

    setup: Setup
    seed: int
    status: str
    turnaround_s: float
    stage_in_s: float
    execution_s: float
    waited_s: float
    begun_s: float
    ramp_s: float
    idle_s: float
    attempts: int
    failed_reading: int
    failed_writing: int
    read_files: int  # by all attempts, from wherever
    element_reads: int  # of these from the storage element
    hit_ratio: float
    byte_hit_ratio: float
    pilots_submitted: int
    running: list[int]  # at each tick


class SampleSummary(msgspec.Struct, frozen=True):
    mean: float
    deviation: float
    runs: int


def sample_of(setup: Setup, seed: int, result: GridResult) -> Sample:
    first, second = ([each for each in result.records if each.step == step] for step in (STEP0, STEP1))
    start_s, over_s = result.cases[0].started_s, max(each.ended_s for each in first)
    return Sample(
        setup=setup,
        seed=seed,
        status=result.status,
        turnaround_s=_round(result.turnaround_s),
        stage_in_s=_per_job(second, lambda each: each.stage_in_s),
        execution_s=_per_job(result.records, lambda each: each.ended_s - each.granted_s),
        waited_s=_round(_mean([*_waits(first, start_s), *_waits(second, over_s)])),
        begun_s=_round(min(each.granted_s for each in first) - start_s),
        ramp_s=_round(max(each.granted_s for each in first if each.attempt == 1) - start_s),
        idle_s=_round(min(each.granted_s for each in second) - over_s),
        attempts=len(result.records),
        failed_reading=sum(not each.well and not each.run_s for each in result.records),
        failed_writing=sum(not each.well and each.run_s > 0 for each in result.records),
        read_files=sum(_read(each) for each in result.records),
        element_reads=sum(each.fetched_files for each in result.records),
        hit_ratio=_round(result.hit_ratio),
        byte_hit_ratio=_round(result.byte_hit_ratio),
        pilots_submitted=result.pilots_submitted,
        running=_ticks(result, start_s),
    )


def summary(values: Sequence[float]) -> SampleSummary:
    """Mean and standard deviation of several runs; of a single one there is no deviation."""
    mean = _mean(values)
    spread = sum((each - mean) ** 2 for each in values) / (len(values) - 1) if len(values) > 1 else 0.0
    return SampleSummary(_round(mean), _round(math.sqrt(spread)), len(values))


def _read(record: JobRecord) -> int:
    return record.own_files + record.shared_files + record.fetched_files


def _per_job(records: Sequence[JobRecord], seconds: Callable[[JobRecord], float]) -> float:
    jobs = len({each.job for each in records})
    return _round(sum(map(seconds, records)) / jobs if jobs else 0.0)


def _waits(records: Sequence[JobRecord], since_s: float) -> list[float]:
    return [each.granted_s - since_s for each in records if each.attempt == 1]


def _ticks(result: GridResult, start_s: float) -> list[int]:
    """How many jobs ran when the flow was started, TICK_S after that, and so on, up to the end."""
    changes, counts, now, at = result.running(), [], 0, 0
    for tick in range(math.ceil(result.turnaround_s / TICK_S) + 1):
        while at < len(changes) and changes[at][0] <= start_s + tick * TICK_S:
            now, at = changes[at][1], at + 1
        counts.append(now)
    return counts


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _round(value: float) -> float:
    """To a thousandth: what is compared byte by byte must not hang on the last bit of a sum."""
    return round(value, 3)
