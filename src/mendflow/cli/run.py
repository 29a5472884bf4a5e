"""Runs flows on this machine: an embedded server, a pilot, and the case's progress until it ends.

The case is durable in the data folder from the start, so stopping is always safe, and resuming is like starting: open
the folder, start a pilot, follow the case."""

import shlex
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mendflow import wiring
from mendflow.cli.case_ending import collect_ending, wait_for_leftovers
from mendflow.cli.connection import connect, run_async
from mendflow.cli.deployment import deploy
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_files import load_one
from mendflow.cli.inputs import read_inputs, upload_inputs
from mendflow.cli.interrupt import InterruptChoice, Interrupts, ask_choice, interrupts
from mendflow.cli.local_cluster import LocalCluster, start_local_cluster
from mendflow.cli.options import (
    CaseArgument,
    Data,
    Inputs,
    InputsFile,
    Json,
    Keep,
    OutputDir,
    Quiet,
    Report,
    Server,
    ServerTarget,
    Slots,
    TokenFile,
    complete_from_server,
)
from mendflow.cli.output_paths import check_file, check_folder
from mendflow.cli.printing import print_json, say
from mendflow.cli.progress import ENDED, follow, progress
from mendflow.cli.rule_files import put_rules_once, rules_for
from mendflow.cli.server_file import find_server, refuse_if_taken
from mendflow.cli.start_message import StartMessage, build_start_message, print_reply
from mendflow.cli.summary import fetch_outputs, print_summary, relative, result_json, write_report
from mendflow.cli.traces import SizeScale, TimeScale, scale_for
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.views import CaseView

app = typer.Typer()

Begin = Callable[[Client], Awaitable[CaseView]]


LEAVING_SENTENCES = {
    InterruptChoice.STOP: "Stopping: finished jobs are kept; jobs that do not end soon are run again when the case is"
    " resumed.",
    InterruptChoice.DETACH: "Handing over to the background: jobs that do not end soon are run again there.",
}


BACKGROUND_STARTS_S = 10.0


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a case and what to print."""

    folder: Path
    slots: int = 0
    report: Path | None = None
    outputs: Path | None = None
    quiet: bool = False
    json: bool = False
    keep: bool = False
    source: str = ""  # the command that runs the flow file again, if the case came from one


@app.command("run")
def run(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A flow file, YAML, Python, BPEL or JSDL, or a trace.")],
    input: Inputs = None,
    inputs: InputsFile = "",
    operation: Annotated[
        str,
        typer.Option("--operation", metavar="OP", help="The operation that starts a BPEL process.", show_default=False),
    ] = "",
    message: Annotated[
        str,
        typer.Option(
            "--message", metavar="FILE", help="The XML message that starts a BPEL process.", show_default=False
        ),
    ] = "",
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", metavar="NAME=VALUE", help="A part of the message that starts a BPEL process.", show_default=False
        ),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            "--rules", metavar="FILE", help="A rules file; default: FLOW.rules.yaml, if it exists.", show_default=False
        ),
    ] = "",
    slots: Slots = 0,
    scale: TimeScale = None,
    size_scale: SizeScale = None,
    data: Data = "",
    cached: Annotated[
        bool, typer.Option("--cached", help="Use the results of this flow's last case for jobs that have not changed.")
    ] = False,
    notify: Annotated[
        str,
        typer.Option("--notify", metavar="URL", help="A URL that gets a POST when the case ends.", show_default=False),
    ] = "",
    report: Report = "",
    output_dir: OutputDir = "",
    quiet: Quiet = False,
    json: Json = False,
    keep: Keep = False,
) -> None:
    """Run a flow on this machine and show its progress."""
    loaded = load_one(flow, scale_for(flow, scale, size_scale, slots))
    values = read_inputs(loaded.inputs, input or [], inputs, flow=str(loaded.name))
    given = rules_for(flow, loaded, rules)
    options = _run_options(ServerTarget(data=data).folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep)
    scaled = {"--scale": scale, "--size-scale": size_scale}
    again = ["mendflow", "run", flow, *_repeat_options(input or [], inputs, data, rules, scaled), "--cached"]
    options = msgspec.structs.replace(options, source=shlex.join(again))

    start_message = build_start_message(loaded, operation, message, part or []) if loaded.xml is not None else None

    async def begin(client: Client) -> CaseView:
        await deploy(client, loaded)
        if given is not None:
            await put_rules_once(client, given)
        if start_message is not None:
            return await start_message.begin(client)
        kept = await upload_inputs(client, loaded, values)
        return await client.start(loaded.name, kept, cache_from="last" if cached else "", notify=notify)

    raise typer.Exit(wiring.run(_run_locally(options, begin, start_message)))


@app.command("resume")
def resume(
    case: Annotated[
        str,
        typer.Argument(metavar="[CASE]", help="A case's id, or `last`.", autocompletion=complete_from_server("cases")),
    ] = "last",
    item: Annotated[
        str, typer.Argument(metavar="[ITEM]", help="One suspended item; default: the whole case.", show_default=False)
    ] = "",
    server: Server = "",
    token_file: TokenFile = "",
    slots: Slots = 0,
    data: Data = "",
    report: Report = "",
    output_dir: OutputDir = "",
    quiet: Quiet = False,
    json: Json = False,
    keep: Keep = False,
) -> None:
    """Resume a case that was suspended or stopped, or one suspended item."""
    target = ServerTarget(server=server, token_file=token_file, data=data)
    if target.server or find_server(target.folder):
        raise typer.Exit(run_async(_resumed_there(target, case, item, json=json)))
    if not target.has_store:
        raise NotFound(f"there is no case to resume at {target.folder}; start one with mendflow run FLOW")
    options = _run_options(target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep)

    async def begin(client: Client) -> CaseView:
        view = await client.case(case) if case != "last" else await _newest_unfinished(client)
        if view.status in ENDED:
            raise Conflict(f"the case {view.id} has ended ({view.status}); mendflow rerun {view.id} runs it again")
        return await client.resume(view.id, item) if item or view.status == "suspended" else view

    raise typer.Exit(wiring.run(_run_locally(options, begin)))


async def _resumed_there(target: ServerTarget, case: str, item: str, *, json: bool) -> ExitCode:
    """Resume a case or item on a running server, which only has to release it."""
    async with connect(target) as client:
        view = await client.resume(case, item)
    if json:
        print_json(view)
    else:
        say(f"item {item} of {view.id} is resumed" if item else f"{view.id} is resumed")
    return ExitCode.OK


async def _newest_unfinished(client: Client) -> CaseView:
    """The newest case that can be resumed; if there is none, the newest of all."""
    live = [case for status in ("running", "suspended") for case in await client.cases(status=status, limit=1000)]
    own = [case for case in live if case.parent is None]
    return max(own, key=lambda case: case.started_at) if own else await client.case("last")


@app.command("rerun")
def rerun(
    case: CaseArgument,
    from_failed: Annotated[
        bool, typer.Option("--from-failed", help="Run what did not succeed; refuse if nothing failed.")
    ] = False,
    flow: Annotated[
        str,
        typer.Option(
            "--flow",
            metavar="FILE",
            help="Run this flow file instead of the one the case was started with.",
            show_default=False,
        ),
    ] = "",
    server: Server = "",
    token_file: TokenFile = "",
    slots: Slots = 0,
    data: Data = "",
    report: Report = "",
    output_dir: OutputDir = "",
    quiet: Quiet = False,
    json: Json = False,
    keep: Keep = False,
) -> None:
    """Run a case again; results of unchanged jobs come from the cache."""
    target = ServerTarget(server=server, token_file=token_file, data=data)
    corrected = load_one(flow) if flow else None

    async def begin(client: Client) -> CaseView:
        if corrected is None:
            return await client.rerun(case, from_failed=from_failed)
        return await _rerun_with_flow(client, case, corrected, from_failed=from_failed)

    if target.server or find_server(target.folder):
        raise typer.Exit(run_async(_run_on_server(target, begin, json=json)))
    if not target.has_store:
        raise NotFound(f"there is no case at {target.folder} to run again; start one with mendflow run FLOW")
    options = _run_options(target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep)
    raise typer.Exit(wiring.run(_run_locally(options, begin)))


def _repeat_options(pairs: list[str], file: str, data: str, rules: str, scaled: dict[str, float | None]) -> list[str]:
    """The options that repeat the same run."""
    words = [word for pair in pairs for word in ("--input", pair)]
    given = {"--inputs": file, "--rules": rules, "--data-dir": data}
    factors = {name: f"{factor:g}" for name, factor in scaled.items() if factor is not None}
    return words + [word for name, value in (given | factors).items() if value for word in (name, value)]


def _run_options(
    folder: Path, slots: int, report: str, output_dir: str, *, quiet: bool, json: bool, keep: bool
) -> RunOptions:
    page = Path(report).absolute() if report else None
    outputs = Path(output_dir).absolute() if output_dir else None
    check_file("--report", page)
    check_folder("--output-dir", outputs)
    return RunOptions(
        folder=folder,
        slots=slots,
        report=page,
        outputs=outputs,
        quiet=quiet,
        json=json,
        keep=keep,
    )


async def _rerun_with_flow(client: Client, case: str, flow: Flow, *, from_failed: bool) -> CaseView:
    """The case's inputs with the file's flow."""
    earlier = await client.case(case)
    if earlier.status not in ENDED:
        raise Conflict(
            f"the case {earlier.id} is still {earlier.status}; wait for its end, or mendflow cancel {earlier.id}"
        )
    if from_failed and earlier.status == "completed":
        raise Conflict(f"nothing failed in case {earlier.id}; leave --from-failed out to run it again")
    await deploy(client, flow)
    return await client.start(flow.name, earlier.inputs, cache_from=earlier.id)


async def _run_on_server(target: ServerTarget, begin: Begin, *, json: bool) -> ExitCode:
    """Start the new case on a running server; its pilots run it."""
    async with connect(target) as client:
        view = await begin(client)
    if json:
        print_json(view)
    else:
        say(f"{view.id} started; see it with mendflow watch {view.id}")
    return ExitCode.OK


async def _run_locally(options: RunOptions, begin: Begin, start_message: StartMessage | None = None) -> ExitCode:
    refuse_if_taken(options.folder)
    with interrupts() as caught:
        async with start_local_cluster(options.folder, caught.event, slots=options.slots, keep=options.keep) as cluster:
            case = await begin(cluster.client)
            ended, wish = await _follow_to_end(cluster, case, options, caught)
            if ended is not None:
                ended = await wait_for_leftovers(cluster.client, ended, caught.event, quiet=options.quiet)
                if start_message is not None and not options.json:
                    print_reply(await start_message.end())
                return await _print_result(cluster.client, ended, options)
            say(LEAVING_SENTENCES[wish], err=True)
            await cluster.leave()
            last = await cluster.client.case(case.id)
            if last.status in ENDED:  # its last jobs ended while we waited for them
                return await _print_result(cluster.client, last, options)
    if wish is InterruptChoice.DETACH:
        return _detach(options, str(case.id))
    say(f"Stopped. Continue with: mendflow resume {case.id}", err=True)
    return ExitCode.INTERRUPTED


async def _follow_to_end(
    cluster: LocalCluster, case: CaseView, options: RunOptions, caught: Interrupts
) -> tuple[CaseView | None, InterruptChoice]:
    """The case when it has ended; otherwise what the user chose."""
    while True:
        shown = progress(quiet=options.quiet)
        try:
            ended = await follow(cluster.client, case.id, shown, caught.event)
        finally:
            shown.close()
        if ended is not None:
            return ended, InterruptChoice.CONTINUE
        cluster.check()
        wish = await ask_choice(caught)
        if wish is not InterruptChoice.CONTINUE:
            return None, wish


async def _print_result(client: Client, case: CaseView, options: RunOptions) -> ExitCode:
    """Print the summary first: it must not be lost if the report cannot be written."""
    ending = await collect_ending(client, case)
    fetched = await fetch_outputs(client, case, options.outputs or Path("outputs") / str(case.id))
    path = options.report or options.folder / "reports" / f"{case.id}.html"
    if not options.json:
        print_summary(ending, fetched, source=options.source)
    try:
        await write_report(client, ending, path)
    except OSError:
        if options.json:
            print_json(result_json(case, fetched, None))
        raise
    if options.json:
        print_json(result_json(case, fetched, path))
    else:
        say(f"report: {relative(path)}")
    return ExitCode.OK if case.status == "completed" else ExitCode.CASE_FAILED


def _detach(options: RunOptions, case: str) -> ExitCode:
    """Continue in a separate process that survives the terminal."""
    log = options.folder / "detached.log"
    command = [sys.executable, "-m", "mendflow", "resume", case, "--data-dir", str(options.folder)]
    command += ["--jobs", str(options.slots)] + (["--keep"] if options.keep else [])
    command += ["--report", str(options.report)] if options.report else []
    command += ["--output-dir", str(options.outputs)] if options.outputs else []
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    give_up_at = time.monotonic() + BACKGROUND_STARTS_S
    while find_server(options.folder) is None and process.poll() is None and time.monotonic() < give_up_at:
        time.sleep(0.05)
    if process.poll():
        say(
            f"{case} could not be continued in the background, see {log}; continue with mendflow resume {case}",
            err=True,
        )
        return ExitCode.INTERRUPTED
    say(f"{case} continues in the background and logs to {log}. Watch it with: mendflow watch {case}", err=True)
    return ExitCode.OK
