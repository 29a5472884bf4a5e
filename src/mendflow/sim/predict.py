"""Predicts what a flow would take on a grid: simulates it several times, and again with one thing improved.

The bottleneck is not computed from sums. Each candidate is improved, the same seeds run again, and the largest gain is
the bottleneck; if there is none, it is the flow's own order. A failed run says nothing about the duration of a
successful one: it is counted, and left out of all means."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.flow import Flow
from mendflow.core.model.values import Value
from mendflow.pages.formatting import duration_text
from mendflow.sim.grid.job_model import JobModel
from mendflow.sim.grid.results import GridResult, JobRecord
from mendflow.sim.grid.scene import GridScene
from mendflow.sim.grid.world import play
from mendflow.sim.parallel import run_parallel
from mendflow.sim.what_ifs import WhatIf, bottleneck, completed, what_ifs

TICKS: Final = 240
NAMES_MAX: Final = 20
_NUMBER: Final = re.compile(
    r"(?:(?<=[_.-])(?=[a-f]*[0-9])[0-9a-f]{6,}|(?:(?<=[_.-])ID)?(?:[0-9]+[_.-](?:ID)?)*[0-9]+)$"
)
"""What distinguishes jobs of one kind at the end of their names: numbers, an ID with a number, the digits of a hash."""

Tell = Callable[[str], None]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A flow with its inputs, on a grid, with a model of its jobs, for so many seeds."""

    flow: Flow
    scene: GridScene
    job_model: JobModel
    inputs: Mapping[str, Value] = {}
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    what_if: bool = True
    processes: int = 1


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    mean: float
    deviation: float
    least: float
    most: float


class StepForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of one job name over all seeds: how many a run had, and mean times of one."""

    name: str
    attempts: float
    failed: float
    stage_in_s: float
    run_s: float
    stage_out_s: float


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is completed if every run was, else that of the first that was not, and `fault` is its reason.
    Everything else covers the completed runs, or all if none completed. `busy` is the mean share of busy slots among
    those that ever existed."""

    flow: str
    status: str
    runs: int
    failed_runs: int
    turnaround_s: Distribution
    jobs: float
    attempts: float
    failed_attempts: float
    pilots: int
    busy: float
    most_at_once: int
    read_files: float
    hit_ratio: float
    byte_hit_ratio: float
    stage_in_part: float
    stage_out_part: float
    steps: tuple[StepForecast, ...]
    what_ifs: tuple[WhatIf, ...]
    bottleneck: str
    fault: str = ""
    running: tuple[tuple[float, float, float], ...] = ()
    """The number of running attempts over time, with the deviation over the seeds."""


def predict(question: Question, tell: Tell) -> Prediction:
    results: list[GridResult] = []
    for result in _play_all_seeds(question):
        results.append(result)
        seed, took = question.seeds[len(results) - 1], duration_text(result.turnaround_s * 1000)
        tell(f"seed {seed} ({len(results)} of {len(question.seeds)}): {result.status} after {took}")
    tried: tuple[WhatIf, ...] = ()
    if question.what_if and completed(results):
        tried = what_ifs(question.scene, results, lambda scene: _play_all_seeds(replace(question, scene=scene)), tell)
    return _prediction(question, results, tried)


def _play_all_seeds(question: Question) -> Iterable[GridResult]:
    return run_parallel(_play_seed, [(question, seed) for seed in question.seeds], question.processes)


def _play_seed(task: tuple[Question, int]) -> GridResult:
    question, seed = task
    scene = replace(question.scene, seed=seed)
    return play(scene, question.flow, question.job_model, question.inputs)


def _prediction(question: Question, every: Sequence[GridResult], tried: tuple[WhatIf, ...]) -> Prediction:
    well = completed(every)
    failed = next((each for each in every if each.status != "completed"), None)
    results = well or every
    records = [record for each in results for record in each.records]
    runs, slots = len(results), {site.name: site.slots for site in question.scene.sites}
    pilots = max(len({record.pilot for record in each.records}) for each in results)
    there = sum(each.turnaround_s * _slots(each.records, slots) for each in results)
    busy = sum(record.ended_s - record.granted_s for record in records)
    return Prediction(
        flow=str(question.flow.name),
        status=failed.status if failed is not None else "completed",
        fault=next((case.fault for case in failed.cases if case.fault), "") if failed is not None else "",
        runs=len(every),
        failed_runs=len(every) - len(well),
        turnaround_s=distribution_of([each.turnaround_s for each in results]),
        jobs=_round(
            len({(at, record.case, record.item) for at, each in enumerate(results) for record in each.records}) / runs
        ),
        attempts=_round(len(records) / runs),
        failed_attempts=_round(sum(not record.well for record in records) / runs),
        pilots=pilots,
        busy=_round(_part(busy, there)),
        most_at_once=max((count for each in results for _, count in each.running()), default=0),
        read_files=_round(sum(map(_read_files, records)) / runs),
        hit_ratio=_round(fmean(each.hit_ratio for each in results)),
        byte_hit_ratio=_round(fmean(each.byte_hit_ratio for each in results)),
        stage_in_part=_round(_part(sum(record.stage_in_s for record in records), busy)),
        stage_out_part=_round(_part(sum(record.stage_out_s for record in records), busy)),
        steps=_steps(records, runs),
        what_ifs=tried,
        bottleneck=bottleneck(tried) if tried else "",
        running=tuple(_running(results)),
    )


def _slots(records: Sequence[JobRecord], slots: Mapping[str, int]) -> int:
    """Of the pilots that ran something."""
    return sum(slots[site] for site in {record.pilot: record.site for record in records}.values())


def _read_files(record: JobRecord) -> int:
    return record.own_files + record.shared_files + record.fetched_files


def _steps(records: Sequence[JobRecord], runs: int) -> tuple[StepForecast, ...]:
    """In the order in which they first started. Very many names are grouped by their common part."""
    many = len({record.step for record in records}) > NAMES_MAX
    by_name: dict[str, list[JobRecord]] = {}
    for record in sorted(records, key=lambda each: (each.granted_s, each.step)):
        by_name.setdefault(_NUMBER.sub("…", record.step) if many else record.step, []).append(record)
    return tuple(
        StepForecast(
            name=name,
            attempts=_round(len(those) / runs),
            failed=_round(sum(not each.well for each in those) / runs),
            stage_in_s=_round(fmean(each.stage_in_s for each in those)),
            run_s=_round(fmean(each.run_s for each in those)),
            stage_out_s=_round(fmean(each.stage_out_s for each in those)),
        )
        for name, those in by_name.items()
    )


def distribution_of(values: Sequence[float]) -> Distribution:
    return Distribution(
        mean=_round(fmean(values)),
        deviation=_round(stdev(values) if len(values) > 1 else 0.0),
        least=_round(min(values)),
        most=_round(max(values)),
    )


def _running(results: Sequence[GridResult]) -> Iterable[tuple[float, float, float]]:
    end = max(each.turnaround_s for each in results)
    columns = [_at_ticks(each.running(), end) for each in results]
    for tick, counts in enumerate(zip(*columns, strict=True)):
        yield _round(end * tick / TICKS), _round(fmean(counts)), _round(stdev(counts) if len(counts) > 1 else 0.0)


def _at_ticks(changes: Sequence[tuple[float, int]], end: float) -> list[int]:
    counts, now, at = [], 0, 0
    for tick in range(TICKS + 1):
        while at < len(changes) and changes[at][0] <= end * tick / TICKS:
            now, at = changes[at][1], at + 1
        counts.append(now)
    return counts


def _part(some: float, of: float) -> float:
    return some / of if of else 0.0


def _round(value: float) -> float:
    """Rounded, so that results that are compared byte by byte do not depend on the last bit of a sum."""
    return round(value, 4)
