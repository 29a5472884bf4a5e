"""Commands about flow files: check, schema. They need no server; only where a flow names a
storage element under `on`, one that is there is asked for it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.flow_arguments import Xpath2As1, main_first, named_stores, xpath2_notes
from mendflow.cli.inputs import paths_by_default
from mendflow.cli.options import SERVER_VARIABLE, Json
from mendflow.cli.printing import print_json, say
from mendflow.cli.problems import show_problems
from mendflow.core.engine.flow_needs import limits_named, secrets_named
from mendflow.core.engine.inserted_inputs import inserted_inputs
from mendflow.core.engine.remarks import remarks_on
from mendflow.core.model.flow import Flow
from mendflow.formats.check import absent_defaults, checked_flows
from mendflow.formats.check import check as problems_of
from mendflow.formats.schema import SchemaKind, schema_text
from mendflow.lazy import LazyModule
from mendflow.pages.formatting import count_text

if TYPE_CHECKING:
    from mendflow.cli import flow_triggers
else:
    flow_triggers = LazyModule("mendflow.cli.flow_triggers")  # it loads what talks to servers

app = typer.Typer()


@app.command("check")
def check(
    flow: Annotated[
        list[str],
        typer.Argument(
            metavar="FLOW...", help="Flow files, YAML, Python, BPEL or JSDL, traces, or files with an exlet."
        ),
    ],
    xpath2_as_1: Xpath2As1 = False,
    json: Json = False,
) -> None:
    """Report every problem of the flow files, or of files with an exlet."""
    problems = problems_of([Path(path) for path in flow], xpath2_as_1=xpath2_as_1)
    found = [main_first(checked_flows(path, xpath2_as_1=xpath2_as_1)) for path in flow] if not problems else []
    open_questions = [told for flows in found for each in flows for told in absent_defaults(each)]
    for path, flows in zip(flow, found, strict=False):
        if named_stores(flows):
            missing, unasked = flow_triggers.store_problems(path, flows)
            problems, open_questions = [*problems, *missing], [*open_questions, *unasked]
    if json:
        print_json(problems)
    elif problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'problem')} in {count_text(len(flow), 'file')}", err=True)
    else:
        say(f"{_counted([each for flows in found for each in flows])}, no problems")
        for path, flows in zip(flow, found, strict=True):
            if len(flows) > 1:
                say(f"{path}: {', '.join(each.name for each in flows)}")
            for remark in (each for found in flows for each in _remarks(found)):
                say(f"{path}: remark: {remark}")
        for question in open_questions:
            say(question)
        for note in (note for path in flow if xpath2_as_1 for note in xpath2_notes(path)):
            say(f"note: {note}")
    raise typer.Exit(ExitCode.BAD_INPUT if problems else ExitCode.OK)


def _counted(flows: list[Flow]) -> str:
    """1 flow, 2 exlets."""
    mends = sum(each.exlet for each in flows)
    counted = [(len(flows) - mends, "flow"), (mends, "exlet")]
    return ", ".join(count_text(number, what) for number, what in counted if number)


def _remarks(flow: Flow) -> list[str]:
    found = [
        *remarks_on(flow),
        *inserted_inputs(flow),
        *(paths_by_default(flow) if os.environ.get(SERVER_VARIABLE) else []),
        *(flow_triggers.mail_remarks(flow) if flow.triggers is not None else []),
    ]
    return [*found, *flow_triggers.need_remarks(flow)] if limits_named(flow) or secrets_named(flow) else found


@app.command("schema")
def schema(
    kind: Annotated[SchemaKind, typer.Argument(metavar="KIND", help="flow, exlet or rules.")] = SchemaKind.FLOW,
) -> None:
    """Print the JSON Schema of flow files, exlets or rule files, for editors."""
    sys.stdout.write(schema_text(kind))
