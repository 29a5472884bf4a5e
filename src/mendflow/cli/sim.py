"""`mendflow sim`: predicts flows in virtual time, and compares the simulator with this machine.

`mendflow sim WORD`, where WORD is not a subcommand, means `mendflow sim FLOW`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_needs import limits_given
from mendflow.cli.forecast import ForecastRequest, print_forecast, question_of, recorded_by, write_forecast
from mendflow.cli.options import USUAL_TARGET, Inputs, InputsFile, Json, Quiet, ServerTarget, Slots, with_target
from mendflow.cli.output_paths import check_folder
from mendflow.cli.printing import print_json, say
from mendflow.cli.quota_options import quotas_given
from mendflow.cli.sim_sites import sites_of
from mendflow.cli.summary import relative
from mendflow.cli.trace_comparison import compare, print_comparison
from mendflow.cli.traces import scale_here
from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.spelling import nearest_word
from mendflow.formats.wfformat import Scale
from mendflow.formats.wfformat.flows import SIZE_SCALE
from mendflow.pilot.environment import usable_cpus
from mendflow.sim.predict import predict

app = typer.Typer()
FLOW = "FLOW"
COMMANDS = ("compare",)


class FlowGroup(TyperGroup):
    """A group with a default command."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [FLOW, *args]
        return super().parse_args(ctx, args)


sim = typer.Typer(cls=FlowGroup, no_args_is_help=True)
app.add_typer(sim, name="sim")
Seeds = Annotated[int, typer.Option("--seeds", min=1, max=1000, metavar="N", help="Simulate each this many times.")]
TimeScale = Annotated[
    float, typer.Option("--scale", min=0, metavar="FACTOR", help="For a trace: multiply its times by this.")
]
Processes = Annotated[int, typer.Option("--processes", min=0, metavar="N", help="Processes to use; 0: one per CPU.")]
FirstSeed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="The first seed.")]


@sim.callback()
def simulate() -> None:
    """Predict what a flow would take, by playing it in virtual time."""


def print_written(paths: Iterable[str]) -> None:
    for path in paths:
        say(f"written: {relative(Path(path))}")


@sim.command("compare")
def compare_trace(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace in WfFormat.")],
    scale: TimeScale = 1.0,
    size_scale: Annotated[
        float, typer.Option("--size-scale", min=0, metavar="FACTOR", help="Multiply its file sizes by this.")
    ] = SIZE_SCALE,
    slots: Slots = 0,
    seed: FirstSeed = 1,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run a trace on this machine with scaled times, simulate it, and compare the two."""
    made = compare(trace, scale_here(scale, size_scale, slots), slots=slots, seed=seed, quiet=quiet or json)
    if json:
        print_json(made)
    else:
        print_comparison(made)
    raise typer.Exit(ExitCode.OK if made.holds else ExitCode.CASE_FAILED)


@sim.command(FLOW)
@with_target
def predict_flow(
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="A flow file, YAML, Python or JSDL, or a trace in WfFormat.")
    ],
    input: Inputs = None,
    inputs: InputsFile = "",
    pilots: Annotated[
        int,
        typer.Option(
            "--pilots", min=0, metavar="N", help="Number of pilots, all there from the start.", show_default=False
        ),
    ] = 0,
    site: Annotated[
        list[str] | None,
        typer.Option(
            "--site", metavar="SITE", help="NAME:key=value,... or a site file; can be repeated.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=COUNT", help="Count of a named limit; others bound nothing.", show_default=False
        ),
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            "--quota",
            metavar="NAME=N",
            help="A quota of the project: running-jobs, cpus, memory or waiting-jobs.",
            show_default=False,
        ),
    ] = None,
    runtime: Annotated[
        list[str] | None,
        typer.Option(
            "--runtime",
            metavar="JOB=TIME",
            help="Run time of a job, such as 90+-10; `*` stands for all other jobs.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="JOB.FILE=SIZE",
            help="Size of a file that a job makes, or of inputs.NAME.",
            show_default=False,
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--outputs",
            metavar="JOB=JSON",
            help="Outputs of a job, where the flow depends on them.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str,
        typer.Option(
            "--like", metavar="CASE", help="Take times, sizes and outputs from this case.", show_default=False
        ),
    ] = "",
    scale: TimeScale = 1.0,
    size_scale: Annotated[
        float,
        typer.Option("--size-scale", min=0, metavar="FACTOR", help="For a trace: multiply its file sizes by this."),
    ] = 1.0,
    as_recorded: Annotated[
        bool,
        typer.Option("--as-recorded", help="For a trace: add to each job what the recording system took for itself."),
    ] = False,
    recorded_like: Annotated[
        list[str] | None,
        typer.Option(
            "--recorded-like",
            metavar="TRACE",
            help="For a trace: add what the recording system took for itself in this other trace; can be repeated.",
            show_default=False,
        ),
    ] = None,
    seeds: Seeds = 5,
    seed: FirstSeed = 1,
    what_if: Annotated[
        bool, typer.Option("--what-if/--no-what-if", help="Simulate again with one thing better at a time.")
    ] = True,
    processes: Processes = 1,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="The folder for the page, charts and data.", show_default=False)
    ] = "",
    quiet: Quiet = False,
    target: ServerTarget = USUAL_TARGET,
    json: Json = False,
) -> None:
    """Predict how long a flow takes, how busy its pilots and caches are, and what limits it."""
    check_flow_exists(flow)
    request = ForecastRequest(
        flow=flow,
        pairs=input or [],
        inputs=inputs,
        sites=sites_of(site or [], pilots),
        runtimes=runtime or [],
        sizes=size or [],
        outputs=outputs or [],
        like=like,
        target=target,
        scale=Scale(time=scale, size=size_scale),
        as_recorded=as_recorded,
        recorded_like=tuple(recorded_like or ()),
        seeds=tuple(range(seed, seed + seeds)),
        what_if=what_if,
        processes=processes or usable_cpus(),
        limits=limits_given(limit or []),
        quotas=quotas_given(quota or []),
    )
    folder = check_output_folder(out) if out else None
    made = predict(question_of(request), tell=progress_printer(quiet))
    written = write_forecast(made, folder) if folder is not None else []
    if json:
        known = {"recorded": recorded} if (recorded := recorded_by(request)) is not None else {}
        print_json({"prediction": made, **known, "written": [str(path) for path in written]})
    else:
        print_forecast(made, recorded_by(request))
        print_written(map(str, written))
    raise typer.Exit(ExitCode.OK if made.status == "completed" else ExitCode.CASE_FAILED)


def check_flow_exists(flow: str) -> None:
    """Check first that the word is a subcommand or a file."""
    file = flow.rpartition(":")[0] if ".py:" in flow else flow
    if not Path(file).exists():
        meant = nearest_word(flow, COMMANDS)
        hint = f"did you mean {meant}?" if meant else "give a flow file, or `compare TRACE`"
        raise InvalidRequest(f"{flow}: there is no such file; {hint}")


def check_output_folder(out: str) -> Path:
    """Check where results go before anything is simulated."""
    folder = Path(out).absolute()
    check_folder("--out", folder)
    return folder


def progress_printer(quiet: bool) -> Callable[[str], None]:
    return lambda sentence: None if quiet else say(sentence, err=True)
