"""Commands about flows and their files: list, show, deploy, remove, draw, convert."""

from typing import Annotated

import msgspec
import typer

from mendflow.cli import adapt as adapting
from mendflow.cli import case_actions as act
from mendflow.cli import check, flow_template, graph
from mendflow.cli import convert as converting
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.flow_triggers import short_triggers, trigger_lines, watch_line
from mendflow.cli.groups import take
from mendflow.cli.options import complete_from_server
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.data_sets import WatchView
from mendflow.core.model.errors import NotFound
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.views import FlowView
from mendflow.pages.formatting import short_time_text

FlowArgument = Annotated[
    str,
    typer.Argument(metavar="FLOW", help="A deployed flow's name.", autocompletion=complete_from_server("flows")),
]

app = typer.Typer()
flows_app = typer.Typer(invoke_without_command=True)


@flows_app.callback()
@with_context
def flows(context: CommandContext) -> None:
    """List the deployed flows; show, deploy, remove, draw or convert one."""
    if not context.inner:
        _list(context)


@flows_app.command("list")
@with_context
def list_flows(context: CommandContext) -> None:
    """List the deployed flows."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.flows())
    if context.json:
        print_json(views)
    elif not views:
        say("No flow is deployed; deploy one with mendflow flows deploy FLOW.")
    else:
        several = {view.project for view in views} != {DEFAULT_PROJECT}
        heads = ("flow", *(["project"] if several else []), "version", "deployed", "by", "digest", "on", "description")
        rows = [
            (
                view.name,
                *([view.project] if several else []),
                str(view.version),
                short_time_text(view.deployed_at),
                view.deployed_by,
                view.digest[:12],
                short_triggers(view.triggers),
                view.description,
            )
            for view in views
        ]
        print_table(heads, rows, fold=heads.index("description"))


@flows_app.command("show")
@with_context
def show(
    context: CommandContext,
    name: FlowArgument,
    file: Annotated[
        bool, typer.Option("--file", help="Print the file that it was read from, passwords of URLs hidden.")
    ] = False,
) -> None:
    """Show a deployed flow: its inputs, and what starts its cases by itself; or its file."""
    if file:
        _show_file(context, name)
        return

    async def ask(client: Client) -> tuple[FlowView, list[WatchView]]:
        view = await client.flow(name)
        return view, [each for each in await client.watches() if each.flow == name] if view.triggers else []

    view, watches = context.run(ask)
    if context.json:
        print_json(view)
        return
    by = f" by {view.deployed_by}" if view.deployed_by else ""
    when = short_time_text(view.deployed_at)
    say(f"{view.name} version {view.version} ({view.digest[:12]}) of project {view.project}, deployed {when}{by}")
    if view.description:
        say(f"  {view.description}")
    for input_name, each in view.flow.inputs.items() if view.flow is not None else ():
        given = "required" if each.required else f"default {msgspec.json.encode(each.default).decode()}"
        say(f"  input {input_name}: {each.type or 'any'}, {given}")
    for line in trigger_lines(view.triggers) if view.triggers is not None else ():
        say(f"  {line}")
    for watch in watches:
        say(f"    {watch_line(watch)}")
    if view.tentative:
        say("  nobody has deployed it, cases were started from its file; mendflow flows deploy FILE deploys it")
    elif view.flow is not None and view.flow.triggers != view.triggers:
        say("  the newest version has another `on:`, which takes effect by mendflow flows deploy FILE")


def _show_file(context: CommandContext, name: str) -> None:
    found = context.run(lambda client: client.flow_file(name))
    if context.json:
        print_json(found)
    elif found.reason:
        raise NotFound(f"{found.file or name}: {found.reason}")
    else:
        print(found.text, end="" if found.text.endswith("\n") else "\n")


@flows_app.command("remove")
@with_context
def remove(context: CommandContext, name: FlowArgument) -> None:
    """Remove a deployed flow and what starts its cases by itself; its cases stay."""
    view = context.run(lambda client: client.remove_flow(name), changes=True)
    print_answer(context.json, view, f"{view.name} is removed; its cases stay")


take(
    flows_app,
    [
        (act.app, ("deploy",)),
        (graph.app, ("graph",)),
        (converting.app, ("convert",)),
        (adapting.app, ("adapt",)),
        (flow_template.app, ("init",)),
        (check.app, ("schema",)),
    ],
)
app.add_typer(flows_app, name="flows")
