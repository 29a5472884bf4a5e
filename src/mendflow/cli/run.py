"""The commands that run cases and show them until they end: run, resume."""

import os
import shlex
from typing import Annotated

import msgspec
import typer

from mendflow.cli.case_origins import origin_of, warn_of_changed_files
from mendflow.cli.case_references import find_reference
from mendflow.cli.case_runs import run_locally
from mendflow.cli.connection import connect, has_server, run_async, say_folder
from mendflow.cli.deployment import with_stored_files
from mendflow.cli.dry_run import print_plan
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_arguments import Xpath2As1, load_one, source_of
from mendflow.cli.flow_needs import demand_needs, limits_given, set_limits, warn_of_needs
from mendflow.cli.flow_triggers import deployed_before, say_what_stays, warn_of_notices, warn_of_triggers
from mendflow.cli.flow_uploads import flow_to_send
from mendflow.cli.inputs import read_inputs, upload_inputs, with_default_files
from mendflow.cli.option_words import OptionValues, words_of
from mendflow.cli.options import (
    DATA_FOLDER,
    SERVER_VARIABLE,
    USUAL_TARGET,
    Again,
    Cached,
    Data,
    FlowProject,
    Inputs,
    InputsFile,
    NoCache,
    Notify,
    OnUnhandled,
    ServerTarget,
    Slots,
    TokenFile,
    complete_from_server,
    with_target,
)
from mendflow.cli.printing import print_json, say
from mendflow.cli.remote_runs import RunOptions, run_on_server
from mendflow.cli.rule_files import put_rules_once, rules_for
from mendflow.cli.run_arguments import USUAL_ARGUMENTS, RunArguments, Wait, with_run_arguments
from mendflow.cli.start_message import build_start_message
from mendflow.cli.traces import SizeScale, TimeScale, scale_for
from mendflow.cli.unfinished_cases import live_cases
from mendflow.client import Client
from mendflow.core.engine.remarks import remarks_on
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.flow import UnhandledPolicy
from mendflow.core.model.views import CASE_END_STATES, CachePolicy, CaseView
from mendflow.wiring import run as run_loop

app = typer.Typer()


@app.command("run")
@with_run_arguments
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
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=COUNT", help="Set a named limit that jobs of the flow use.", show_default=False
        ),
    ] = None,
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
    project: FlowProject = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Say what would run and why; start nothing, write nothing.")
    ] = False,
    cached: Cached = False,
    no_cache: NoCache = False,
    again: Again = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Start a new case even if a stopped one has the same flow and inputs."),
    ] = False,
    notify: Notify = "",
    ui: Annotated[
        bool, typer.Option("--ui", help="Also show the case in a browser, until Ctrl-C; see mendflow ui.")
    ] = False,
    arguments: RunArguments = USUAL_ARGUMENTS,
) -> None:
    """Run a flow on this machine and show its progress."""
    if cached and no_cache:
        raise typer.BadParameter("give --cached or --no-cache, not both")
    cache: CachePolicy = "none" if no_cache else "all" if cached else "declared"
    target = ServerTarget(server=server, token_file=token_file, data=data if server else data or DATA_FOLDER)
    loaded = load_one(flow, scale_for(flow, scale, size_scale, slots), xpath2_as_1=xpath2_as_1)
    warn_of_notices(loaded, notify)
    if not arguments.quiet:
        warn_of_triggers(loaded, flow, target)
        for remark in remarks_on(loaded):
            say(f"remark: {remark}", err=True)
    limits = limits_given(limit or [])
    values = read_inputs(loaded.inputs, input or [], inputs, flow=str(loaded.name))
    named = frozenset(values)
    values = with_default_files(loaded, values, patterns=bool(server))
    if server and not dry_run:
        loaded = flow_to_send(loaded, named, values)
    given = rules_for(flow, loaded, rules)
    if dry_run:
        run_async(print_plan(loaded, values, target, cache, again=again or [], slots=slots, json=arguments.json))
        return
    if not server and os.environ.get(SERVER_VARIABLE):
        say(
            f"{SERVER_VARIABLE} is not followed: the flow runs on this machine; --server URL runs it there,"
            " and mendflow start leaves it there",
            err=True,
        )
    if not (arguments.quiet or server or data) and not target.has_store and (above := ServerTarget().above) is not None:
        say(
            f"cases that are run here are kept here, apart from those of {above.parent}; --data-dir {above} keeps them"
            " together",
            err=True,
        )
    options = arguments.options(target.folder, slots)
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
        "--project": project,
        "--cached": cached,
        "--no-cache": no_cache,
        "--notify": notify,
        "--output-dir": arguments.output_dir,
        "--overwrite": arguments.overwrite,
    }
    command = shlex.join(["mendflow", "run", flow, *words_of(repeated)])
    options = msgspec.structs.replace(options, source=command, hold=on_unhandled == "hold", ui=ui)
    origin = options.kept_with(origin_of(flow, loaded, input or [], inputs, values))

    start_message = build_start_message(loaded, operation, message, part or []) if loaded.xml is not None else None

    async def begin(client: Client) -> CaseView:
        await set_limits(client, limits, project)
        await (warn_of_needs if server else demand_needs)(client, loaded)
        made = msgspec.structs.replace(await with_stored_files(client, loaded), source=source_of(flow))
        if start_message is not None:
            await client.deploy(made, project=project)  # a message starts a case of what is deployed
        if given is not None:
            await put_rules_once(client, given, project)
        if start_message is not None:
            return await start_message.begin(client)
        before = await deployed_before(client, loaded)
        case = await client.start_with_flow(
            made,
            await upload_inputs(client, loaded, values),
            cache=cache,
            notify=notify,
            origin=origin,
            again=again or [],
            on_unhandled=msgspec.convert(on_unhandled, UnhandledPolicy),
            resume=not new,
            project=project,
        )
        if not arguments.quiet:
            say_what_stays(before, loaded, case, flow, target)
        return case

    if server:
        raise typer.Exit(run_async(run_on_server(target, options, begin)))
    raise typer.Exit(run_loop(run_locally(options, begin, start_message)))


@app.command("resume")
@with_run_arguments
@with_target
def resume(
    case: Annotated[
        str,
        typer.Argument(metavar="[CASE]", help="A case's id, or `last`.", autocompletion=complete_from_server("cases")),
    ] = "last",
    item: Annotated[
        str, typer.Argument(metavar="[ITEM]", help="One suspended item; default: the whole case.", show_default=False)
    ] = "",
    target: ServerTarget = USUAL_TARGET,
    slots: Slots = 0,
    wait: Wait = False,
    arguments: RunArguments = USUAL_ARGUMENTS,
) -> None:
    """Resume a case that was suspended or stopped, or one suspended item."""
    if has_server(target):
        arguments.demand_wait(wait=wait, slots=slots)
        options = arguments.options(target.folder, 0) if wait else None
        raise typer.Exit(run_async(_resumed_there(target, case, item, options, json=arguments.json)))
    if not target.has_store:
        raise NotFound(f"there is no case to resume at {target.folder}; start one with mendflow run FLOW")
    say_folder(target)
    options = arguments.options(target.folder, slots)

    async def begin(client: Client) -> CaseView:
        meant = await find_reference(client, case, item)
        view = await client.case(meant.case) if meant.case != "last" else await _newest_unfinished(client)
        _demand_unfinished(view)
        await warn_of_changed_files(client, view)
        return await client.resume(view.id, meant.item) if meant.item or _is_resumable(view) else view

    raise typer.Exit(run_loop(run_locally(options, begin)))


async def _resumed_there(
    target: ServerTarget, case: str, item: str, options: RunOptions | None, *, json: bool
) -> ExitCode:
    """Resume a case or item on a running server, which only has to release it; with `options`, wait for its end."""
    async with connect(target) as client:
        meant = await find_reference(client, case, item)
        item = meant.item
        view = await client.case(meant.case) if meant.case != "last" else await _newest_unfinished(client)
        _demand_unfinished(view)
        goes_on = bool(item) or _is_resumable(view)
        if goes_on:
            await warn_of_changed_files(client, view)
        view = await client.resume(view.id, item) if goes_on else view
    if options is not None:
        return await run_on_server(target, options, lambda client: client.case(view.id))
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
