"""Commands about flow files: check, schema. They neither need nor load a server."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_files import main_first
from mendflow.cli.options import Json
from mendflow.cli.printing import print_json, say
from mendflow.cli.problems import show_problems
from mendflow.formats.check import check as problems_of
from mendflow.formats.check import flows_of
from mendflow.formats.schema import schema_text
from mendflow.pages.formatting import count_text

app = typer.Typer()


@app.command("check")
def check(
    flow: Annotated[
        list[str], typer.Argument(metavar="FLOW...", help="Flow files, YAML, Python, BPEL or JSDL, or traces.")
    ],
    json: Json = False,
) -> None:
    """Report every problem of the flow files."""
    problems = problems_of([Path(path) for path in flow])
    if json:
        print_json(problems)
    elif problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'problem')} in {count_text(len(flow), 'file')}", err=True)
    else:
        found = [main_first(flows_of(path)) for path in flow]
        say(f"{count_text(sum(map(len, found)), 'flow')}, no problems")
        for path, flows in zip(flow, found, strict=True):
            if len(flows) > 1:
                say(f"{path}: {', '.join(each.name for each in flows)}")
    raise typer.Exit(ExitCode.BAD_INPUT if problems else ExitCode.OK)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of flow files, for editors."""
    sys.stdout.write(schema_text())
