"""Commands that change cases: deploy, start, suspend, cancel, send."""

import shlex
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mendflow.cli.case_origins import origin_of
from mendflow.cli.case_references import find_reference
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.deployment import deploy as give_flow
from mendflow.cli.flow_files import Xpath2As1, is_flow_file, load_one
from mendflow.cli.flow_triggers import deploy_with_options, trigger_lines, warn_of_triggers
from mendflow.cli.inputs import json_or_text, read_inputs, upload_inputs
from mendflow.cli.options import CaseArgument, Inputs, InputsFile, ServerTarget, complete_from_server, store_url
from mendflow.cli.printing import print_answer, print_json, say
from mendflow.cli.unfinished_cases import running_server_text
from mendflow.client import Client
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.views import CaseView, FlowView

app = typer.Typer()

ItemArgument = Annotated[
    str, typer.Argument(metavar="[ITEM]", help="One item of the case; default: the whole case.", show_default=False)
]


@app.command("deploy")
@with_context
def deploy(
    context: CommandContext,
    flow: Annotated[list[str], typer.Argument(metavar="FLOW...", help="Flow files, YAML, Python, BPEL or JSDL.")],
    xpath2_as_1: Xpath2As1 = False,
) -> None:
    """Deploy a flow to the server, as its newest version; what it has under `on` takes effect."""
    loaded = [load_one(path, xpath2_as_1=xpath2_as_1) for path in flow]

    async def give(client: Client) -> list[tuple[FlowView, str]]:
        return [(await deploy_with_options(client, each), client.endpoint(each.name)) for each in loaded]

    given = context.run(give, begin=True)
    if context.json:
        print_json([view for view, _ in given])
        return
    for each, (view, endpoint) in zip(loaded, given, strict=True):
        say(f"{view.name} version {view.version} ({view.digest[:12]})")
        for line in trigger_lines(view.triggers) if view.triggers is not None else ():
            say(f"  {line}")
        if view.triggers is not None and not has_server(context.target):
            say(f"  no server runs here; this happens while `mendflow serve{_folder_option(context.target)}` runs")
        if each.xml is not None:
            say(endpoint if has_server(context.target) else _without_server(urlsplit(endpoint).path, context.target))


def _without_server(path: str, target: ServerTarget) -> str:
    """What to do so that somebody takes the flow's messages, and under which path."""
    folder = _folder_option(target)
    return f"no server runs here; start `mendflow serve{folder}`, and it takes messages for this flow at {path}"


def _folder_option(target: ServerTarget) -> str:
    return f" --data-dir {shlex.quote(target.data)}" if target.data and not store_url() else ""


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
    cached: Annotated[
        bool,
        typer.Option("--cached", help="Use the results of earlier cases for jobs made from the same, of all flows."),
    ] = False,
    cache_from: Annotated[
        str,
        typer.Option(
            "--cache-from", metavar="CASE", help="Use the results of this case for unchanged jobs.", show_default=False
        ),
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            "--key", metavar="KEY", help="Start it once: the same key again gives the same case.", show_default=False
        ),
    ] = "",
    notify: Annotated[
        str,
        typer.Option("--notify", metavar="URL", help="A URL that gets a POST when the case ends.", show_default=False),
    ] = "",
    xpath2_as_1: Xpath2As1 = False,
) -> None:
    """Start a case of a deployed flow, or of a flow file."""
    file = load_one(flow, xpath2_as_1=xpath2_as_1) if is_flow_file(flow) else None
    if file is not None:
        warn_of_triggers(file, flow)

    async def begin(client: Client) -> CaseView:
        meant = file or await _deployed_flow(client, flow)
        values = read_inputs(meant.inputs, input or [], inputs, flow=str(meant.name))
        if file is not None:
            await give_flow(client, file)
        kept = await upload_inputs(client, meant, values)
        return await client.start(
            meant.name,
            kept,
            cache="all" if cached else "",
            cache_from=cache_from,
            key=key,
            notify=notify,
            origin=origin_of(flow if file is not None else "", meant, input or []),
        )

    view = context.run(begin)
    nobody_runs_it = not has_server(context.target) and not store_url()
    follows = (
        running_server_text(view.id, context.target) if nobody_runs_it else f"see it with mendflow watch {view.id}"
    )
    print_answer(context.json, view, f"{view.id} started; {follows}")


@app.command("suspend")
@with_context
def suspend(
    context: CommandContext,
    case: CaseArgument,
    item: ItemArgument = "",
) -> None:
    """Suspend a case or one of its items."""

    async def ask(client: Client) -> tuple[CaseView, str]:
        subject = await find_reference(client, case, item)
        return await client.suspend(subject.case, subject.item), subject.item

    _apply_to_subject(context, ask, "is suspended")


@app.command("cancel")
@with_context
def cancel(
    context: CommandContext,
    case: CaseArgument,
    item: ItemArgument = "",
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, stored with the change.", show_default=False)
    ] = "",
) -> None:
    """End a case or one of its items; its remaining jobs do not run."""

    async def ask(client: Client) -> tuple[CaseView, str]:
        subject = await find_reference(client, case, item)
        return await client.cancel(subject.case, subject.item, reason=reason), subject.item

    _apply_to_subject(context, ask, "is cancelled")


@app.command("send")
@with_context
def send(
    context: CommandContext,
    case: CaseArgument,
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="The channel that the flow listens on.")],
    value: Annotated[str, typer.Argument(metavar="[VALUE]", help="The message: JSON, text, or @FILE.")] = "null",
    correlation: Annotated[
        str,
        typer.Option(
            "--correlation",
            metavar="VALUE",
            help="Which receiver it is for, if several wait on the channel.",
            show_default=False,
        ),
    ] = "",
    id: Annotated[
        str,
        typer.Option(
            "--id", metavar="ID", help="Send it once: a message with the same id is dropped.", show_default=False
        ),
    ] = "",
) -> None:
    """Send a message to a case."""
    message, meant = json_or_text(value), json_or_text(correlation) if correlation else None
    view = context.run(lambda client: client.send(case, channel, message, correlation=meant, id=id))
    print_answer(context.json, view, f"sent to channel {channel} of {view.id}")


def _apply_to_subject(
    context: CommandContext, change: Callable[[Client], Awaitable[tuple[CaseView, str]]], done: str
) -> None:
    """Change one item, or the whole case, and say which."""
    view, item = context.run(change)
    print_answer(context.json, view, f"item {item} of {view.id} {done}" if item else f"{view.id} {done}")


async def _deployed_flow(client: Client, name: str) -> Flow:
    found = (await client.flow(name)).flow
    if found is None:
        raise NotFound(f"no flow {name} is deployed; deploy it with mendflow flows deploy FILE")
    return found
