"""The command that puts interceptors into a process in BPEL."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mendflow.cli.flow_arguments import Xpath2As1
from mendflow.cli.options import Json
from mendflow.cli.output_paths import check_file
from mendflow.cli.printing import print_json, say
from mendflow.cli.summary import relative
from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.bpel.adapter import IN_PROCESS, AdaptedProcess, adapt

app = typer.Typer()


@app.command("adapt")
def adapt_file(
    file: Annotated[Path, typer.Argument(metavar="FILE.bpel", help="A process in WS-BPEL 2.0.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.bpel", help="Where the adapted process is written.")],
    proxy: Annotated[
        str,
        typer.Option(
            "--proxy",
            metavar="URL",
            help="The proxy's address for engines other than this one: http://SERVER/soap/proxy.",
            show_default="the server that runs the process",
        ),
    ] = IN_PROCESS,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ACTIVITY", help="Only the invoke of this name; may be repeated."),
    ] = None,
    xpath2_as_1: Xpath2As1 = False,
    json: Json = False,
) -> None:
    """Let the invokes of a BPEL process go through the proxy."""
    _check(file, out, proxy)
    adapted = adapt(file, out, proxy, only or (), xpath2_as_1=xpath2_as_1)
    for path, data in adapted.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if json:
        print_json(
            {
                "intercepted": list(adapted.woven.calls),
                "left": [{"activity": name, "reason": reason} for name, reason in adapted.woven.left],
                "files": [str(path) for path in adapted.files],
            }
        )
    else:
        _print_adapted(adapted)


def _check(file: Path, out: Path, proxy: str) -> None:
    if out.resolve() == file.resolve():
        raise InvalidRequest(f"--out {out} is the process itself; name another file")
    if out.suffix != ".bpel":
        raise InvalidRequest(f"--out {out}: name a file that ends in .bpel")
    if proxy != IN_PROCESS and urlsplit(proxy).scheme not in ("http", "https"):
        raise InvalidRequest(f"--proxy {proxy} is not an address; give the server's, as http://SERVER/soap/proxy")
    check_file("--out", out)


def _print_adapted(adapted: AdaptedProcess) -> None:
    for name in adapted.woven.calls:
        say(f"intercepted: {name}")
    for name, reason in adapted.woven.left:
        say(f"not intercepted: {name} ({reason})")
    if not adapted.woven.calls:
        say("nothing is intercepted")
    say(f"written: {', '.join(str(relative(path)) for path in adapted.files)}")
