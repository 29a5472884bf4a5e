"""The options of all commands that run a case here and show it until it ends: run, resume, rerun."""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from mendflow.cli.attempt_bounds import BOUNDS, bounds_of
from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.cli.options import Json, Keep, OutputDir, Overwrite, Quiet, Report
from mendflow.cli.remote_runs import RunOptions, run_options
from mendflow.core.model.errors import InvalidRequest
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds


class RunArguments(msgspec.Struct, frozen=True, kw_only=True):
    """As they were given."""

    report: str = ""
    output_dir: str = ""
    overwrite: bool = False
    quiet: bool = False
    json: bool = False
    keep: bool = False
    bounds: AttemptBounds = USUAL_BOUNDS

    def options(self, folder: Path, slots: int) -> RunOptions:
        """Refused if a place cannot be written to."""
        return run_options(
            folder,
            slots,
            self.report,
            self.output_dir,
            overwrite=self.overwrite,
            quiet=self.quiet,
            json=self.json,
            keep=self.keep,
            bounds=self.bounds,
        )

    def demand_wait(self, *, wait: bool, slots: int = 0) -> None:
        """On a server: refuse what can only be done at the case's end, if that is not waited for, and what is for a
        case that runs in this process."""
        if slots or self.keep:
            option = "--jobs" if slots else "--keep"
            raise InvalidRequest(
                f"{option} is for a case that runs without a server; here a server has it, and its pilots run it: leave"
                f" {option} out, or give it to a pilot: mendflow pilot {option}{f' {slots}' if slots else ''}"
            )
        if not wait and (self.output_dir or self.report or self.overwrite):
            raise InvalidRequest(
                "--output-dir, --overwrite and --report are for the end of the case: add --wait, or fetch the outputs"
                " later with mendflow watch CASE --output-dir DIR"
            )


USUAL_ARGUMENTS: Final = RunArguments()

Wait = Annotated[
    bool,
    typer.Option("--wait", help="On a server, too: show its progress until it ends, and fetch its outputs."),
]

_OPTIONS: Final[OptionTable] = {
    "report": (Report, ""),
    "output_dir": (OutputDir, ""),
    "overwrite": (Overwrite, False),
    "quiet": (Quiet, False),
    "json": (Json, False),
    "keep": (Keep, False),
    **BOUNDS,
}


def _arguments(
    *, report: str, output_dir: str, overwrite: bool, quiet: bool, json: bool, keep: bool, **bounds: Any
) -> RunArguments:
    return RunArguments(
        report=report,
        output_dir=output_dir,
        overwrite=overwrite,
        quiet=quiet,
        json=json,
        keep=keep,
        bounds=bounds_of(**bounds),
    )


with_run_arguments = options_as("arguments", _OPTIONS, _arguments)
"""The command, with these options in place of its parameter `arguments`."""
