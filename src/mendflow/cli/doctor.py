"""`mendflow admin doctor`: what is wrong with this installation, and what to do about it."""

import typer
from rich.text import Text

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import run_async
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.findings import Finding, local_findings, server_findings
from mendflow.cli.printing import print_json, say
from mendflow.client import Client
from mendflow.tls import ClientTls

app = typer.Typer()
STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}


@app.command("doctor")
@with_context
def doctor(context: CommandContext) -> None:
    """Look at store, disk, clock, permissions, versions, ports and the server, and say what to do."""
    target = context.target

    def asking(url: str, pin: str) -> Client:
        return Client(url, target.token(), tls=ClientTls(pin=pin))

    found = [*local_findings(target), *run_async(server_findings(target, asking))]
    if context.json:
        print_json(found)
    else:
        for each in found:
            _show(each)
    problems = [each for each in found if each.state == "problem"]
    if not context.json:
        warnings = sum(each.state == "warning" for each in found)
        say(f"{len(problems)} problems, {warnings} warnings" if problems or warnings else "all is well")
    raise typer.Exit(ExitCode.ENVIRONMENT if problems else ExitCode.OK)


def _show(finding: Finding) -> None:
    line = Text(f"{finding.state:<8} ", style=STYLES[finding.state])
    line.append(f"{finding.topic:<14}", style="bold").append(finding.text, style="default")
    say(line)
    if finding.advice:
        say(Text(f"{'':<23}{finding.advice}", style="dim"))
