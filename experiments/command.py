"""How an experiment is run as a command: its mistakes become sentences and exit codes, as those of `mendflow` do."""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import typer

from mendflow.cli.exit_codes import is_debugging, report_error


def run_command(command: Callable[..., None], name: str, args: Sequence[str] | None = None) -> NoReturn:
    """Run the one command of an experiment, and end the process."""
    app = typer.Typer(add_completion=False)
    app.command()(command)
    try:
        app(args=args, prog_name=f"python -m {name}")
    except (Exception, KeyboardInterrupt) as error:  # the edge: whatever it is becomes a sentence
        if is_debugging():
            raise
        sys.exit(report_error(error))
    sys.exit(0)
