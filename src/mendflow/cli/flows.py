"""Commands about flows and their files: list, deploy, draw, convert."""

import typer

from mendflow.cli import act, adapting, check, converting, graph
from mendflow.cli.asking import Ask, asks
from mendflow.cli.groups import take
from mendflow.cli.printing import print_json, print_table, say
from mendflow.pages.words import short_time_text

app = typer.Typer()
flows_app = typer.Typer(invoke_without_command=True)


@flows_app.callback()
@asks
def flows(ask: Ask) -> None:
    """List the deployed flows; deploy, draw or convert one."""
    if not ask.inner:
        _list(ask)


@flows_app.command("list")
@asks
def list_flows(ask: Ask) -> None:
    """List the deployed flows."""
    _list(ask)


def _list(ask: Ask) -> None:
    views = ask.of(lambda client: client.flows())
    if ask.json:
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
