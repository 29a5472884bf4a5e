"""The commands that run cases and show them until they end: run, resume, rerun."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mendflow.cli.attempt_bounds import with_bounds
from mendflow.cli.case_origins import changed_inputs, demand_same_flow, origin_of, warn_of_changed_flow
from mendflow.cli.case_references import find_reference
from mendflow.cli.case_runs import Begin, RunOptions, rerun_group_locally, run_locally, run_on_server
from mendflow.cli.connection import connect, run_async
from mendflow.cli.deployment import deploy
from mendflow.cli.dry_run import print_plan
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_files import Xpath2As1, load_one
from mendflow.cli.flow_triggers import warn_of_triggers
from mendflow.cli.inputs import read_inputs, upload_inputs
from mendflow.cli.option_words import OptionValues, words_of
from mendflow.cli.options import (
    SERVER_VARIABLE,
    Again,
    Data,
    Inputs,
    InputsFile,
    Json,
    Keep,
    OnUnhandled,
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
from mendflow.cli.rule_applying import restart_group, say_applied
from mendflow.cli.rule_files import put_rules_once, rules_for
from mendflow.cli.server_file import find_server
from mendflow.cli.start_message import build_start_message
from mendflow.cli.traces import SizeScale, TimeScale, scale_for
from mendflow.cli.unfinished_cases import live_cases, say_continued
from mendflow.client import Client
from mendflow.core.engine.remarks import remarks_on
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.values import Value
from mendflow.core.model.views import CASE_END_STATES, CachePolicy, CaseOrigin, CaseView
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.wiring import run as run_loop

app = typer.Typer()

NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every job; use no earlier results.")]


@app.command("run")
@with_bounds
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
    xpath2_as_1: Xpath2As1 = False,
    on_unhandled: OnUnhandled = "",
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
    server: Annotated[
        str,
        typer.Option(
            "--server", metavar="URL", help="Run it on this server, and show its progress here.", show_default=False
        ),
    ] = "",
    token_file: TokenFile = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Say what would run and why; start nothing, write nothing.")
    ] = False,
    cached: Annotated[
        bool, typer.Option("--cached", help="Also use earlier results of jobs that do not declare inputs and files.")
    ] = False,
    no_cache: NoCache = False,
    again: Again = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Start a new case even if a stopped one has the same flow and inputs."),
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
    bounds: AttemptBounds = USUAL_BOUNDS,
) -> None:
    """Run a flow on this machine and show its progress."""
    if cached and no_cache:
        raise typer.BadParameter("give --cached or --no-cache, not both")
    cache: CachePolicy = "none" if no_cache else "all" if cached else "declared"
    loaded = load_one(flow, scale_for(flow, scale, size_scale, slots), xpath2_as_1=xpath2_as_1)
    if not quiet:
        warn_of_triggers(loaded, flow)
        for remark in remarks_on(loaded):
            say(f"remark: {remark}", err=True)
    values = read_inputs(loaded.inputs, input or [], inputs, flow=str(loaded.name))
    given = rules_for(flow, loaded, rules)
    target = ServerTarget(server=server, token_file=token_file, data=data)
    if dry_run:
        run_async(print_plan(loaded, values, target, cache, again=again or [], slots=slots, json=json))
        return
    if not server and os.environ.get(SERVER_VARIABLE):
        say(
            f"{SERVER_VARIABLE} is not followed: the flow runs on this machine; --server URL runs it there,"
            " and mendflow start leaves it there",
            err=True,
        )
    options = _run_options(target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep, bounds=bounds)
    repeated: OptionValues = {
        "--input": input,
        "--inputs": inputs,
        "--operation": operation,
        "--message": message,
        "--part": part,
        "--xpath2-as-1": xpath2_as_1,
        "--on-unhandled": on_unhandled,
        "--rules": rules,
        "--scale": scale,
        "--size-scale": size_scale,
        "--data-dir": data,
        "--server": server,
        "--token-file": token_file,
        "--cached": cached,
        "--no-cache": no_cache,
        "--notify": notify,
        "--output-dir": output_dir,
    }
    command = shlex.join(["mendflow", "run", flow, *words_of(repeated)])
    options = msgspec.structs.replace(options, source=command, hold=on_unhandled == "hold")
    origin = options.kept_with(origin_of(flow, loaded, input or []))

    start_message = build_start_message(loaded, operation, message, part or []) if loaded.xml is not None else None

    async def begin(client: Client) -> CaseView:
        await deploy(client, loaded)
        if given is not None:
            await put_rules_once(client, given)
        if start_message is not None:
            return await start_message.begin(client)
        kept = await upload_inputs(client, loaded, values)
        return await client.start(
            loaded.name,
            kept,
            cache=cache,
            notify=notify,
            origin=origin,
            again=again or [],
            on_unhandled=msgspec.convert(on_unhandled, UnhandledPolicy),
            resume=not new,
        )

    if server:
        raise typer.Exit(run_async(run_on_server(target, options, begin)))
    raise typer.Exit(run_loop(run_locally(options, begin, start_message)))


@app.command("resume")
@with_bounds
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
    bounds: AttemptBounds = USUAL_BOUNDS,
) -> None:
    """Resume a case that was suspended or stopped, or one suspended item."""
    target = ServerTarget(server=server, token_file=token_file, data=data)
    if target.server or find_server(target.folder):
        raise typer.Exit(run_async(_resumed_there(target, case, item, json=json)))
    if not target.has_store:
        raise NotFound(f"there is no case to resume at {target.folder}; start one with mendflow run FLOW")
    options = _run_options(target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep, bounds=bounds)

    async def begin(client: Client) -> CaseView:
        meant = await find_reference(client, case, item)
        view = await client.case(meant.case) if meant.case != "last" else await _newest_unfinished(client)
        _demand_unfinished(view)
        await warn_of_changed_flow(client, view)
        return await client.resume(view.id, meant.item) if meant.item or _is_resumable(view) else view

    raise typer.Exit(run_loop(run_locally(options, begin)))


async def _resumed_there(target: ServerTarget, case: str, item: str, *, json: bool) -> ExitCode:
    """Resume a case or item on a running server, which only has to release it."""
    async with connect(target) as client:
        meant = await find_reference(client, case, item)
        item = meant.item
        view = await client.case(meant.case) if meant.case != "last" else await _newest_unfinished(client)
        _demand_unfinished(view)
        goes_on = bool(item) or _is_resumable(view)
        if goes_on:
            await warn_of_changed_flow(client, view)
        view = await client.resume(view.id, item) if goes_on else view
    if json:
        print_json(view)
    elif not goes_on:
        say(f"{view.id} is running; see it with mendflow watch {view.id}")
    else:
        say(f"item {item} of {view.id} is resumed" if item else f"{view.id} is resumed")
    return ExitCode.OK


def _demand_unfinished(case: CaseView) -> None:
    if case.status in CASE_END_STATES:
        raise Conflict(f"the case {case.id} is over ({case.status}); mendflow rerun {case.id} runs it again")


def _is_resumable(case: CaseView) -> bool:
    return case.stopped or case.status == "suspended" or bool(case.held)


async def _newest_unfinished(client: Client) -> CaseView:
    """The newest case that can be resumed; if there is none, the newest of all."""
    live = await live_cases(client)
    return live[0] if live else await client.case("last")


@app.command("rerun")
@with_bounds
def rerun(
    case: Annotated[
        str,
        typer.Argument(metavar="[CASE]", help="A case's id, or `last`.", autocompletion=complete_from_server("cases")),
    ] = "",
    group: Annotated[
        str,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Let every failed case of this group of failures go on from where it stood.",
            show_default=False,
            autocompletion=complete_from_server("groups"),
        ),
    ] = "",
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
    bounds: AttemptBounds = USUAL_BOUNDS,
    no_cache: NoCache = False,
    again: Again = None,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Use the files of the earlier case, even if they were changed since.")
    ] = False,
) -> None:
    """Run a case again; results of unchanged jobs come from the cache."""
    cache: CachePolicy = "none" if no_cache else "declared"
    target = ServerTarget(server=server, token_file=token_file, data=data)
    if bool(case) == bool(group):
        raise InvalidRequest("say which case to run again, or by --group GROUP all cases that failed by one cause")
    if group and (flow or from_failed):
        raise InvalidRequest("--group lets cases go on as they are; --flow and --from-failed are for one case")
    if group:
        options = _run_options(
            target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep, bounds=bounds
        )
        raise typer.Exit(_rerun_group(target, group, options))
    corrected, file = (load_one(flow), str(Path(flow).absolute())) if flow else (None, "")

    async def begin(client: Client) -> CaseView:
        earlier = await client.case(case)
        if earlier.stopped and corrected is None and not (no_cache or again):
            say_continued(earlier.id)
            await warn_of_changed_flow(client, earlier)
            return await client.resume(earlier.id)
        _demand_ended(earlier)
        if from_failed and earlier.status == "completed":
            raise Conflict(f"nothing failed in case {earlier.id}; leave --from-failed out to run it again")
        if corrected is not None:
            return await _rerun_with_flow(client, earlier, corrected, cache, again=again or [], origin=file)
        changed: dict[str, Value] = {}
        if not unchanged:
            await demand_same_flow(client, earlier)
            changed = await changed_inputs(client, earlier, await client.flow_of(earlier.id))
        return await client.rerun(earlier.id, from_failed=from_failed, cache=cache, inputs=changed, again=again or [])

    if target.server or find_server(target.folder):
        raise typer.Exit(run_async(_run_on_server(target, begin, json=json)))
    if not target.has_store:
        raise NotFound(f"there is no case at {target.folder} to run again; start one with mendflow run FLOW")
    options = _run_options(target.folder, slots, report, output_dir, quiet=quiet, json=json, keep=keep, bounds=bounds)
    raise typer.Exit(run_loop(run_locally(options, begin)))


def _rerun_group(target: ServerTarget, group: str, options: RunOptions) -> ExitCode:
    if target.server or find_server(target.folder):
        return run_async(_rerun_group_there(target, group, json=options.json))
    if not target.has_store:
        raise NotFound(f"there is no case at {target.folder} to run again; start one with mendflow run FLOW")
    return run_loop(rerun_group_locally(group, options))


async def _rerun_group_there(target: ServerTarget, group: str, *, json: bool) -> ExitCode:
    async with connect(target) as client:
        restarted = await restart_group(client, group)
    if json:
        print_json(restarted)
    else:
        say_applied(restarted.applied, restarted.started)
    return ExitCode.OK


def _run_options(
    folder: Path,
    slots: int,
    report: str,
    output_dir: str,
    *,
    quiet: bool,
    json: bool,
    keep: bool,
    bounds: AttemptBounds,
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
        bounds=bounds,
    )


def _demand_ended(case: CaseView) -> None:
    """Refuse to run a case again that has not ended: there would be two beside each other."""
    if case.stopped:
        raise Conflict(
            f"the case {case.id} was stopped before its end: mendflow resume {case.id} continues it as it is;"
            f" to run it in another way, mendflow cancel {case.id} first"
        )
    if case.status not in CASE_END_STATES:
        raise Conflict(
            f"the case {case.id} is still {case.status}; see it with mendflow watch {case.id}, or mendflow cancel"
            f" {case.id} first"
        )


async def _rerun_with_flow(
    client: Client, earlier: CaseView, flow: Flow, cache: CachePolicy, *, again: list[str], origin: str
) -> CaseView:
    """The case's inputs, the file's flow."""
    await deploy(client, flow)
    inputs = {**earlier.inputs, **await changed_inputs(client, earlier, flow)}
    came_from = msgspec.structs.replace(earlier.origin or CaseOrigin(), flow=origin)
    return await client.start(
        flow.name,
        inputs,
        cache=cache,
        cache_from=earlier.id,
        origin=came_from,
        again=again,
        on_unhandled=earlier.on_unhandled,
    )


async def _run_on_server(target: ServerTarget, begin: Begin, *, json: bool) -> ExitCode:
    """Start the new case on a running server; its pilots run it."""
    async with connect(target) as client:
        view = await begin(client)
    if json:
        print_json(view)
    else:
        say(f"{view.id} started; see it with mendflow watch {view.id}")
    return ExitCode.OK
