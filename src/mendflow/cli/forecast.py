"""Turns the options of `mendflow sim FLOW` into a question for the simulator, and prints its answer."""

import hashlib
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mendflow.cli.case_ending import collect_ending
from mendflow.cli.connection import connect, run_async
from mendflow.cli.flow_arguments import load_one
from mendflow.cli.inputs import files_of_defaults, read_inputs
from mendflow.cli.job_estimates import estimates_from_items, estimates_from_options, input_sizes, place_sizes
from mendflow.cli.options import ServerTarget
from mendflow.cli.printing import print_table, say
from mendflow.cli.sim_needs import check_needs
from mendflow.core.data.table_files import paths_in, with_files
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import FILES, Flow
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.projects import ProjectSettings, Quotas
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import ItemView
from mendflow.formats.wfformat import TRACE, Scale, Trace, as_flow, by_name, load_trace
from mendflow.pages.charts.pages import ChartTable, page, write_figures
from mendflow.pages.charts.scales import value_text
from mendflow.pages.formatting import count_text, duration_text
from mendflow.sim.estimates import Estimate, Estimates, check_known, jobs_of, logical_inputs, merge_estimates
from mendflow.sim.grid.scene import GridScene, SiteScene, check_scene
from mendflow.sim.predict import Prediction, Question
from mendflow.sim.prediction_figures import figures
from mendflow.sim.recorded_overheads import RecordedRun, SystemOverhead, recorded_run
from mendflow.sim.what_ifs import WhatIf

STEPS_SHOWN = 20
AS_IT_IS = Scale(time=1.0, size=1.0)
SPREAD_MIN = 0.002
"""A relative spread smaller than this is not shown."""
NOISE_MIN = 0.0005
"""The same for savings, which are shown to a tenth of a percent."""


class ForecastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command."""

    flow: str
    sites: tuple[SiteScene, ...]
    seeds: tuple[int, ...]
    pairs: list[str] = []
    inputs: str = ""
    runtimes: list[str] = []
    sizes: list[str] = []
    outputs: list[str] = []
    like: str = ""
    target: ServerTarget = ServerTarget()
    scale: Scale = AS_IT_IS
    as_recorded: bool = False
    recorded_like: tuple[str, ...] = ()
    what_if: bool = True
    processes: int = 1
    limits: dict[str, int] = {}
    quotas: Quotas = Quotas()


def question_of(request: ForecastRequest) -> Question:
    """Validates all options before anything is simulated."""
    recorded = recorded_by(request)
    overhead = recorded.overhead if recorded is not None and recorded.added else SystemOverhead()
    sites = tuple(replace(site, overhead_s=site.overhead_s + overhead.job_s) for site in request.sites)
    projects = {DEFAULT_PROJECT: ProjectSettings(quotas=request.quotas)} if request.quotas != Quotas() else {}
    scene = GridScene(sites=sites, recovery=True, start_gap_s=overhead.gap_s, limits=request.limits, projects=projects)
    check_scene(scene)
    flow, works = _flow(request)
    values = read_inputs(flow.inputs, request.pairs, request.inputs, flow=str(flow.name))
    values = {**files_of_defaults(flow, values), **values}
    sizes = input_sizes(request.sizes, flow.inputs)
    files = {name: tuple(job.files) for name, job in jobs_of(flow).items()}
    layers = [estimates_from_options(request.runtimes, request.sizes, request.outputs, files)]
    if request.like:
        layers.append(estimates_from_items(run_async(_items_of(request.target, request.like))))
    estimates = Estimates(merge_estimates([*layers, works]))
    check_known(flow, estimates)
    check_needs(jobs_of(flow), request.sites)
    places = place_sizes(request.sizes, flow.folder)
    _check_logical(flow, places)
    return Question(
        flow=flow,
        inputs={name: _input(flow, name, value, sizes) for name, value in values.items()},
        scene=replace(scene, files=places),
        job_model=estimates,
        seeds=request.seeds,
        what_if=request.what_if,
        processes=request.processes,
    )


def recorded_by(request: ForecastRequest) -> RecordedRun | None:
    """How a trace was recorded; None if the flow is none, or does not say."""
    given = "--as-recorded" if request.as_recorded else "--recorded-like" if request.recorded_like else ""
    if not request.flow.endswith(TRACE):
        if given:
            raise InvalidRequest(f"{request.flow} is not a trace, so nothing of it was recorded; leave {given} out")
        return None
    if request.as_recorded and request.recorded_like:
        raise InvalidRequest(
            "--as-recorded takes the overhead from the trace's own total, --recorded-like from other traces: give one"
        )
    slots = sum(max(site.running, site.max_pilots) * site.slots for site in request.sites)
    trace = load_trace(request.flow)
    like = [_teacher(path, request.flow, trace) for path in request.recorded_like]
    return recorded_run(trace, slots, scale=request.scale.time, added=bool(given), like=like)


def _teacher(path: str, flow: str, trace: Trace) -> Trace:
    """A trace from which the overhead of the system that recorded `trace` can be learned."""
    if Path(path).resolve() == Path(flow).resolve():
        raise InvalidRequest(f"--recorded-like {path} is the trace itself: give others, or --as-recorded instead")
    found = load_trace(path)
    if not found.makespan_s or not found.tasks:
        raise InvalidRequest(f"--recorded-like {path} does not say how long it took, and nothing is learned from it")
    if found.system != trace.system:
        told = [f"by {each.system}" if each.system else "by a system that it does not name" for each in (found, trace)]
        raise InvalidRequest(
            f"--recorded-like {path} was recorded {told[0]}, and {flow} {told[1]}: give traces of the same system"
        )
    return found


def recorded_text(recorded: RecordedRun, made: Prediction) -> str:
    """The simulated time beside the recorded one, and what is in the difference."""
    by = f" by {recorded.system}" if recorded.system else ""
    part = made.turnaround_s.mean / recorded.makespan_s
    told = f"It was recorded{by} with {_time(recorded.makespan_s)} on {count_text(recorded.machines, 'machine')}"
    overhead = recorded.overhead
    if recorded.learned_from:
        return (
            f"{told}; this is {part:.2f} of that. Each job has {_time(overhead.job_s)} added, and one begins every"
            f" {_time(overhead.gap_s)} at most: what that system took for itself in"
            f" {count_text(len(recorded.learned_from), 'other trace')}."
        )
    if recorded.added:
        return (
            f"{told}; this is {part:.2f} of that. Each job has {_time(overhead.job_s)} added: what that system"
            " must have taken for submission, queue and staging, by the recorded total."
        )
    return (
        f"{told}; this is {part:.2f} of that. What that system took for submission, queue and staging is not in it"
        + (f" (--as-recorded adds {_time(overhead.job_s)} to each job)." if overhead.job_s else ".")
    )


def _flow(request: ForecastRequest) -> tuple[Flow, dict[str, Estimate]]:
    """The flow, and what its file says of its jobs if it is a trace."""
    if not request.flow.endswith(TRACE):
        return load_one(request.flow, request.scale if request.scale != AS_IT_IS else None), {}
    made = as_flow(load_trace(request.flow), request.scale, by_name)
    return made.flow, {name: Estimate(seconds=work.seconds, files=work.files) for name, work in made.works.items()}


async def _items_of(target: ServerTarget, case: str) -> list[ItemView]:
    async with connect(target) as client:
        ending = await collect_ending(client, await client.case(case))
    return [*ending.items, *ending.called_items]


def _check_logical(flow: Flow, sizes: dict[str, int]) -> None:
    """Refuse logical files of unknown size: there is no catalogue to ask."""
    unknown = sorted(logical_inputs(flow) - sizes.keys())
    if unknown:
        raise InvalidRequest(f"how large is {', '.join(unknown[:8])}? Say it with --size {unknown[0]}=2GB")


def _input(flow: Flow, name: str, value: Value, sizes: dict[str, int]) -> Value:
    if flow.inputs[name].type == FILES and isinstance(value, list):
        return [_imagined(name, each, sizes) for each in value]
    if paths := paths_in(value, columns := flow.inputs[name].columns):
        return with_files(value, columns, {path: _imagined(name, path, sizes) for path in paths})
    return _imagined(name, value, sizes) if flow.inputs[name].type == "file" else value


def _imagined(name: str, value: Value, sizes: dict[str, int]) -> Value:
    if not isinstance(value, str):
        return value
    known = 0 if value.startswith(LOGICAL_PREFIX) else Path(value).stat().st_size
    return imagined_file(value, sizes.get(name, known)).as_value()


def imagined_file(name: str, size: int) -> FileRef:
    """A file that is never read: its name stands for its content."""
    return FileRef(sha256=hashlib.sha256(name.encode()).hexdigest(), bytes=size, name=Path(name).name)


def print_forecast(made: Prediction, recorded: RecordedRun | None = None) -> None:
    say(headline(made))
    if recorded is not None:
        say(recorded_text(recorded, made))
    if made.failed_runs == made.runs and not made.failed_attempts:
        say("A simulated job has no outputs. Give them with --outputs JOB=JSON,")
        say("or take it from a case that ran: --like CASE.")
    print_table(("", ""), [(word, value) for value, word in numbers(made)])
    say()
    heads, *rows = step_rows(made)
    print_table(heads, rows[:STEPS_SHOWN])
    if len(rows) > STEPS_SHOWN:
        say(f"and {count_text(len(rows) - STEPS_SHOWN, 'more job')}")
    if made.what_ifs:
        say()
        heads, *rows = what_if_rows(made)
        print_table(heads, rows)
        say(f"Bottleneck: {made.bottleneck}.")


def headline(made: Prediction) -> str:
    """What it would take, over how many runs."""
    took, why = made.turnaround_s, made.fault or "no reason was given"
    if made.failed_runs == made.runs:
        each = f", in each of {made.runs:,} runs" if made.runs > 1 else ""
        return f"{made.flow} {made.status} in the simulated world{each}: {why}"
    spread = f" ± {_time(took.deviation)} ({_time(took.least)} to {_time(took.most)})"
    time = f"{_time(took.mean)}{spread if took.deviation > took.mean * SPREAD_MIN else ''}"
    if not made.failed_runs:
        return f"{made.flow} would take {time}"
    fail, others = "fails" if made.failed_runs == 1 else "fail", made.runs - made.failed_runs
    rest = "the others take" if others > 1 else "the other one takes"
    return f"{made.failed_runs:,} of {made.runs:,} runs of {made.flow} {fail} ({why}); {rest} {time}"


def numbers(made: Prediction) -> list[tuple[str, str]]:
    """The most important figures."""
    cached = [(value_text(made.hit_ratio, "share"), "of inputs from caches")] if made.read_files else []
    return [
        (_time(made.turnaround_s.mean), "turnaround"),
        (value_text(made.jobs, "number"), "jobs"),
        (value_text(made.failed_attempts, "number"), "attempts that fail"),
        (f"{made.pilots:,}", "pilots that worked"),
        (f"{made.most_at_once:,}", "jobs at once, at most"),
        (value_text(made.busy, "share"), "of their time at work"),
        (value_text(made.stage_in_part + made.stage_out_part, "share"), "of that moving files"),
        *cached,
    ]


def step_rows(made: Prediction) -> list[tuple[str, ...]]:
    heads = ("job", "attempts", "failed", "bringing files", "computing", "taking files away")
    rows = [
        (
            step.name,
            value_text(step.attempts, "number"),
            value_text(step.failed, "number"),
            *(_time(seconds) for seconds in (step.stage_in_s, step.run_s, step.stage_out_s)),
        )
        for step in made.steps
    ]
    return [heads, *rows]


def what_if_rows(made: Prediction) -> list[tuple[str, ...]]:
    """Headers and rows. If runs fail, a column says how many."""
    worlds: list[tuple[str, float | None, str, int]] = [("as it is", made.turnaround_s.mean, "-", made.failed_runs)]
    worlds += [(each.name, each.turnaround_s, _savings_text(each), each.failed_runs) for each in made.what_ifs]
    rows = [
        (name, "-" if took is None else _time(took), saved, f"{failed:,} of {made.runs:,}")
        for name, took, saved, failed in worlds
    ]
    columns = 4 if any(failed for *_, failed in worlds) else 3
    return [row[:columns] for row in (("what if", "turnaround", "saved", "runs that fail"), *rows)]


def _savings_text(each: WhatIf) -> str:
    """Without pairs of runs nothing; for one pair the saving; for more the saving with its confidence interval."""
    if not each.pairs:
        return "-"
    saved = f"{round(each.gain * 100, 1) + 0.0:.1f}"  # print -0 as 0
    return f"{saved} %" if each.noise < NOISE_MIN else f"{saved} ± {each.noise * 100:.1f} %"


def write_forecast(made: Prediction, folder: Path) -> list[Path]:
    """Write a page, its charts and their data, and the prediction itself."""
    drawn = figures(made)
    written = write_figures(folder, drawn)
    heads, *steps = step_rows(made)
    tables = [ChartTable(title="Jobs", heads=tuple(heads), rows=tuple(steps))]
    if made.what_ifs:
        heads, *rows = what_if_rows(made)
        tables.append(ChartTable(title="What if", heads=tuple(heads), rows=tuple(rows)))
    intro = headline(made) + (f".\n\nBottleneck: {made.bottleneck}." if made.bottleneck else "")
    texts = {
        "index.html": page(f"{made.flow}, as predicted", intro, drawn, tables, numbers(made)),
        "prediction.json": msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / "index.html", *written, folder / "prediction.json"]


def _time(seconds: float) -> str:
    return duration_text(seconds * 1000)
