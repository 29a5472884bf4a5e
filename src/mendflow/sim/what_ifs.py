"""Runs the same seeds with one thing improved at a time, and draws conclusions.

Each seed is compared with itself: the saving is the mean over the seeds that complete both ways, and it counts only if
it is statistically significant. Failed runs are counted, and never averaged."""

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.pages.formatting import count_text
from mendflow.sim.grid.results import GridResult
from mendflow.sim.grid.scene import BatchScene, GridScene, SiteScene

GAIN_MIN: Final = 0.05
"""A saving of less than a twentieth is not a bottleneck."""
AT_ONCE_BYTES_PER_S: Final = 1e18
_WIDTHS: Final = (0.0, 0.0, 12.7, 4.3, 3.2, 2.8, 2.6, 2.4, 2.4, 2.3)
_WIDTH: Final = 2.2
"""The 95 % quantiles of Student's t distribution by number of values; and the limit for more."""

PlayScene = Callable[[GridScene], Iterable[GridResult]]


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """`what` is the thing that is improved, `name` how. `turnaround_s` is the mean over the seeds that complete both
    ways, None if there are none. `gain` is the share of the turnaround that it saves, negative if it costs some, and
    `noise` its confidence interval; unknown with less than two `pairs` of runs."""

    what: str
    name: str
    turnaround_s: float | None
    failed_runs: int
    pairs: int
    gain: float
    noise: float


def completed(results: Iterable[GridResult]) -> list[GridResult]:
    return [each for each in results if each.status == "completed"]


def what_ifs(
    scene: GridScene, before: Sequence[GridResult], played: PlayScene, tell: Callable[[str], None]
) -> tuple[WhatIf, ...]:
    """The largest saving comes first. `before` are the unchanged runs, seed by seed as `played` gives them."""
    found = []
    for what, name, better in _improvements(scene):
        tell(f"and with {name}")
        found.append(_evaluate(what, name, before, list(played(better))))
    return tuple(sorted(found, key=lambda each: -each.gain))


def _evaluate(what: str, name: str, before: Sequence[GridResult], after: Sequence[GridResult]) -> WhatIf:
    both = [pair for pair in zip(before, after, strict=True) if len(completed(pair)) == len(pair)]
    usual = fmean(was.turnaround_s for was, _ in both) if both else 0.0
    saved = [(was.turnaround_s - now.turnaround_s) / usual if usual else 0.0 for was, now in both]
    return WhatIf(
        what=what,
        name=name,
        turnaround_s=round(fmean(now.turnaround_s for _, now in both), 4) if both else None,
        failed_runs=len(after) - len(completed(after)),
        pairs=len(both),
        gain=round(fmean(saved), 4) if saved else 0.0,
        noise=round(_noise(saved), 4),
    )


def _noise(values: Sequence[float]) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    width = _WIDTHS[count] if count < len(_WIDTHS) else _WIDTH
    return width * stdev(values) / sqrt(count)


def bottleneck(tried: Sequence[WhatIf]) -> str:
    """The bottleneck of a flow, or that so few runs do not show one."""
    known = [each for each in tried if each.pairs]
    clear = next((each for each in known if each.gain >= GAIN_MIN and each.gain > each.noise), None)
    if clear is not None:
        alone = " (one run each: more --seeds show how much of that is chance)" if clear.pairs == 1 else ""
        return f"{clear.what}: with {clear.name} it would take {clear.gain * 100:.0f} % less{alone}"
    unclear = max(known, key=lambda each: each.gain + each.noise, default=None)
    if unclear is None:
        return "not known: no seed completes both as it is and with something improved"
    if unclear.gain + unclear.noise >= GAIN_MIN:
        return (
            f"these runs do not show it: {unclear.name} would save {unclear.gain * 100:.1f} %, but chance alone makes "
            f"{unclear.noise * 100:.1f} % either way in {count_text(unclear.pairs, 'run')}; run more, with --seeds"
        )
    return "the flow itself: its jobs wait for each other, and nothing else that was improved saves a twentieth"


def _improvements(scene: GridScene) -> Iterable[tuple[str, str, GridScene]]:
    """The grid with one thing improved at a time; what is already optimal is left out."""

    def with_sites(changed: Callable[[SiteScene], SiteScene]) -> GridScene:
        return replace(scene, sites=tuple(map(changed, scene.sites)))

    yield "the number of pilots", "twice the pilots", with_sites(_with_double_pilots)
    yield "the files", "files that take no time", with_sites(_with_instant_files)
    if any(site.element.failure for site in scene.sites):
        yield "failures of the storage", "storage that never fails", with_sites(_without_failures)
    if any(site.batch != BatchScene() and site.max_pilots > site.running for site in scene.sites):
        yield "the batch queues", "batch queues that do not wait", with_sites(_without_queue)


def _without_failures(site: SiteScene) -> SiteScene:
    return replace(site, element=replace(site.element, failure=0.0))


def _without_queue(site: SiteScene) -> SiteScene:
    return replace(site, batch=BatchScene())


def _with_double_pilots(site: SiteScene) -> SiteScene:
    return replace(
        site,
        hosts=2 * site.hosts,
        running=2 * site.running,
        min_pilots=2 * site.min_pilots,
        max_pilots=2 * site.max_pilots,
    )


def _with_instant_files(site: SiteScene) -> SiteScene:
    element = replace(site.element, delay=0.0, bytes_per_s=AT_ONCE_BYTES_PER_S)
    return replace(site, element=element, disk_bytes_per_s=AT_ONCE_BYTES_PER_S, site_bytes_per_s=AT_ONCE_BYTES_PER_S)
