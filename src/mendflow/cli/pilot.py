"""The pilot as a command of mendflow: its options in words that people write, such as 8GB and 4h."""

from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.options import Target, TokenFile
from mendflow.core.model.problems import Invalid
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.pilot.main import PilotOptions, run_pilot

app = typer.Typer()

WORK_FOLDER = ".mendflow-pilot"


@app.command("pilot")
def pilot(
    server: Annotated[
        list[str],
        typer.Option(
            "--server",
            metavar="URL",
            envvar="MENDFLOW_SERVER",
            help="The server to take jobs from; again for others on the same store.",
        ),
    ],
    token_file: TokenFile = "",
    work: Annotated[
        str, typer.Option("--work", metavar="DIR", help="Jobs and results live here; one folder per pilot.")
    ] = WORK_FOLDER,
    slots: Annotated[
        int, typer.Option("--slots", min=0, metavar="N", help="How many jobs at once; 0: as many as there are CPUs.")
    ] = 0,
    site: Annotated[str, typer.Option("--site", metavar="NAME", help="The place, for jobs that ask for one.")] = "",
    host: Annotated[
        str, typer.Option("--host", metavar="NAME", help="What this machine is called; else its own name.")
    ] = "",
    cpus: Annotated[float | None, typer.Option("--cpus", min=0, metavar="N", help="CPUs to offer; else all.")] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory to offer; else all.")] = "",
    disk: Annotated[str, typer.Option("--disk", metavar="SIZE", help="Disk to offer; else what is free.")] = "",
    gpus: Annotated[int | None, typer.Option("--gpus", min=0, metavar="N", help="GPUs to offer; else all.")] = None,
    ttl: Annotated[str, typer.Option("--ttl", metavar="TIME", help="Leave after this time.")] = "",
    idle_exit: Annotated[str, typer.Option("--idle-exit", metavar="TIME", help="Leave after so long idle.")] = "",
    away_exit: Annotated[
        str, typer.Option("--away-exit", metavar="TIME", help="Leave when the server was away for so long.")
    ] = "",
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="How long jobs may go on when it is told to leave.")
    ] = "5s",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the jobs' folders, to look into them.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what is wrong.")] = False,
) -> None:
    """Run a pilot that takes jobs from a server."""
    options = PilotOptions(
        server=",".join(server),
        work=Path(work).absolute(),
        token=Target(token_file=token_file).token(),
        slots=slots,
        site=site,
        host=host,
        cpus=cpus,
        memory_bytes=_bytes("--memory", memory),
        disk_bytes=_bytes("--disk", disk),
        gpus=gpus,
        ttl_ms=_ms("--ttl", ttl),
        idle_exit_ms=_ms("--idle-exit", idle_exit),
        away_exit_ms=_ms("--away-exit", away_exit),
        grace_ms=_ms("--grace", grace),
        keep=keep,
        quiet=quiet,
    )
    raise typer.Exit(run_pilot(options))


def _bytes(word: str, text: str) -> int | None:
    size = size_bytes(text) if text else None
    if text and size is None:
        raise Invalid(f"{word} {text!r} is no size; write one like {SIZE_EXAMPLES}")
    return size


def _ms(word: str, text: str) -> int:
    time_ms = duration_ms(text) if text else 0
    if time_ms is None:
        raise Invalid(f"{word} {text!r} is no time; write one like {DURATION_EXAMPLES}")
    return time_ms
