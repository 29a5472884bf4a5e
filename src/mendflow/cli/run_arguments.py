"""The options of all commands that run a case here and show it until it ends: run, resume, rerun."""

from pathlib import Path
from typing import Any, Final

import msgspec

from mendflow.cli.attempt_bounds import BOUNDS, bounds_of
from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.cli.options import Json, Keep, OutputDir, Overwrite, Quiet, Report
from mendflow.cli.remote_runs import RunOptions, run_options
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


USUAL_ARGUMENTS: Final = RunArguments()

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
