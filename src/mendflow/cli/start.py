"""`mendflow start`: starts a case on a server, and waits for its end if asked to."""

from collections.abc import Collection
from functools import partial
from typing import Annotated

import msgspec
import typer

from mendflow.cli.case_origins import origin_of
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server, run_async
from mendflow.cli.deployment import changed_defaults, demand_project, with_stored_files
from mendflow.cli.flow_arguments import Xpath2As1, is_flow_file, load_one, source_of
from mendflow.cli.flow_needs import warn_of_needs
from mendflow.cli.flow_triggers import deployed_before, say_what_stays, warn_of_notices, warn_of_triggers
from mendflow.cli.flow_uploads import flow_to_send, sends_files
from mendflow.cli.inputs import read_inputs, upload_inputs, with_default_files
from mendflow.cli.options import (
    Again,
    Cached,
    FlowProject,
    Inputs,
    InputsFile,
    NoCache,
    Notify,
    OnUnhandled,
    OutputDir,
    Overwrite,
    Quiet,
    Report,
    ServerTarget,
    complete_from_server,
    store_url,
)
from mendflow.cli.printing import print_answer, say
from mendflow.cli.remote_runs import run_on_server, run_options
from mendflow.cli.summary import relative
from mendflow.cli.unfinished_cases import running_server_text
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.views import CaseView
from mendflow.pilot.bounds import USUAL_BOUNDS

app = typer.Typer()


@app.command("start")
@with_context
def start(
    context: CommandContext,
    flow: Annotated[
        str,
        typer.Argument(
            metavar="FLOW", help="A deployed flow's name, or a flow file.", autocompletion=complete_from_server("flows")
        ),
    ],
    input: Inputs = None,
    inputs: InputsFile = "",
    on_unhandled: OnUnhandled = "",
    cached: Cached = False,
    no_cache: NoCache = False,
    cache_from: Annotated[
        str,
        typer.Option(
            "--cache-from", metavar="CASE", help="Use the results of this case for unchanged jobs.", show_default=False
        ),
    ] = "",
    again: Again = None,
    key: Annotated[
        str,
        typer.Option(
            "--key", metavar="KEY", help="Start it once: the same key again gives the same case.", show_default=False
        ),
    ] = "",
    notify: Notify = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Show its progress until it ends, and fetch its outputs.")
    ] = False,
    report: Report = "",
    output_dir: OutputDir = "",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    project: FlowProject = "",
    xpath2_as_1: Xpath2As1 = False,
) -> None:
    """Start a case of a deployed flow, or of a flow file."""
    if no_cache and (cached or cache_from):
        raise typer.BadParameter("give --no-cache, or --cached and --cache-from, not both")
    _demand_wait(context.target, wait=wait, for_its_end=bool(report or output_dir))
    file = load_one(flow, xpath2_as_1=xpath2_as_1) if is_flow_file(flow) else None
    if file is not None:
        warn_of_notices(file, notify)
        warn_of_triggers(file, flow, context.target)
    options = run_options(
        context.target.folder,
        0,
        report,
        output_dir,
        overwrite=overwrite,
        quiet=quiet,
        json=context.json,
        keep=False,
        bounds=USUAL_BOUNDS,
    )

    async def begin(client: Client) -> CaseView:
        meant = file or await _deployed_flow(client, flow, project)
        values = read_inputs(meant.inputs, input or [], inputs, flow=str(meant.name))
        if file is None:
            _say_changed_defaults(meant, values)
        else:
            given = frozenset(values)
            values = with_default_files(file, values, patterns=has_server(context.target))
            meant = flow_to_send(file, given, values) if sends_files(context.target) else file
        await warn_of_needs(client, meant)
        begin_case = (
            partial(client.start_with_flow, await _sent(client, meant, flow), project=project)
            if file is not None
            else partial(client.start, meant.name)
        )
        before = await deployed_before(client, file) if file is not None else None
        case = await begin_case(
            await upload_inputs(client, meant, values),
            cache="none" if no_cache else "all" if cached else "declared",
            cache_from=cache_from,
            key=key,
            notify=notify,
            origin=options.kept_with(origin_of(flow if file is not None else "", meant, input or [], inputs, values)),
            again=again or [],
            on_unhandled=msgspec.convert(on_unhandled, UnhandledPolicy),
        )
        say_what_stays(before, meant, case, flow, context.target)
        return case

    if wait:
        raise typer.Exit(run_async(run_on_server(context.target, options, begin)))
    view = context.run(begin)
    is_idle = not has_server(context.target) and not store_url()
    follows = running_server_text(view.id, context.target) if is_idle else f"see it with mendflow watch {view.id}"
    print_answer(context.json, view, f"{view.id} started; {follows}")


def _say_changed_defaults(flow: Flow, given: Collection[str]) -> None:
    """A deployed flow has its tables and files as they were then, which who has edited one may not expect."""
    for name, path in changed_defaults(flow, given).items():
        say(
            f"{relative(path)} has changed since {flow.name} was deployed, and the case takes it as it was then;"
            f" --input {name}={relative(path)} takes it as it is now, mendflow flows deploy FILE for all later cases",
            err=True,
        )


def _demand_wait(target: ServerTarget, *, wait: bool, for_its_end: bool) -> None:
    """Refuse what can only be done at the case's end, if that is not waited for; and to wait for what nobody runs."""
    if for_its_end and not wait:
        raise InvalidRequest(
            "--output-dir and --report are for the end of the case: add --wait, or fetch the outputs later with"
            " mendflow watch CASE --output-dir DIR"
        )
    if wait and not has_server(target) and not store_url():
        raise InvalidRequest("no server runs here, so its end would never come: mendflow run FLOW runs it by itself")


async def _sent(client: Client, flow: Flow, file: str) -> Flow:
    """The flow as it is sent along, with its own file."""
    return msgspec.structs.replace(await with_stored_files(client, flow), source=source_of(file))


async def _deployed_flow(client: Client, name: str, project: str) -> Flow:
    view = await client.flow(name)
    demand_project(view, project)
    if view.flow is None:
        raise NotFound(f"no flow {name} is deployed; deploy it with mendflow flows deploy FILE")
    return view.flow
