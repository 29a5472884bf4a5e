"""The command that writes a flow in another language."""

from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.flow_arguments import Xpath2As1, load_one
from mendflow.cli.options import Json
from mendflow.cli.output_paths import check_file
from mendflow.cli.printing import print_json, say
from mendflow.cli.summary import relative
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.formats import JOB
from mendflow.formats.bpel import BPEL_ENDING
from mendflow.formats.bpel.writing import write_bpel
from mendflow.formats.jsdl import write_jsdl

app = typer.Typer()


@app.command("convert")
def convert(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A flow file, in any language.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="OUT.bpel for a process, OUT.jsdl for a job.")
    ],
    xpath2_as_1: Xpath2As1 = False,
    json: Json = False,
) -> None:
    """Write a flow as a BPEL process, or a flow of one job in JSDL."""
    if out.suffix not in (BPEL_ENDING, JOB):
        raise InvalidRequest(f"--out {out}: the file must end in {BPEL_ENDING} or {JOB}")
    if out.resolve() == Path(flow).resolve():
        raise InvalidRequest(f"--out {out} is the flow itself; name another file")
    check_file("--out", out)
    files = _files(load_one(flow, xpath2_as_1=xpath2_as_1), out)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if json:
        print_json({"files": [str(path) for path in files]})
    else:
        say(f"written: {', '.join(str(relative(path)) for path in files)}")


def _files(flow: Flow, out: Path) -> dict[Path, str]:
    """The main file comes first."""
    if out.suffix == JOB:
        return {out: write_jsdl(flow)}
    process, *beside = write_bpel(flow, f"{out.stem}.files").items()
    return {out: process[1]} | {out.parent / name: text for name, text in beside}
