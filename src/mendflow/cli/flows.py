"""Commands about flows and their files: list, deploy, draw, convert."""

import typer

from mendflow.cli import adapt as adapting
from mendflow.cli import case_actions as act
from mendflow.cli import check, graph
from mendflow.cli import convert as converting
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.groups import take
from mendflow.cli.printing import print_json, print_table, say
from mendflow.pages.formatting import short_time_text

app = typer.Typer()
flows_app = typer.Typer(invoke_without_command=True)


@flows_app.callback()
@with_context
def flows(context: CommandContext) -> None:
    """List the deployed flows; deploy, draw or convert one."""
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
        rows = ((v.name, str(v.version), short_time_text(v.deployed_at), v.digest[:12], v.description) for v in views)
        print_table(("flow", "version", "deployed", "digest", "description"), rows)


take(
    flows_app,
    [
        (act.app, ("deploy",)),
        (graph.app, ("graph",)),
        (converting.app, ("convert",)),
        (adapting.app, ("adapt",)),
        (check.app, ("schema",)),
    ],
)
app.add_typer(flows_app, name="flows")
