"""Commands of an administrator: alerts, and requeueing a job that hangs."""

from typing import Annotated

import typer

from mendflow.cli.case_references import FORMS, job_id
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.options import complete_words, one_of
from mendflow.cli.printing import print_json, say
from mendflow.client import Client
from mendflow.core.model.alerts import SEVERITIES, AlertView
from mendflow.core.model.views import JobView
from mendflow.pages.formatting import short_time_text

app = typer.Typer()
alerts = typer.Typer(invoke_without_command=True)
app.add_typer(alerts, name="alerts")


@alerts.callback()
@with_context
def list_alerts(
    context: CommandContext,
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="SEVERITY",
            help="The lowest severity to list: info, warning or critical.",
            callback=one_of("--severity", SEVERITIES),
            autocompletion=complete_words(SEVERITIES),
        ),
    ] = "warning",
    every: Annotated[bool, typer.Option("--all", help="Closed alerts too.")] = False,
    limit: Limit = 100,
) -> None:
    """List alerts by severity; acknowledge one."""
    if context.inner:
        return
    least = next(each for each in SEVERITIES if each == severity)
    views = context.run(lambda client: client.alerts(severity=least, every=every, limit=limit))
    if context.json:
        print_json(views)
    elif not views:
        say("There are no alerts.")
    else:
        for view in views:
            say(f"{short_time_text(view.raised_at)} {view.severity} {_state(view)} {view.id}\n    {view.sentence}")


@alerts.command("ack")
@with_context
def ack(
    context: CommandContext,
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="An alert's id, as the list prints it.")],
) -> None:
    """Acknowledge an alert."""
    view = context.run(lambda client: client.acknowledge(alert))
    if context.json:
        print_json(view)
    else:
        say(f"{view.id} is acknowledged by {view.acknowledged_by}" + ("; it is closed" if view.closed_at else ""))


@app.command("requeue")
@with_context
def requeue(
    context: CommandContext,
    job: Annotated[str, typer.Argument(metavar="JOB", help=f"A running job or its item: {FORMS}.")],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, stored with the change.", show_default=False)
    ] = "",
) -> None:
    """Take a running job from its pilot and put it back into the queue."""

    async def ask(client: Client) -> JobView:
        return await client.requeue(await job_id(client, job), reason=reason)

    view = context.run(ask)
    if context.json:
        print_json(view)
    elif view.requeued is not None:
        say(f"{view.id} is taken from pilot {view.pilot}; another pilot gets it when this attempt has certainly ended")
    else:
        say(f"{view.id} waits for another pilot")


def _state(view: AlertView) -> str:
    return "closed" if view.closed_at else "acknowledged" if view.acknowledged_at else "open"
