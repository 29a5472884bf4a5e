"""The options of `mendflow serve` for its log."""

from typing import Annotated, Final

import msgspec
import typer

from mendflow.cli.attempt_bounds import bytes_of
from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.cli.options import complete_words, one_of
from mendflow.server.log_output import LEVELS, USUAL_LOG, LogForm, LogOptions

_FORMS: Final = ("text", "json")

LOG: Final[OptionTable] = {
    "log_format": (
        Annotated[
            str,
            typer.Option(
                "--log-format",
                metavar="FORM",
                help="The form of the log: text, or json, with one object in each line; see docs/do/server-log.md.",
                callback=lambda value: one_of("--log-format", _FORMS)(value),
                autocompletion=lambda incomplete: complete_words(_FORMS)(incomplete),
                show_default=False,
            ),
        ],
        "",
    ),
    "log_file": (
        Annotated[
            str,
            typer.Option(
                "--log-file",
                metavar="FILE",
                help="Write the log here; default: to standard error. SIGHUP opens the file again.",
                show_default=False,
            ),
        ],
        "",
    ),
    "log_file_size": (
        Annotated[
            str,
            typer.Option(
                "--log-file-size", metavar="SIZE", help="Continue in a new file when it is so large; 0B: never."
            ),
        ],
        "100MB",
    ),
    "log_files_kept": (
        Annotated[
            int, typer.Option("--log-files-kept", min=1, max=1000, metavar="N", help="How many old log files stay.")
        ],
        USUAL_LOG.kept,
    ),
    "log_level": (
        Annotated[
            str,
            typer.Option(
                "--log-level",
                metavar="LEVEL",
                help="The least that is logged: debug, info (each request too), warning (default) or error.",
                callback=lambda value: one_of("--log-level", LEVELS)(value),
                autocompletion=lambda incomplete: complete_words(LEVELS)(incomplete),
                show_default=False,
            ),
        ],
        "",
    ),
}


def log_options(
    log_format: str, log_file: str, log_file_size: str, log_files_kept: int, log_level: str
) -> LogOptions | None:
    """What these options say; None if nothing: then messages go to standard error as they are."""
    if not (log_format or log_file or log_level):
        return None
    return LogOptions(
        form=msgspec.convert(log_format or USUAL_LOG.form, LogForm),
        file=log_file,
        level=log_level or USUAL_LOG.level,
        bytes_max=bytes_of("--log-file-size", log_file_size) or 0,
        kept=log_files_kept,
    )


with_log = options_as("log_to", LOG, log_options)
"""The command, with these options in place of its parameter `log_to`."""
