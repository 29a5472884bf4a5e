"""The command that draws a flow without running it."""

from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.flow_arguments import Xpath2As1, load_one
from mendflow.cli.options import Json
from mendflow.cli.output_paths import check_file
from mendflow.cli.printing import print_answer
from mendflow.cli.summary import relative
from mendflow.core.engine.plan import Plan, compile_flow, walk_activities, work_below
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.values import Value
from mendflow.pages.document import document
from mendflow.pages.formatting import count_text, escape_html, one_line
from mendflow.pages.graph import graph as drawing_of

app = typer.Typer()


@app.command("graph")
def graph(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A flow file, YAML, Python, BPEL or JSDL, or a trace.")],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The HTML page to write; default: NAME.html in this folder.",
            show_default=False,
        ),
    ] = "",
    xpath2_as_1: Xpath2As1 = False,
    json: Json = False,
) -> None:
    """Draw a flow as an HTML page: its jobs and their dependencies."""
    loaded = load_one(flow, xpath2_as_1=xpath2_as_1)
    plan = compile_flow(loaded)
    path = Path(out or f"{loaded.name}.html").absolute()
    check_file("--out", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_of(loaded), encoding="utf-8")
    print_answer(json, {**parts_of(plan), "page": str(path)}, f"drawn: {relative(path)} ({_jobs(loaded)})")


def parts_of(plan: Plan) -> dict[str, Value]:
    """The work of a flow by name, and its links."""
    names = [node.name for node in plan.nodes]
    links = [{"from": names[link.source], "to": names[link.target]} for link in plan.links]
    return {"flow": plan.flow.name, "work": [node.name for node in work_below(plan, 0)], "links": links}


def page_of(flow: Flow) -> str:
    described = f"<p>{escape_html(one_line(flow.description, 400))}</p>" if flow.description else ""
    head = f'<header><div class="top"><h1>{escape_html(one_line(str(flow.name), 80))}</h1></div>{described}'
    head += f'<p class="quiet">{_jobs(flow)}</p></header>'
    return document(str(flow.name), f"{head}<main><section>{drawing_of(flow, [])}</section></main>")


def _jobs(flow: Flow) -> str:
    return count_text(sum(isinstance(each, JobActivity) for each in walk_activities(flow)), "job")
