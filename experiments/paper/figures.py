"""Figures 7 to 12: bars and lines of means, with the standard deviation of the runs as error bars."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from experiments.paper.claims import of_caching, of_hits, of_storage, of_submission
from experiments.paper.claims.judging import SampleSet
from experiments.paper.samples import TICK_S, summary
from experiments.paper.settings import SUBMISSIONS, Setup
from experiments.paper.workflows import WORKFLOWS
from mendflow.pages.charts.model import BarChart, BarSeries, Chart, LineChart, LineSeries, Unit
from mendflow.pages.charts.pages import Figure

CACHE, NO_CACHE = "with caches (C3)", "without caches"


def figures_of(results: SampleSet, figures: Sequence[int] = ()) -> list[Figure]:
    """These figures, or all."""
    return [
        Figure(name=f"figure-{number}", chart=draw(results), text=TEXTS[number])
        for number, draw in FIGURES_BY_NUMBER.items()
        if not figures or number in figures
    ]


def _running(results: SampleSet) -> Chart:
    lines = []
    for setup in of_submission.ALL:
        counts = [sample.running for sample in results.of(setup)]
        ticks = [
            summary([each[tick] if tick < len(each) else 0 for each in counts]) for tick in range(max(map(len, counts)))
        ]
        points = tuple((tick * TICK_S, each.mean) for tick, each in enumerate(ticks))
        deviations = tuple(each.deviation for each in ticks)
        lines.append(LineSeries(name=SUBMISSIONS[setup.submission], points=points, errors=deviations))
    return LineChart(
        title="Figure 7: running jobs over time, W3",
        series=tuple(lines),
        x_label="time since the workflow was started",
        y_label="running jobs",
        note=_runs(results, of_submission.RUNNING, "Lines", "bands"),
    )


def _compared(
    results: SampleSet,
    *,
    title: str,
    series: Mapping[str, Mapping[str, Setup]],
    what: str,
    y_label: str,
    unit: Unit,
    top: float = 0.0,
) -> BarChart:
    bars = []
    for name, setups in series.items():
        told = [results.told(setup, what) for setup in setups.values()]
        values, errors = tuple(each.mean for each in told), tuple(each.deviation for each in told)
        bars.append(BarSeries(name=name, values=values, errors=errors))
    setups = next(iter(series.values()))
    some = next(iter(setups.values()))
    note = _runs(results, some, "Bars", "whiskers")
    return BarChart(
        title=title, groups=tuple(setups), series=tuple(bars), y_label=y_label, unit=unit, note=note, top=top
    )


def _runs(results: SampleSet, setup: Setup, these: str, those: str) -> str:
    runs = results.told(setup, "seed").runs
    return f"{these} are means of {runs} runs, {those} their standard deviation." if runs > 1 else "A single run."


def _storage(title: str, what: str, y_label: str) -> Callable[[SampleSet], Chart]:
    series = {CACHE: of_storage.CACHED, NO_CACHE: of_storage.PLAIN}
    return lambda results: _compared(results, title=title, series=series, what=what, y_label=y_label, unit="seconds")


def _caching(title: str, what: str, y_label: str) -> Callable[[SampleSet], Chart]:
    series = {CACHE: of_caching.CACHED, NO_CACHE: of_caching.PLAIN}
    return lambda results: _compared(results, title=title, series=series, what=what, y_label=y_label, unit="seconds")


def _hits(results: SampleSet) -> Chart:
    series = {
        of_hits.NAMES[scheme]: {workflow: of_hits.SETUPS[workflow, scheme] for workflow in WORKFLOWS}
        for scheme in of_hits.SCHEMES
    }
    return _compared(
        results,
        title="Figure 12: cache hit ratio",
        series=series,
        what="hit_ratio",
        y_label="reads that a cache served",
        unit="share",
        top=1.0,
    )


FIGURES_BY_NUMBER: Final[dict[int, Callable[[SampleSet], Chart]]] = {
    7: _running,
    8: _storage("Figure 8: stage-in time of a job, W1", "stage_in_s", "seconds of reading for each job of step1"),
    9: _storage("Figure 9: turnaround time, W1", "turnaround_s", "seconds from start to end"),
    10: _caching(
        "Figure 10: stage-in time of a job under d3f3", "stage_in_s", "seconds of reading for each job of step1"
    ),
    11: _caching("Figure 11: turnaround time under d3f3", "turnaround_s", "seconds from start to end"),
    12: _hits,
}

TEXTS: Final[dict[int, str]] = {
    7: "Pilots that already run take all jobs at once, and go on with step1 as soon as step0 is over. Whoever submits"
    " directly waits for the grid before each step, and to be told of its end: nothing runs in the minutes in which its"
    " line lies at zero, between the steps and at the end.",
    8: "Without caches every file comes from the storage element, at its pace. With caches that hardly matters.",
    9: "Delays make each job longer; a failure makes a job begin again, and all of step1 wait for it.",
    10: "The more of its files a job finds in caches, the less it reads from a storage element at its worst.",
    11: "Reading less from a storage element at its worst also means to begin again less often.",
    12: "A chain finds all its files if jobs wait for the pilot that has them. A split gains by sharing on a host.",
}
