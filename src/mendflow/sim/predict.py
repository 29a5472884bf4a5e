"""What a flow would take on a grid: played several times in virtual time, and played again with something better.

What holds a flow back is not read out of sums. Each thing that might is made better, the same seeds are played
again, and what gains most is the bottleneck; if nothing does, it is the flow's own order."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.flow import Flow
from mendflow.core.model.values import Value
from mendflow.pages.words import duration_text
from mendflow.sim.grid.nature import Nature
from mendflow.sim.grid.results import GridResult, JobRecord
from mendflow.sim.grid.scene import BatchScene, GridScene, SiteScene
from mendflow.sim.grid.world import play
from mendflow.sim.processes import spread

GAIN_MIN: Final = 0.05
"""What makes a flow less than a twentieth quicker is not what holds it back."""
TICKS: Final = 240
AT_ONCE_BYTES_PER_S: Final = 1e18
NAMES_MAX: Final = 20
_NUMBER: Final = re.compile(r"[0-9]+$")

Tell = Callable[[str], None]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A flow with its inputs, on a grid, with what its jobs do; played with so many seeds."""

    flow: Flow
    scene: GridScene
    nature: Nature
    inputs: Mapping[str, Value] = {}
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    what_if: bool = True
    processes: int = 1


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    mean: float
    deviation: float
    least: float
    most: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What the attempts of one job name took, over all seeds: how many of them a run had, and mean times of one."""

    name: str
    attempts: float
    failed: float
    stage_in_s: float
    run_s: float
    stage_out_s: float


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The same seeds with one thing better. `what` is that thing, `name` how it is better, and `gain` the part of the
    turnaround that it saves."""

    what: str
    name: str
    turnaround_s: float
    gain: float


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """`busy` is the mean part of all slots that was at work, of those that ever were there. `status` is completed if
    every run was, else that of the first that was not, and `fault` what it failed of."""

    flow: str
    status: str
    turnaround_s: Spread
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
    steps: tuple[Step, ...]
    what_ifs: tuple[WhatIf, ...]
    bottleneck: str
    fault: str = ""
    running: tuple[tuple[float, float, float], ...] = ()
    """At so many seconds so many attempts were under way, with the deviation over the seeds."""


def predict(question: Question, tell: Tell) -> Prediction:
    results: list[GridResult] = []
    for result in spread(_played, [(question, seed) for seed in question.seeds], question.processes):
        results.append(result)
        seed, took = question.seeds[len(results) - 1], duration_text(result.turnaround_s * 1000)
        tell(f"seed {seed} ({len(results)} of {len(question.seeds)}): {result.status} after {took}")
    failed = next((each for each in results if each.status != "completed"), None)
    what_ifs = _what_ifs(question, results, tell) if question.what_if and failed is None else ()
    return _told(question, results, what_ifs, failed)


def _played(task: tuple[Question, int]) -> GridResult:
    question, seed = task
    scene = replace(question.scene, seed=seed)
    return play(scene, question.flow, question.nature, question.inputs)


def _what_ifs(question: Question, results: Sequence[GridResult], tell: Tell) -> tuple[WhatIf, ...]:
    before = fmean(each.turnaround_s for each in results)
    found = []
    for what, name, scene in _better(question.scene):
        tell(f"and with {name}")
        other = replace(question, scene=scene)
        played = spread(_played, [(other, seed) for seed in question.seeds], question.processes)
        after = fmean(result.turnaround_s for result in played)
        gain = _round(_part(before - after, before))
        found.append(WhatIf(what=what, name=name, turnaround_s=_round(after), gain=gain))
    return tuple(sorted(found, key=lambda each: -each.gain))


def _better(scene: GridScene) -> Iterable[tuple[str, str, GridScene]]:
    """The grid with one thing better at a time; what is as good as can be already is left out."""

    def with_sites(changed: Callable[[SiteScene], SiteScene]) -> GridScene:
        return replace(scene, sites=tuple(map(changed, scene.sites)))

    yield "the number of pilots", "twice the pilots", with_sites(_twice)
    yield "the files", "files that take no time", with_sites(_instant_files)
    if any(site.element.failure for site in scene.sites):
        yield "failures of the storage", "storage that never fails", with_sites(_sound)
    if any(site.batch != BatchScene() and site.max_pilots > site.running for site in scene.sites):
        yield "the batch queues", "batch queues that do not wait", with_sites(_prompt)


def _sound(site: SiteScene) -> SiteScene:
    return replace(site, element=replace(site.element, failure=0.0))


def _prompt(site: SiteScene) -> SiteScene:
    return replace(site, batch=BatchScene())


def _twice(site: SiteScene) -> SiteScene:
    return replace(
        site,
        hosts=2 * site.hosts,
        running=2 * site.running,
        min_pilots=2 * site.min_pilots,
        max_pilots=2 * site.max_pilots,
    )


def _instant_files(site: SiteScene) -> SiteScene:
    element = replace(site.element, delay=0.0, bytes_per_s=AT_ONCE_BYTES_PER_S)
    return replace(site, element=element, disk_bytes_per_s=AT_ONCE_BYTES_PER_S, site_bytes_per_s=AT_ONCE_BYTES_PER_S)


def _told(
    question: Question, results: Sequence[GridResult], what_ifs: tuple[WhatIf, ...], failed: GridResult | None
) -> Prediction:
    records = [record for each in results for record in each.records]
    runs, slots = len(results), {site.name: site.slots for site in question.scene.sites}
    pilots = max(len({record.pilot for record in each.records}) for each in results)
    there = sum(each.turnaround_s * _slots(each.records, slots) for each in results)
    busy = sum(record.ended_s - record.granted_s for record in records)
    return Prediction(
        flow=str(question.flow.name),
        status=failed.status if failed is not None else "completed",
        fault=next((case.fault for case in failed.cases if case.fault), "") if failed is not None else "",
        turnaround_s=spread_of([each.turnaround_s for each in results]),
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
        what_ifs=what_ifs,
        bottleneck=_bottleneck(what_ifs) if what_ifs else "",
        running=tuple(_running(results)),
    )


def _slots(records: Sequence[JobRecord], slots: Mapping[str, int]) -> int:
    """Of the pilots that did something."""
    return sum(slots[site] for site in {record.pilot: record.site for record in records}.values())


def _read_files(record: JobRecord) -> int:
    return record.own_files + record.shared_files + record.fetched_files


def _steps(records: Sequence[JobRecord], runs: int) -> tuple[Step, ...]:
    """In the order in which they first began. Very many names are told by what they have in common."""
    many = len({record.step for record in records}) > NAMES_MAX
    by_name: dict[str, list[JobRecord]] = {}
    for record in sorted(records, key=lambda each: (each.granted_s, each.step)):
        by_name.setdefault(_NUMBER.sub("…", record.step) if many else record.step, []).append(record)
    return tuple(
        Step(
            name=name,
            attempts=_round(len(those) / runs),
            failed=_round(sum(not each.well for each in those) / runs),
            stage_in_s=_round(fmean(each.stage_in_s for each in those)),
            run_s=_round(fmean(each.run_s for each in those)),
            stage_out_s=_round(fmean(each.stage_out_s for each in those)),
        )
        for name, those in by_name.items()
    )


def _bottleneck(what_ifs: Sequence[WhatIf]) -> str:
    """`what_ifs` are sorted: what gains most comes first."""
    best = what_ifs[0]
    if best.gain < GAIN_MIN:
        return "the flow itself: its jobs wait for each other, and nothing else that was made better saves a twentieth"
    return f"{best.what}: with {best.name} it would take {best.gain * 100:.0f} % less"


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(
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
    """What is compared byte by byte must not hang on the last bit of a sum."""
    return round(value, 4)
