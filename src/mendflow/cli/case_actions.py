"""Commands that change cases: deploy, start, suspend, cancel, send."""

import shlex
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mendflow.cli.case_references import find_reference
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.flow_arguments import Xpath2As1, load_one, source_of
from mendflow.cli.flow_needs import warn_of_needs
from mendflow.cli.flow_triggers import deploy_with_options, trigger_lines
from mendflow.cli.flow_uploads import flow_to_send, sends_files
from mendflow.cli.inputs import json_or_text, paths_by_default
from mendflow.cli.options import CaseArgument, Project, ServerTarget, store_url
from mendflow.cli.printing import print_answer, print_json, say
from mendflow.cli.rule_tasks import misfits
from mendflow.client import Client
from mendflow.core.model.errors import RequestError
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
    project: Project = "",
) -> None:
    """Deploy a flow to the server, as its newest version; what it has under `on` takes effect."""
    loaded = [load_one(path, xpath2_as_1=xpath2_as_1) for path in flow]
    if sends_files(context.target):
        loaded = [flow_to_send(each) for each in loaded]

    async def give(client: Client) -> tuple[list[tuple[FlowView, str]], list[str]]:
        made: list[tuple[FlowView, str]] = []
        for path, each in zip(flow, loaded, strict=True):
            try:
                view = await deploy_with_options(client, each, project=project, source=source_of(path))
            except RequestError:
                if made:
                    there = ", ".join(f"{known.name} version {known.version}" for known, _ in made)
                    missing = ", ".join(each.name for each in loaded[len(made) :])
                    say(f"deployed before this: {there}; not deployed: {missing}", err=True)
                raise
            made.append((view, client.endpoint(each.name)))
        for each in loaded:
            await warn_of_needs(client, each)
            for told in paths_by_default(each) if has_server(context.target) else ():
                say(f"note: {told}", err=True)
        return made, await misfits(client, [view.name for view, _ in made])

    given, lines = context.run(give, changes=True, begin=True)
    for line in lines:
        say(line, err=True)
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
