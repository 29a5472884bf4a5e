"""The charts of a prediction: running jobs over time, the phases of an attempt per job, and what-ifs."""

from typing import Final

from mendflow.pages.charts.model import BarChart, BarSeries, LineChart, LineSeries
from mendflow.pages.charts.pages import Figure
from mendflow.sim.predict import Prediction

STEPS_SHOWN: Final = 8


def figures(prediction: Prediction) -> list[Figure]:
    """Running jobs over time, the phases of an attempt per job, and what-ifs."""
    seeds = "Mean over the seeds; the band is one standard deviation."
    line = tuple((at, count) for at, count, _ in prediction.running)
    band = tuple(deviation for _, _, deviation in prediction.running)
    lines = LineChart(
        title=f"Jobs at work: {prediction.flow}",
        series=(LineSeries(name="at work", points=line, errors=band if any(band) else ()),),
        x_label="time since the start",
        y_label="jobs",
        steps=True,
        note=seeds if any(band) else "",
    )
    drawings = [Figure(name="running", chart=lines)]
    if prediction.steps:
        drawings.append(Figure(name="steps", chart=_step_bars(prediction)))
    if prediction.what_ifs:
        drawings.append(Figure(name="what-if", chart=_what_if_bars(prediction)))
    return drawings


def _step_bars(prediction: Prediction) -> BarChart:
    steps = sorted(
        prediction.steps, key=lambda each: -each.attempts * (each.stage_in_s + each.run_s + each.stage_out_s)
    )
    shown = steps[:STEPS_SHOWN]
    more = f" The {STEPS_SHOWN} that take most are drawn." if len(steps) > STEPS_SHOWN else ""
    return BarChart(
        title="What one attempt takes",
        groups=tuple(each.name for each in shown),
        series=(
            BarSeries(name="bringing files", values=tuple(each.stage_in_s for each in shown)),
            BarSeries(name="computing", values=tuple(each.run_s for each in shown)),
            BarSeries(name="taking files away", values=tuple(each.stage_out_s for each in shown)),
        ),
        unit="seconds",
        y_label="seconds",
        note=f"Means over all attempts.{more}",
    )


def _what_if_bars(prediction: Prediction) -> BarChart:
    others = [(f"with {each.name}", each.turnaround_s) for each in prediction.what_ifs]
    times: list[tuple[str, float | None]] = [("as it is", prediction.turnaround_s.mean), *others]
    fails = prediction.failed_runs or any(each.failed_runs for each in prediction.what_ifs)
    left_out = " Runs that fail are left out." if fails else ""
    return BarChart(
        title="Turnaround if something were better",
        groups=tuple(name for name, _ in times),
        series=(BarSeries(name="turnaround", values=tuple(value for _, value in times)),),
        unit="seconds",
        y_label="seconds",
        note=f"The same seeds, played again with one thing better at a time.{left_out}",
    )
